"""Two processes with one global batch learn what one process learns, to the last bits of float64."""

import json
import math
from pathlib import Path

import pytest
import torch

from protocon.engine.loop.checkpoint import load_checkpoint
from tests.distributed.cases import CASES, EPOCHS, NORMS, config_of, train

pytestmark = pytest.mark.timeout(400)


def last_state(run: Path) -> dict[str, torch.Tensor]:
    return load_checkpoint(max((run / "checkpoints").glob("epoch-*.safetensors"))).tensors


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_same_run(one: Path, two: Path, *, tolerance: float) -> None:
    """Whole numbers (labels, assignments, counts, flags) are equal; others to the tolerance."""
    ours, theirs = last_state(one), last_state(two)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        other = theirs[name]
        assert tensor.dtype == other.dtype, name
        if not tensor.is_floating_point():
            assert torch.equal(tensor, other), name
        elif tensor.dtype == torch.float16:  # the bank's similarities: one step of rounding
            assert torch.allclose(tensor.double(), other.double(), rtol=0, atol=1e-3), name
        else:
            assert torch.allclose(tensor, other, rtol=0, atol=tolerance), (name, (tensor - other).abs().max())
    for row, other_row in zip(metrics(one), metrics(two), strict=True):
        assert row.keys() == other_row.keys()
        for name, value in row.items():
            assert math.isclose(value, other_row[name], rel_tol=1e-6, abs_tol=1e-6), name


@pytest.mark.parametrize("name", CASES)
def test_the_number_of_processes_changes_nothing(name: str, together: Path, data: Path, tmp_path: Path) -> None:
    method, overrides = CASES[name]
    train(config_of(data, method, overrides), tmp_path, name)
    assert_same_run(tmp_path / name, together / name, tolerance=1e-9)
    rows = metrics(together / name)
    assert len(rows) == EPOCHS
    if "retention" in rows[-1]:
        assert 0.02 < rows[-1]["retention"] < 1.0 or method in ("flexmatch", "freematch", "softmatch")


def test_held_out_labels_are_found_by_two_processes_as_by_one(together: Path, data: Path, tmp_path: Path) -> None:
    name = "protocon, held-out labels"
    method, overrides = CASES[name]
    result = train(config_of(data, method, overrides), tmp_path, name)
    one, two = (folder / name / "cross_check.csv" for folder in (tmp_path, together))
    assert one.read_text() == two.read_text()
    assert len(one.read_text().splitlines()) == 1 + result["cross_check"]["held_out"] == 9  # two labels a class


@pytest.mark.parametrize("name", [name for name in NORMS if name != "norms apart"])
def test_synchronised_norms_make_a_network_independent_of_it_too(
    name: str, together: Path, data: Path, tmp_path: Path
) -> None:
    method, overrides = NORMS[name]
    train(config_of(data, method, overrides, images=True), tmp_path, name)
    assert_same_run(tmp_path / name, together / name, tolerance=1e-6)


def test_norms_that_are_not_synchronised_train_another_network_with_one_state(together: Path) -> None:
    # That both processes end each epoch with the same statistics is checked within the run.
    apart, joint = last_state(together / "norms apart"), last_state(together / "norms")
    assert apart.keys() == joint.keys()
    name = "network.encoder.norm.running_var"
    assert not torch.allclose(apart[name], joint[name], rtol=1e-3)


def test_a_set_smaller_than_the_number_of_processes_is_evaluated_by_each(together: Path) -> None:
    for rank in (0, 1):
        outputs = torch.load(together / f"evaluated-{rank}.pt", weights_only=True)
        assert torch.equal(outputs["logits"], torch.tensor([[1.0, 2.0, 3.0]]))


def test_two_processes_go_on_where_one_stopped(together: Path, data: Path, tmp_path: Path) -> None:
    train(config_of(data, "protocon", ()), tmp_path, "whole")
    assert_same_run(tmp_path / "whole", together / "resumed", tolerance=1e-9)


def test_only_the_first_process_writes(together: Path) -> None:
    # One line an epoch, one folder a run.
    assert [row["epoch"] for row in metrics(together / "protocon")] == list(range(EPOCHS))
    assert not list(together.glob("protocon-[0-9]*"))
    labels = (together / "protocon" / "labels.csv").read_text().splitlines()
    assert len({line.split(",")[0] for line in labels}) == len(labels)
