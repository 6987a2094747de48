"""Rows of all processes in rank order, and gradients that are those of one process."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.distributed.cases import double

pytestmark = pytest.mark.timeout(400)
RANKS = (0, 1)
ROWS = torch.arange(8)  # three of the first process, five of the second


def results(together: Path, name: str) -> list[dict[str, Any]]:
    return [torch.load(together / f"{name}-{rank}.pt", weights_only=True) for rank in RANKS]


@pytest.mark.parametrize("rank", RANKS)
def test_rows_are_joined_in_rank_order_with_their_types(rank: int, together: Path) -> None:
    gathered = results(together, "collectives")[rank]["gathered"]
    expected = {
        "whole": ROWS,
        "flag": ROWS % 3 == 0,
        "half": (ROWS[:, None] / 2).half().expand(8, 2),
        "none": torch.zeros(8, 0, dtype=torch.float64),
        "other": torch.full((1, 2), 7, dtype=torch.int16),
    }
    assert gathered.keys() == expected.keys()
    for name, tensor in expected.items():
        assert gathered[name].dtype == tensor.dtype
        assert torch.equal(gathered[name], tensor), name


def test_gradients_through_gathered_rows_average_to_those_of_one_process(together: Path) -> None:
    with double():
        leaf = (ROWS[:, None] * torch.tensor([1.0, 2.0])).requires_grad_()
        (expected,) = torch.autograd.grad((leaf @ leaf.T).softmax(-1).square().sum(), leaf)
    # Both processes compute the whole loss, so a row's gradient is there twice, and DDP's mean halves it.
    parts = [result["gradient"] / len(RANKS) for result in results(together, "collectives")]
    assert [len(part) for part in parts] == [3, 5]
    assert torch.allclose(torch.cat(parts), expected, atol=1e-14)
    assert expected.abs().max() > 1e-6


def test_means_are_over_processes(together: Path) -> None:
    assert [float(result["mean"]) for result in results(together, "collectives")] == [1.5, 1.5]
