"""Arrows are not mirrored in training, photographs are; one setting overrules it."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from protocon.engine.run import fit
from protocon.engine.setup.mirrors import ask_about_mirrors
from protocon.engine.setup.session import settle
from protocon.features.extract import FrozenEncoder
from protocon.runs.run_data import load_data
from protocon.settings.config import RunConfig, build_config
from tests.features.tiny import NAME, SIDE, save_weights, striped_images

LABELLED = 16


def arrow(number: int, *, left: bool) -> np.ndarray:
    """A bright arrow on noise, a little moved."""
    generator = np.random.default_rng(number)
    image = generator.integers(0, 60, (SIDE, SIDE, 3))
    top = 16 + int(generator.integers(-2, 3))
    image[top - 2 : top + 3, 6:26] = 230
    for step in range(9):
        image[top - step : top + step + 1, 4 + step] = 230
    return (image if left else image[:, ::-1]).astype(np.uint8)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("mirrors")
    save_weights(root / "weights.safetensors")
    stripes, kinds = striped_images(32)
    sets = {
        "arrows": [(arrow(number, left=number % 2 == 0), ["left", "right"][number % 2]) for number in range(32)],
        "stripes": [(pixels, str(kind)) for pixels, kind in zip(stripes, kinds, strict=True)],
    }
    for name, images in sets.items():
        (root / name).mkdir()
        rows = ["file,label"]
        for number, (pixels, label) in enumerate(images):
            Image.fromarray(pixels).save(root / name / f"{number:02}.png")
            rows += [f"{number:02}.png,{label}"] * (number < LABELLED)
        (root / f"{name}.csv").write_text("\n".join(rows) + "\n")
    return root


def config_of(place: Path, name: str, *more: str) -> RunConfig:
    settings = {
        "data": {"name": "folder", "root": place / name, "labels": place / f"{name}.csv", "image_size": SIDE},
        "network": {"encoder": NAME, "weights": place / "weights.safetensors", "frozen": True},
        "run": {"cache": place / "cache", "tensorboard": False, "report": False, "cross_check": 0},
        "optim": {"epochs": 1, "batch_size": 4},
    }
    return build_config(settings=settings, overrides=list(more))


def flips(place: Path, name: str, *more: str) -> tuple[bool, str]:
    """Whether views are mirrored, and why."""
    config = config_of(place, name, *more)
    answer = ask_about_mirrors(config, settle(config, load_data(config)), Console(quiet=True), torch.device("cpu"))
    return answer.settled.config.views.flip, answer.reason


def test_labels_of_arrows_say_no_and_those_of_stripes_do_not_mind(place: Path) -> None:
    mirrored, why = flips(place, "arrows")
    assert not mirrored
    found = re.search(
        r"of (\d+) labelled images, (\d+) are recognised as they are and (\d+) when mirrored \(p = 0.0", why
    )
    assert found is not None
    asked, plain, turned = map(int, found.groups())
    assert asked == LABELLED
    assert plain - turned >= 7
    mirrored, why = flips(place, "stripes")
    assert mirrored
    assert f"of {LABELLED} labelled images" in why


def test_one_setting_overrules_the_labels(place: Path) -> None:
    assert flips(place, "arrows", "views.flip=true") == (True, "")
    assert flips(place, "stripes", "views.flip=false") == (False, "")


def test_a_run_says_so_keeps_it_and_is_resumed_with_it(place: Path, tmp_path: Path) -> None:
    text = io.StringIO()
    fit(config_of(place, "arrows"), out=tmp_path, name="run", console=Console(file=text, width=400))
    line = f"mirroring changes your labels: of {LABELLED} labelled images, "
    assert line in text.getvalue()
    assert "views.flip=true overrules this" in text.getvalue()
    assert any(line in note for note in json.loads((tmp_path / "run" / "data.json").read_text())["notes"])
    assert "flip: false" in (tmp_path / "run" / "resolved.yaml").read_text()
    assert json.loads((tmp_path / "run" / "data.json").read_text())["auto"]["views.flip"].startswith("False (of 16")
    again = io.StringIO()
    fit(config_of(place, "arrows"), out=tmp_path, name="run", resume=True, console=Console(file=again, width=400))
    assert "is finished; nothing to do" in again.getvalue()


def test_the_encoder_that_was_asked_computes_all_features(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, usual = [], FrozenEncoder._find_fastest

    def counted(encoder: FrozenEncoder, shape: tuple[int, ...]) -> object:
        found.append(shape)
        return usual(encoder, shape)

    monkeypatch.setattr(FrozenEncoder, "_find_fastest", counted)
    fit(config_of(place, "stripes", f"run.cache={place / 'fresh'}"), out=place / "once", console=Console(quiet=True))
    assert len(found) == 1  # an encoder is exported once per run: it takes more than a second
