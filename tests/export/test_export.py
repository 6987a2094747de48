"""Exported files say what the run says, take any number of images, and carry what a caller must know."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from protocon import export_run, load_run
from protocon.errors import ConfigError, RunError
from protocon.export import verify
from protocon.export.formats import FORMATS, to_onnx, to_safetensors, torchscript_without_warnings
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network
from protocon.runs.trained import TrainedRun
from protocon.settings.auto import resolve_auto
from protocon.settings.config import build_config
from tests.commands import run_command
from tests.engine.runs import small_run


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """wrn-10-1 on digits of 8×8 pixels, trained for a moment."""
    return Path(small_run(tmp_path_factory.mktemp("runs"), "epochs=3", labels_per_class=8, method="fixmatch")["run"])


@pytest.fixture(scope="module")
def digits_onnx(digits_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What exporting it to ONNX says, and among it the file."""
    return export_run(digits_run, out=tmp_path_factory.mktemp("onnx") / "digits.onnx")


@pytest.fixture(scope="module")
def photo_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """test_efficientnet at 64 pixels, with random weights, as one file."""
    shape = (3, 64, 64)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = build_encoder("test_efficientnet", input_shape=shape)
        network = Network(encoder, classes=4, projection_dim=128, mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.4))
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):  # statistics that are not 0 and 1
                module.running_mean = torch.rand(module.num_features) * 0.1
                module.running_var = torch.rand(module.num_features) + 0.5
    overrides = ["encoder=test_efficientnet", "image_size=64", "projection_dim=128"]
    config = resolve_auto(build_config(overrides=overrides), shape=shape, flip=True, unlabelled=99, classes=4).config
    run = TrainedRun(network.eval(), config, ("ant", "bee", "cat", "dog"), shape)
    file = tmp_path_factory.mktemp("photos") / "model.safetensors"
    file.write_bytes(to_safetensors(run))
    return file


def digits_images(count: int) -> np.ndarray:
    images: np.ndarray = np.rint(load_digits().images[:count] * 15.9375).astype(np.uint8)
    return images[:, None]


def answers(file: Path, images: np.ndarray) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, {"images": images})
    return found[0]


def test_onnx_of_digits_agrees_on_100_images(digits_run: Path, digits_onnx: dict[str, Any]) -> None:
    images, file = digits_images(100), Path(digits_onnx["file"])
    expected = load_run(digits_run).predict_proba(torch.from_numpy(images)).numpy()
    found = answers(file, images)
    assert np.abs(found - expected).max() < 1e-4
    assert expected.max(1).std() > 0.01  # the images are not all alike to it
    assert np.abs(answers(file, images[:1]) - expected[:1]).max() < 1e-4
    assert digits_onnx["verified"]
    assert digits_onnx["largest_difference"] < 1e-4


def test_onnx_of_a_timm_encoder_agrees_on_100_images(photo_model: Path, tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (100, 3, 64, 64), dtype=np.uint8)
    images[:50] //= 4  # some dark ones
    file = tmp_path / "photos.onnx"
    export_run(photo_model, out=file)
    expected = load_run(photo_model).predict_proba(torch.from_numpy(images)).numpy()
    assert np.ptp(expected, axis=0).max() > 1e-3  # the answer depends on the image
    assert np.abs(answers(file, images) - expected).max() < 1e-4
    assert [p.name for p in tmp_path.iterdir()] == ["photos.onnx"]  # weights inside


def test_onnx_metadata_says_how_to_use_it(digits_onnx: dict[str, Any]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(digits_onnx["file"], providers=["CPUExecutionProvider"])
    facts = json.loads(session.get_modelmeta().custom_metadata_map["protocon"])
    assert facts["class_names"] == [str(n) for n in range(10)]
    assert "8×8" in facts["preparation"]
    assert "grey" in facts["preparation"]
    (given,), (taken,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.type, given.shape[1:]) == ("images", "tensor(uint8)", [1, 8, 8])
    assert isinstance(given.shape[0], str)  # any number
    assert (taken.name, taken.shape[1]) == ("probabilities", 10)


def test_what_the_exporter_says_of_itself_is_not_heard(
    digits_run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("onnxscript.optimizer._constant_folding")
    export = torch.onnx.export

    def talking(*given: Any, **options: Any) -> Any:
        log.warning("Skipping constant folding for op Split with multiple outputs.")
        return export(*given, **options)

    monkeypatch.setattr(torch.onnx, "export", talking)
    to_onnx(load_run(digits_run))
    assert not [record for record in caplog.records if record.name.startswith("onnxscript")]
    log.warning("once more")
    assert caplog.messages[-1] == "once more"  # afterwards it may speak again


def test_torchscript_agrees_and_carries_metadata(digits_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "digits.pt"
    export_run(digits_run, file_format="torchscript", out=file)
    images = torch.from_numpy(digits_images(100))
    extra = {"protocon.json": ""}
    with torchscript_without_warnings():
        model = torch.jit.load(io.BytesIO(file.read_bytes()), _extra_files=extra)  # type: ignore[no-untyped-call]
        found = model(images)
    assert (found - load_run(digits_run).predict_proba(images)).abs().max() < 1e-4
    assert json.loads(extra["protocon.json"])["class_names"] == [str(n) for n in range(10)]


def test_safetensors_needs_no_run_folder(digits_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.safetensors"
    export_run(digits_run, file_format="safetensors", out=file)
    images = torch.from_numpy(digits_images(20))
    assert torch.equal(load_run(file).predict_proba(images), load_run(digits_run).predict_proba(images))
    assert load_run(file).class_names == tuple(map(str, range(10)))


def test_embeddings_are_exported_as_they_come(tmp_path: Path) -> None:
    import onnxruntime

    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = build_encoder("mlp-16", input_shape=(5,))
        network = Network(encoder, classes=3, projection_dim=8, mean=torch.arange(5.0), std=torch.arange(1.0, 6.0))
    asked = build_config(overrides=["encoder=mlp-16", "projection_dim=8"])
    config = resolve_auto(asked, shape=(5,), flip=False, unlabelled=99, classes=3).config
    run = TrainedRun(network.eval(), config, ("a", "b", "c"), (5,))
    (tmp_path / "m.safetensors").write_bytes(to_safetensors(run))
    result = export_run(tmp_path / "m.safetensors", out=tmp_path / "m.onnx")
    assert (result["input"], result["type"], result["shape"]) == ("features", "float32", ["n", 5])
    rows = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32) * 4
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {"features": rows})[0]
    assert np.abs(found - run.predict_proba(torch.from_numpy(rows)).numpy()).max() < 1e-5


def test_a_file_that_disagrees_is_refused(digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exported from weights that are not the run's."""
    make, suffix = FORMATS["torchscript"]

    def spoilt(run: TrainedRun) -> bytes:
        with torch.no_grad():
            run.network.classifier.bias[0] += 0.5
            content = make(run)
            run.network.classifier.bias[0] -= 0.5
        return content

    monkeypatch.setitem(FORMATS, "torchscript", (spoilt, suffix))
    with pytest.raises(RunError, match="differs from the run"):
        export_run(digits_run, file_format="torchscript", out=tmp_path / "bad.pt")
    assert not list(tmp_path.iterdir())


def test_without_onnxruntime_it_says_that_nothing_was_compared(
    photo_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "find_spec", lambda name: None if name == "onnxruntime" else object())
    monkeypatch.setitem(FORMATS, "onnx", (lambda _: b"bytes", ".onnx"))
    result = export_run(photo_model, out=tmp_path / "m.onnx")
    assert result["verified"] is False
    assert result["largest_difference"] is None


def test_nothing_is_overwritten_and_names_are_checked(digits_run: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.pt"
    taken.write_text("mine")
    with pytest.raises(RunError, match="exists already"):
        export_run(digits_run, file_format="torchscript", out=taken)
    assert taken.read_text() == "mine"
    with pytest.raises(RunError, match="does not exist"):
        export_run(digits_run, file_format="torchscript", out=tmp_path / "nowhere" / "m.pt")
    with pytest.raises(ConfigError, match="torchscript"):
        export_run(digits_run, file_format="onxx")


def test_the_command(
    digits_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> Any:
        return run_command(monkeypatch, capsys, "export", str(digits_run), *arguments)

    done = run("--format", "onnx", "--out", str(tmp_path / "m.onnx"), "--json")
    assert done.code == 0
    assert done.json["verified"] is True  # and nothing else is on standard output
    assert (tmp_path / "m.onnx").is_file()
    done = run("--format", "torchscript")
    assert done.code == 0
    assert "agrees with the run" in done.out
    assert (digits_run / "model.pt").is_file()
    again = run("--format", "torchscript")
    assert again.code == 1
    assert "exists already" in again.err
    assert "Traceback" not in again.err
