"""Collapse is noticed while it happens; a loss that is no number stops the run and names its images."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from protocon.core.prototypes import ClassPrototypes
from protocon.engine.loop.guards import Guards
from protocon.engine.loop.trainer import Trainer
from protocon.errors import TrainingError
from protocon.runs.run_folder import RunFolder
from protocon.types import Step
from tests.engine.runs import small_run, tiny_run

NAMES = ("cat", "dog", "owl")
WELL: dict[str, float] = {
    "retention": 0.8,
    "largest_class_share": 0.4,
    "prototype_similarity": 0.1,
    "agreement": 0.9,
    "clusters_in_use": 40,
}


def run(
    epochs: int, *, guards: Guards | None = None, first: int = 0, by_class: Any = (3, 3, 3), **bad: Any
) -> list[Any]:
    guards = guards or Guards(class_names=NAMES, clusters=40, total_epochs=100)
    found = []
    for epoch in range(first, first + epochs):
        found += guards.check({"epoch": epoch} | WELL | bad, by_class)
    return found


def test_nothing_is_said_where_all_is_well() -> None:
    assert run(100) == []
    only_losses = Guards(class_names=NAMES, clusters=None, total_epochs=100)
    assert [only_losses.check({"epoch": epoch, "loss_x": 1.0}, []) for epoch in range(50)] == [[]] * 50


@pytest.mark.parametrize(
    ("kind", "bad", "begins"),
    [
        ("no_pseudo_labels", {"retention": 0.0}, 5),
        ("one_class", {"largest_class_share": 0.99}, 3),
        ("prototypes_alike", {"prototype_similarity": 0.97}, 6),
        ("disagreement", {"agreement": 0.1}, 24),
        ("few_clusters", {"clusters_in_use": 9}, 4),
    ],
)
def test_each_collapse_is_said_once_when_it_begins(kind: str, bad: dict[str, Any], begins: int) -> None:
    (warning,) = run(100, **bad)
    assert warning["kind"] == kind
    assert warning["epoch"] == begins
    assert warning.keys() == {"epoch", "kind", "message", "advice"}
    assert len(warning["advice"]) > 20


def test_a_class_that_nobody_predicts_is_named() -> None:
    (warning,) = run(30, by_class=(5, 0, 4))
    assert warning["kind"] == "missing_classes"
    assert "misspelt" in warning["advice"]
    assert "=" not in warning["advice"]  # no names of settings for people who only have labels
    assert warning["epoch"] == 5
    assert "dog" in warning["message"]
    assert "cat" not in warning["message"]


def test_a_few_bad_epochs_say_nothing_and_a_second_collapse_is_said_again() -> None:
    guards = Guards(class_names=NAMES, clusters=40, total_epochs=100)
    assert run(4, guards=guards, first=10, retention=0.0) == []
    assert run(10, guards=guards, first=14) == []
    assert len(run(10, guards=guards, first=24, retention=0.0)) == 1
    assert run(2, guards=guards, first=34) == []  # not over yet
    assert run(9, guards=guards, first=36, retention=0.0) == []
    assert run(9, guards=guards, first=45) == []
    assert len(run(9, guards=guards, first=54, retention=0.0)) == 1


def test_guards_go_on_from_their_state() -> None:
    whole = run(30, retention=0.0, by_class=(1, 1, 0))
    for stop in (2, 4, 5, 6, 12):
        guards = Guards(class_names=NAMES, clusters=40, total_epochs=100)
        first = run(stop, guards=guards, retention=0.0, by_class=(1, 1, 0))
        other = Guards(class_names=NAMES, clusters=40, total_epochs=100)
        other.load(json.loads(json.dumps(guards.state())))
        assert first + run(30 - stop, guards=other, first=stop, retention=0.0, by_class=(1, 1, 0)) == whole


def test_prototype_similarity_is_the_mean_cosine_of_pairs() -> None:
    prototypes = ClassPrototypes(4, 6)
    vectors = torch.nn.functional.normalize(torch.arange(24.0).view(4, 6).sin(), dim=-1)
    prototypes.prototypes.copy_(vectors)
    cosines = vectors @ vectors.T
    expected = float(cosines[~torch.eye(4, dtype=torch.bool)].mean())
    assert prototypes.similarity() == pytest.approx(expected, abs=1e-6)


def test_a_real_run_without_pseudo_labels_says_so(tmp_path: Path) -> None:
    result = tiny_run(tmp_path / "runs", "epochs=7", "threshold=1.0", method="fixmatch")
    folder = RunFolder(Path(result["run"]))
    kinds = [row["kind"] for row in folder.warnings()]
    assert "no_pseudo_labels" in kinds
    assert result["warnings"] == folder.warnings()
    assert "retention" in folder.metrics()[-1]


def test_healthy_runs_report_what_the_guards_look_at(tmp_path: Path) -> None:
    result = tiny_run(tmp_path / "runs", "epochs=2")
    row = RunFolder(Path(result["run"])).metrics()[-1]
    assert 0.1 <= row["largest_class_share"] <= 1
    assert 1 <= row["classes_predicted"] <= 10
    assert -1 <= row["prototype_similarity"] <= 1
    assert result["warnings"] == []


def break_step(monkeypatch: pytest.MonkeyPatch, at: int, term: str) -> None:
    train_step = Trainer.train_step

    def broken(self: Trainer, *args: Any) -> tuple[Step, dict[str, torch.Tensor]]:
        step, rows = train_step(self, *args)
        if self.step == at:
            step.terms[term] = torch.tensor(float("nan"))
        return step, rows

    monkeypatch.setattr(Trainer, "train_step", broken)


@pytest.mark.parametrize(("at", "where"), [(13, "step 2 of epoch 1"), (11, "step 11 of epoch 0")])
def test_a_loss_that_is_no_number_stops_the_run_and_names_term_step_and_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, where: str
) -> None:
    break_step(monkeypatch, at, "loss_u")
    with pytest.raises(TrainingError, match=rf"loss_u = nan in {where}, on images: labelled \d") as stopped:
        small_run(tmp_path, "epochs=3", "mu=4", method="fixmatch")
    assert "unlabelled" in str(stopped.value)
    (run,) = tmp_path.iterdir()
    (row,) = RunFolder(run).warnings()
    assert row["kind"] == "stopped"
    assert "loss_u" in row["message"]
    assert [path.stem for path in (run / "checkpoints").iterdir()] == ["epoch-00001"] * (at > 11)


def test_weights_that_are_no_numbers_never_replace_a_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_of_epoch = Trainer.evaluate

    def poison(self: Trainer, epoch: int) -> dict[str, float]:
        if epoch == 1:
            with torch.no_grad():
                next(self.network.parameters()).view(-1)[0] = float("inf")
        return end_of_epoch(self, epoch) if epoch == 0 else {}

    monkeypatch.setattr(Trainer, "evaluate", poison)
    with pytest.raises(TrainingError, match="no longer finite"):
        small_run(tmp_path, "epochs=3", "mu=4", method="supervised")
    (run,) = tmp_path.iterdir()
    assert [path.stem for path in (run / "checkpoints").iterdir()] == ["epoch-00001"]
