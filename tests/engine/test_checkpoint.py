"""Checkpoints: all or nothing, and any wrong byte is noticed."""

from pathlib import Path

import pytest
import torch

from protocon.engine.loop.checkpoint import (
    load_checkpoint,
    newest_checkpoint,
    optimizer_tensors,
    restore_optimizer,
    save_checkpoint,
    set_aside,
    write_bytes,
)
from protocon.errors import RunError

PARTS = {"network": {"weight": torch.arange(6.0).view(2, 3)}, "method": {"bank.label": torch.tensor([1, -1])}}


def test_round_trip(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 3, PARTS, {"step": 21})
    checkpoint = load_checkpoint(path)
    assert checkpoint.facts == {"step": 21, "epoch": 3, "epoch_step": 0}
    assert torch.equal(checkpoint.part("network")["weight"], PARTS["network"]["weight"])
    assert torch.equal(checkpoint.part("method")["bank.label"], PARTS["method"]["bank.label"])


def test_only_the_newest_two_are_kept(tmp_path: Path) -> None:
    for epoch in (1, 2, 9, 10):
        save_checkpoint(tmp_path, epoch, PARTS, {})
    assert sorted(p.stem for p in tmp_path.iterdir()) == ["epoch-00009", "epoch-00010"]


def test_every_flipped_or_missing_byte_is_noticed(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, PARTS, {"step": 1})
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        with pytest.raises(RunError, match="damaged"):
            load_checkpoint(path)
        path.write_bytes(whole[:position])
        with pytest.raises(RunError, match="damaged"):
            load_checkpoint(path)


def test_newest_whole_checkpoint_is_found(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, PARTS, {"step": 1})
    newer = save_checkpoint(tmp_path, 2, PARTS, {"step": 2})
    newer.write_bytes(newer.read_bytes()[:-1])
    found, damaged = newest_checkpoint(tmp_path)
    assert found is not None
    assert load_checkpoint(found).facts["epoch"] == 1
    assert list(damaged) == [newer]
    assert "epoch-00002" in damaged[newer]
    assert newest_checkpoint(tmp_path / "nowhere") == (None, {})


def test_checkpoints_are_in_the_order_of_training(tmp_path: Path) -> None:
    for epoch, step in ((3, 0), (2, 5), (2, 11), (10, 0)):
        newest = save_checkpoint(tmp_path, epoch, PARTS, {}, epoch_step=step, keep=9)
    assert newest_checkpoint(tmp_path) == (newest, {})
    set_aside(newest)
    assert newest_checkpoint(tmp_path)[0] == tmp_path / "epoch-00003.safetensors"
    save_checkpoint(tmp_path, 3, PARTS, {}, epoch_step=1)
    kept = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert kept == ["epoch-00003-step-000001.safetensors", "epoch-00003.safetensors"]


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_bytes(file, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        write_bytes(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_optimizer_round_trip_continues_identically() -> None:
    def fresh() -> tuple[torch.nn.Parameter, torch.optim.SGD]:
        weight = torch.nn.Parameter(torch.ones(3))
        return weight, torch.optim.SGD([weight], lr=0.1, momentum=0.9, nesterov=True)

    def advance(weight: torch.nn.Parameter, optimizer: torch.optim.SGD) -> None:
        weight.grad = weight.detach() ** 2
        optimizer.step()

    weight, optimizer = fresh()
    advance(weight, optimizer)
    other, restored = fresh()
    with torch.no_grad():
        other.copy_(weight)
    restore_optimizer(restored, optimizer_tensors(optimizer))
    advance(weight, optimizer)
    advance(other, restored)
    assert torch.equal(weight, other)
