"""`evaluate` on the run's test set and on other folders, and why its figure is not `compare`'s."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from protocon.cli import main
from tests.commands import Finished, run_command
from tests.engine.layouts import TEST, TRAIN, save_class

Evaluate = Callable[..., Finished]
QUICK = ("epochs=3", "batch_size=8", "mu=2", "encoder=wrn-10-1", "image_size=16", "report=false", "tensorboard=false")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on red and blue images, and other folders."""
    folder = tmp_path_factory.mktemp("evaluated")
    for label, name in enumerate(("red", "blue")):
        save_class(folder / "photos" / "train" / name, label, TRAIN)
        save_class(folder / "photos" / "test" / name, label, TEST, first=50)
        save_class(folder / "other" / name, label, 5, first=100)
    save_class(folder / "other" / "green", 0, 2, first=200)
    arguments = ["train", str(folder / "photos"), "--labels-per-class", "3", "--out", str(folder), "--name", "run"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["protocon", *arguments, *QUICK, "--json"])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code
    return folder


@pytest.fixture
def evaluate(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Evaluate:
    def run(*arguments: object) -> Finished:
        return run_command(monkeypatch, capsys, "evaluate", str(place / "run"), *map(str, arguments))

    return run


def test_another_folder_with_class_folders(evaluate: Evaluate, place: Path) -> None:
    found = evaluate(place / "other", "--json").json
    assert found["images"] == 10
    assert found["accuracy"] == pytest.approx(np.mean(list(found["accuracy_by_class"].values())))
    assert found["unknown_classes"] == {"green": 2}
    shown = evaluate(place / "other").out
    assert "of 10 labelled images are right (95 % interval" in shown
    assert "left out, because the run does not know their class: green (2)" in shown
    assert "`compare` gives another figure" in shown


def test_a_table_of_labels_that_are_all_wrong_gives_what_the_right_ones_lack(
    evaluate: Evaluate, place: Path, tmp_path: Path
) -> None:
    swapped = {"red": "blue", "blue": "red"}
    for name, rows in (("right", {k: k for k in swapped}), ("wrong", swapped)):
        lines = [f"{folder}/{100 + n:03}.png,{label}" for folder, label in rows.items() for n in range(5)]
        (tmp_path / f"{name}.csv").write_text("file,label\n" + "\n".join(lines))
    right, wrong = (
        evaluate(place / "other", "--labels", tmp_path / f"{name}.csv", "--json").json for name in ("right", "wrong")
    )
    assert (right["images"], wrong["images"]) == (10, 10)
    assert right["accuracy"] + wrong["accuracy"] == pytest.approx(1)
    assert right["accuracy"] == evaluate(place / "other", "--json").json["accuracy"]


def test_its_own_test_set_is_the_last_epoch_and_it_says_so(evaluate: Evaluate) -> None:
    found = evaluate()
    assert f"on {2 * TEST} images" in found.out
    assert "mean over the last ten epochs (of this run:" in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "nowhere does not exist"),
        (("--labels", "some.csv"), "name that folder too"),
        (("GREEN",), "no image of"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_in_words(
    evaluate: Evaluate, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    for name in ("green", "yellow"):
        save_class(tmp_path / "GREEN" / name, 0, 2)
    done = evaluate(*(tmp_path / "GREEN" if text == "GREEN" else text for text in arguments))
    assert done.code == 1
    assert message in done.err
