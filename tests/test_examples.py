"""The programs in examples/ do what they say, on small data and in one process."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from sklearn.datasets import load_digits

from protocon.methods import METHODS
from tests.test_docs_examples import ROOT

Example = Callable[..., str]
EXAMPLES = ROOT / "examples"
SHORT = ("optim.epochs=2", "data.image_size=8", "optim.batch_size=32", "run.tensorboard=false", "run.report=false")


@pytest.fixture
def run_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Example:
    """Run a program in an empty folder; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        capsys.readouterr()
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def photos(place: Path) -> None:
    """Zeros and ones as PNG files, four of each with a label."""
    digits = load_digits()
    (place / "photos").mkdir()
    rows = ["file,label"]
    chosen = [number for number in range(300) if digits.target[number] < 2]
    for count, number in enumerate(chosen):
        pixels = (digits.images[number] * 15).astype("uint8")
        Image.fromarray(pixels).save(place / "photos" / f"{number:03}.png")
        if count < 8:
            rows.append(f"{number:03}.png,{('zero', 'one')[digits.target[number]]}")
    (place / "labels.csv").write_text("\n".join(rows) + "\n")


def test_all_of_them_are_described_and_tested() -> None:
    programs = {file.name for file in EXAMPLES.glob("*.py")}
    described = set(re.findall(r"^\| \[(\w+\.py)\]", (EXAMPLES / "README.md").read_text(), flags=re.MULTILINE))
    tested = set(re.findall(r'"(\w+\.py)"', Path(__file__).read_text(encoding="utf-8")))
    assert programs == described == tested
    assert len(programs) == 5


def test_an_own_folder_and_the_run_it_leaves(tmp_path: Path, run_example: Example) -> None:
    photos(tmp_path)
    said = run_example("own_folder.py", "photos", "labels.csv", *SHORT, "data.grey=true", "views.engine=torch")
    counts = [int(count) for count in re.findall(r"(\d+) (?:accept|review|unchecked)", said.splitlines()[0])]
    assert sum(counts) == len(list(Path("photos").iterdir())) - 8
    assert re.search(r"^look at \d+\.png, labelled (zero|one): \w", said, flags=re.MULTILINE)
    (run,) = Path("runs").iterdir()
    assert f"everything is in {run}" in said

    file = next(iter(sorted(Path("photos").iterdir())))
    said = run_example("use_run.py", str(run), str(file))
    assert re.search(rf"{file.name}: (zero|one)$", said, flags=re.MULTILINE)
    assert (run / "model.onnx").is_file()
    assert re.search(r"a plain grey image looks most like (zero|one)$", said, flags=re.MULTILINE)


def test_the_classifier_on_embeddings(run_example: Example) -> None:
    said = run_example("embeddings.py", "optim.epochs=8")
    found, new, baseline = map(float, re.findall(r"([\d.]+)% right", said))
    assert min(found, new) > 60  # chance is 10
    assert 50 < baseline < 90


def test_methods_side_by_side(run_example: Example) -> None:
    said = run_example("compare_methods.py", "optim.epochs=2")
    scores = dict(re.findall(r"^([\w-]+) +([\d.]+)% ± [\d.]+%$", said, flags=re.MULTILINE))
    assert list(scores) == ["supervised", "fixmatch-da", "protocon"]
    assert all(float(score) > 20 for score in scores.values())  # chance is 10


def test_a_method_of_ones_own(run_example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "entropy", METHODS["supervised"])  # removed again after the test
    said = run_example("add_method.py", *SHORT, "lambda_u=0.2")
    assert METHODS["entropy"].__name__ == "EntropyMinimisation"
    assert float(re.findall(r"test accuracy ([\d.]+)%", said)[0]) > 15
    assert Path("runs/digits-4pc-entropy-seed0/metrics.jsonl").is_file()
