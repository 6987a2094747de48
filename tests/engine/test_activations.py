"""The estimate of a training step's memory against what a real step takes."""

import ctypes
import sys
from pathlib import Path

import pytest
import torch

from protocon.engine.planning.preview import activation_bytes
from protocon.networks.encoders import build_encoder
from tests.engine.zygote import Zygote

_MMAP_THRESHOLD, _SMALL = -3, 64 * 1024
"""glibc's M_MMAP_THRESHOLD, and the bytes from which a tensor gets pages of its own."""


def give_back_at_once() -> None:
    """Let every larger tensor's memory go back when it is freed.

    Else the allocator keeps pieces, more or fewer from one process to the next: the ratio was 1.13 to 1.28 with them,
    and is 1.09 to 1.10 without.
    """
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _SMALL)


def most() -> int:
    """The most KiB that this process has held; ru_maxrss begins with what the process that started it has."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def measure(file: str) -> None:
    """For a process of its own: memory of a step as a multiple of the estimate."""
    give_back_at_once()
    network = build_encoder("resnet50", input_shape=(3, 64, 64)).module

    def step(images: int) -> None:
        network.train()
        network(torch.zeros(images, 3, 64, 64)).sum().backward()

    step(2)  # gradients and libraries are there
    before = most()
    step(24)
    taken = 1024 * (most() - before)
    Path(file).write_text(str(taken / (22 * activation_bytes(network, (3, 64, 64)))))


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from Linux's /proc")
def test_activations_of_a_resnet_50_are_what_a_step_takes(zygote: Zygote, tmp_path: Path) -> None:
    ended = zygote.call(f"{__name__}:measure", str(tmp_path / "ratio"))
    assert ended.code == 0, ended.output
    assert 0.85 < float((tmp_path / "ratio").read_text()) < 1.2
