"""The estimate of a training step's memory against what a real step takes."""

import subprocess
import sys

import pytest

MEASURE = """
from pathlib import Path
import torch
from protocon.engine.planning.preview import activation_bytes
from protocon.networks.encoders import build_encoder

def most():  # of this program's own: ru_maxrss begins with what the process that started it has
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

torch.set_num_threads(1)
network = build_encoder("resnet50", input_shape=(3, 64, 64)).module
def step(images):
    network.train()
    network(torch.zeros(images, 3, 64, 64)).sum().backward()
step(2)  # gradients and libraries are there
before = most()
step(24)
taken = 1024 * (most() - before)
print(taken / (22 * activation_bytes(network, (3, 64, 64))))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from Linux's /proc")
def test_activations_of_a_resnet_50_are_what_a_step_takes() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert 0.75 < float(done.stdout) < 1.25
