"""Images of one's own get the pretrained encoder wherever it is installed, and nothing else does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocon.compare.request import build_request
from protocon.data.sources.array_shape import channels_of
from protocon.errors import ConfigError
from protocon.networks import packaged
from protocon.networks.encoders import build_encoder
from protocon.networks.named import NAMED, Named
from protocon.settings.auto import resolve_auto
from protocon.settings.config import build_config
from tests.commands import run_command
from tests.engine.layouts import save_class
from tests.engine.photos import TINY, install, make_package
from tests.test_options import chosen


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(tmp_path / "packages")
    install(tmp_path / "packages", monkeypatch)


@pytest.fixture
def _missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "PACKAGED", ())


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twelve images, two of them labelled."""
    save_class(tmp_path / "photos", 0, 12)
    (tmp_path / "photos" / "labels.csv").write_text("000.png,red\n001.png,blue\n")
    return tmp_path / "photos"


def own(**data: Any) -> dict[str, Any]:
    return {"data": {"name": "folder", "root": "photos", **data}}


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("source", ["folder", "imagefolder", "metadata", "hf"])
def test_images_of_ones_own_get_it_with_the_method_for_it(source: str) -> None:
    config = build_config(settings=own(name=source))
    assert config.network.frozen
    assert config.method_name == "protocon-frozen"
    assert config == build_config(settings=own(name=source) | {"network": {"frozen": True}})
    asked = build_config(settings=own(name=source) | {"method_name": "fixmatch"})
    assert (asked.network.frozen, asked.method_name) == (True, "fixmatch")


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("settings", "overrides"),
    [
        ({"data": {"name": "digits"}}, ()),
        ({"data": {"name": "cifar10", "root": "x"}}, ()),
        (own(), ("network.frozen=false",)),
        (own(), ("frozen=false",)),
        (own(), ("encoder=wrn-10-1",)),
        (own(), ("network.pretrained=true",)),
        (own(grey=True), ()),
        (own() | {"network": {"weights": "some.pth"}}, ()),
        (own() | {"network": {"frozen": False}}, ()),
    ],
)
def test_where_something_else_is_meant_it_stays_away(settings: dict[str, Any], overrides: tuple[str, ...]) -> None:
    config = build_config(settings=settings, overrides=overrides)
    assert not config.network.frozen
    assert config.method_name == "protocon"


@pytest.mark.usefixtures("_installed")
def test_recipes_of_the_package_stay_as_they_are_and_ones_own_file_is_no_reason(tmp_path: Path) -> None:
    assert not build_config(recipe="paper", settings=own()).network.frozen
    (tmp_path / "mine.yaml").write_text("optim: {epochs: 3}\n")
    assert build_config(recipe=str(tmp_path / "mine.yaml"), settings=own()).network.frozen


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize(
    ("shape", "channels"),
    [((4, 9), None), ((4, 8, 8), 1), ((4, 8, 8, 1), 1), ((4, 8, 8, 3), 3), ((4, 3, 8, 8), 3), ((4, 2, 8, 8), None)],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_of_array_files_those_with_images_in_colour_get_it(
    tmp_path: Path, shape: tuple[int, ...], channels: int | None, suffix: str
) -> None:
    file, x = tmp_path / f"set{suffix}", np.zeros(shape, dtype=np.uint8)
    np.save(file, x) if suffix == ".npy" else np.savez(file, y=np.arange(4), x=x)
    assert channels_of(file) == channels
    assert build_config(settings={"data": {"name": "arrays", "root": file}}).network.frozen == (channels == 3)
    file.write_bytes(file.read_bytes()[:40])
    assert channels_of(file) is None


@pytest.mark.usefixtures("_installed")
def test_every_method_of_a_comparison_gets_it() -> None:
    request = build_request(methods=["fixmatch", "protocon", "logistic-regression"], settings=own(name="imagefolder"))
    assert [config.network.frozen for config in request.configs.values()] == [True] * 3


@pytest.mark.usefixtures("_installed")
def test_from_scratch_is_the_other_and_contradicts_weights(photos: Path) -> None:
    assert chosen(str(photos)).resolve().config().network.frozen
    assert chosen(str(photos), frozen=True).resolve().config() == chosen(str(photos)).resolve().config()
    scratch = chosen(str(photos), from_scratch=True).resolve().config()
    assert (scratch.network.frozen, scratch.method_name) == (False, "protocon")
    for other in ({"frozen": True}, {"frozen": False}, {"weights": Path("b")}, {"init": Path("b")}):
        with pytest.raises(ConfigError, match=r"--from-scratch both say what the encoder starts from"):
            chosen(str(photos), from_scratch=True, **other).resolve()


@pytest.mark.usefixtures("_installed")
def test_fine_tuning_starts_from_the_installed_weights_and_never_silently_from_scratch(photos: Path) -> None:
    network = chosen(str(photos), frozen=False).resolve().config().network
    assert (network.frozen, network.encoder) == (False, TINY.encoder)
    assert network.weights == TINY.weights()
    assert build_encoder(network.encoder, input_shape=(3, 32, 32), weights=network.weights).features > 0
    kept = chosen(str(photos), "pretrained=true", frozen=False, encoder="resnet18").resolve().config().network
    assert (kept.encoder, kept.weights, kept.pretrained) == ("resnet18", None, True)
    for other in ({"encoder": "resnet18"}, {"data": "digits"}):
        arguments = () if "data" in other else (str(photos),)
        with pytest.raises(ConfigError, match=r"none to start from.*--from-scratch"):
            chosen(*arguments, frozen=False, **other).resolve()


@pytest.mark.usefixtures("_installed")
def test_pre_training_trains_an_encoder_with_a_short_name_from_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAMED, "tiny", Named(TINY.encoder, 32, packaged=True))
    for method in ("simclr", "dino"):
        network = build_config(settings=own() | {"method_name": method, "network": {"encoder": "tiny"}}).network
        assert (network.frozen, network.encoder, network.weights) == (False, TINY.encoder, TINY.weights())
    fetched = build_config(settings=own() | {"method_name": "simclr", "network": {"encoder": "clip-base"}}).network
    assert (fetched.frozen, fetched.pretrained) == (False, True)
    assert build_config(settings=own() | {"network": {"encoder": "tiny"}}).network.frozen
    with pytest.raises(ConfigError, match=r"ImageNet weights of tf_efficientnet_lite1 needs them.*--weights FILE"):
        build_config(settings=own() | {"method_name": "simclr", "network": {"encoder": "lite1"}})


@pytest.mark.parametrize(("encoder", "blocks"), [("tf_efficientnet_lite0", 4), ("resnet18", 0)])
def test_pooled_blocks_belong_to_the_network_not_to_the_packages_weights(encoder: str, blocks: int) -> None:
    config = build_config(settings=own() | {"network": {"encoder": encoder, "frozen": True, "pretrained": True}})
    resolved = resolve_auto(config, shape=(3, 64, 64), flip=True, unlabelled=100, classes=2).config
    assert resolved.network.pooled_blocks == blocks


@pytest.mark.parametrize(
    ("network", "share"),
    [
        ({"encoder": "tf_efficientnet_lite0", "weights": "own.pth"}, 0.6),
        ({"encoder": "tf_efficientnet_lite0", "pretrained": True}, 0.0),  # timm's own network looks once
        ({"encoder": "resnet18", "weights": "own.pth"}, 0.0),
        ({"encoder": "tf_efficientnet_lite0", "weights": "own.pth", "second_look": 0.3}, 0.3),
    ],
)
def test_networks_that_can_look_twice_do_unless_told_otherwise(
    network: dict[str, object], share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.pth").touch()
    config = build_config(settings=own() | {"network": {**network, "frozen": True}})
    resolved = resolve_auto(config, shape=(3, 64, 64), flip=True, unlabelled=100, classes=2).config
    assert resolved.network.second_look == share


@pytest.mark.usefixtures("_missing")
def test_fine_tuning_without_any_weights_says_what_to_do(photos: Path) -> None:
    with pytest.raises(ConfigError, match=r"none to start from.*pip install 'protocon\[photos\]'.*--init RUN"):
        chosen(str(photos), frozen=False).resolve()


@pytest.mark.usefixtures("_missing")
def test_where_it_is_not_installed_a_line_says_what_to_install_and_why(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (("train", "--dry-run"), ("data", "check")):
        said = run_command(monkeypatch, capsys, *command, str(photos), "image_size=8", "batch_size=2")
        text = said.err + said.out
        assert said.code == 0, text
        (line,) = (line for line in text.splitlines() if "pip install 'protocon[photos]'" in line)
        assert "from scratch, because no pretrained encoder is installed" in line
        quiet = run_command(
            monkeypatch, capsys, *command, str(photos), "image_size=8", "batch_size=2", "--from-scratch"
        )
        assert "protocon[photos]" not in quiet.err + quiet.out
