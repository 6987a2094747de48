"""Processes whose states differ stop at the end of the epoch, and say where."""

import json
from pathlib import Path

import pytest
import torch

from protocon.engine.loop.rank_check import checksum


@pytest.mark.timeout(400)
def test_one_changed_number_is_named_by_every_process(together: Path) -> None:
    messages = [json.loads((together / f"corrupted-{rank}.json").read_text()) for rank in (0, 1)]
    assert messages[0] == messages[1]
    assert "after epoch 1, method.bank.similarity on process 1 is not what it is on process 0" in messages[0]
    epochs = [json.loads(line)["epoch"] for line in (together / "corrupted" / "metrics.jsonl").read_text().splitlines()]
    assert epochs == [0]  # nothing is written of the epoch that went wrong


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.int64, torch.float16, torch.float32, torch.float64])
def test_a_checksum_notices_any_changed_element_and_any_exchange(dtype: torch.dtype) -> None:
    tensor = (torch.arange(60).view(3, 20) % 2).to(dtype)
    before = checksum(tensor)
    assert before.dtype == torch.int64
    seen = {int(before)}
    for place in range(60):
        changed = tensor.clone().view(-1)
        changed[place] = 1 - changed[place].to(torch.int64)
        seen.add(int(checksum(changed)))
    assert len(seen) == 61
    assert int(checksum(tensor.flip(1))) not in seen
    assert torch.equal(checksum(tensor.T.contiguous().T), before)


def test_a_checksum_covers_tensors_of_many_chunks() -> None:
    tensor = torch.zeros(2**21 + 3, dtype=torch.uint8)
    sums = {int(checksum(tensor))}
    for place in (0, 2**20, 2**21, 2**21 + 2):
        changed = tensor.clone()
        changed[place] = 1
        sums.add(int(checksum(changed)))
    assert len(sums) == 5
