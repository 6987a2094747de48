"""How long a recipe would take and how much memory, on the device that is there, without its data."""

import time
from dataclasses import dataclass

import torch
from torch import nn

from protocon.base.duration import show_duration
from protocon.engine.planning.preview import activation_bytes, images_per_step
from protocon.methods import METHODS
from protocon.methods.base import Problem
from protocon.networks.encoders import build_encoder
from protocon.paper.datasets import DatasetSize
from protocon.runs.build_network import build_network
from protocon.settings.auto import Resolved, device_of, resolve_auto
from protocon.settings.config import RunConfig

_IMAGES = {"cpu": 2, "mps": 16, "cuda": 64}
_PASSES = 4
"""A forward pass of all images and forward and backward of most cost about as much as so many forward passes of all."""


@dataclass(frozen=True)
class Estimate:
    """What a run would take."""

    resolved: Resolved
    device: str
    steps: int
    seconds: float
    memory: int
    """Bytes on the device, without the program and its libraries."""

    def lines(self) -> list[str]:
        """For a person."""
        days = f"{self.seconds / 86_400:,.0f} days" if self.seconds > 2 * 86_400 else show_duration(self.seconds)
        return [
            f"{self.steps:,} steps in {self.resolved.total_epochs:,} passes over the unlabelled images",
            f"on this machine's {self.device}: roughly {days}, estimated from a forward pass of a few images",
            f"and {self.memory / 2**30:.1f} GiB for a step, beside the program and its libraries",
        ]


def estimate(config: RunConfig, size: DatasetSize, labels: int) -> Estimate:
    """Settle the settings for data of this size, build the network and time a forward pass.

    Args:
        config: settings, `auto` allowed.
        size: of the data set.
        labels: labelled images in all.
    """
    shape = (3, size.side, size.side)
    unlabelled = size.train - labels
    resolved = resolve_auto(config, shape=shape, flip=True, unlabelled=unlabelled, classes=size.classes)
    settled, device = resolved.config, device_of(config)
    network = settled.network
    encoder = build_encoder(network.encoder, input_shape=shape, norm_momentum=network.norm_momentum)
    model = build_network(settled, encoder, classes=size.classes, mean=(0.5,) * 3, std=(0.25,) * 3)
    targets = torch.arange(labels) % size.classes
    problem = Problem(size.classes, unlabelled, targets, projection_dim=network.projection_dim)
    method = METHODS[settled.method_name](settled.method, problem)
    batch = images_per_step(method, settled.optim, side=size.side, classes=size.classes)
    weights = sum(parameter.numel() * 4 for parameter in model.parameters())
    state = sum(buffer.numel() * buffer.element_size() for buffer in method.buffers())
    images = 0 if settled.data.storage == "stream" else size.train * 3 * size.side**2
    memory = 4 * weights + state + images + int(batch * activation_bytes(model, shape))
    steps = resolved.total_epochs * resolved.steps_per_epoch
    seconds = steps * _PASSES * batch * _seconds_per_image(model, shape, device)
    return Estimate(resolved, device, steps, seconds, memory)


def _seconds_per_image(model: nn.Module, shape: tuple[int, ...], device: str) -> float:
    """Of a forward pass; the faster of two, because the first warms up."""
    count = _IMAGES.get(device, 2)
    images = torch.zeros(count, *shape, device=device)
    model = model.to(device).eval()
    taken = []
    with torch.no_grad():
        for _ in range(2):
            began = time.perf_counter()
            model(images)
            if device == "cuda":
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - began)
    return min(taken) / count
