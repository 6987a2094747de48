"""A trained network with its pre-processing inside: bytes of images in, class probabilities out."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from protocon.base.draws import uniform
from protocon.data.files.decode import MANY_TIMES
from protocon.runs.trained import TrainedRun

INPUT, OUTPUT = "images", "probabilities"
FEATURES = "features"


class Portable(nn.Module):
    """uint8 images (n, C, H, W), or float32 embeddings (n, D) → probabilities (n, classes).

    Scaling to [0, 1], normalisation and softmax are inside, so a caller needs no recipe but the size. The projector is
    left out: no prediction uses it.
    """

    def __init__(self, run: TrainedRun) -> None:
        super().__init__()
        network = copy.deepcopy(run.network).float().to(memory_format=torch.contiguous_format).eval()
        self.register_buffer("mean", network.mean)
        self.register_buffer("std", network.std)
        self.encoder = network.encoder
        self.classifier = network.classifier
        self.images = len(run.shape) == 3
        self.requires_grad_(False)

    def forward(self, inputs: Tensor) -> Tensor:
        """Class probabilities."""
        mean, std = self.get_buffer("mean"), self.get_buffer("std")
        if self.images:
            inputs = inputs.float() / 255.0
            mean, std = mean.view(1, -1, 1, 1), std.view(1, -1, 1, 1)
        probabilities: Tensor = self.classifier(self.encoder((inputs - mean) / std)).softmax(-1)
        return probabilities


def example_inputs(run: TrainedRun, count: int) -> Tensor:
    """Inputs of the right shape to trace and to compare with: noise of all levels, or of the features' spread."""
    keys = torch.arange(count, dtype=torch.int64)
    length = 1
    for side in run.shape:
        length *= side
    noise = uniform(keys, 0, length).view(count, *run.shape)
    if len(run.shape) == 3:
        return (noise * 256.0).floor().clamp(max=255.0).to(torch.uint8)
    return (noise * 4.0 - 2.0) * run.network.std.float() + run.network.mean.float()


def describe_run(run: TrainedRun) -> dict[str, Any]:
    """What a caller must know: the input, how to prepare it, and what the output means."""
    images = len(run.shape) == 3
    content: dict[str, Any] = {
        "input": INPUT if images else FEATURES,
        "type": "uint8" if images else "float32",
        "shape": ["n", *run.shape],
        "output": OUTPUT,
        "class_names": list(run.class_names),
        "preparation": _preparation(run) if images else f"float32 rows of {run.shape[0]} features, as they are",
        "method": run.config.method_name,
        "encoder": run.config.network.encoder,
    }
    return content


def _preparation(run: TrainedRun) -> str:
    channels, side = run.shape[0], run.shape[-1]
    colour = "RGB" if channels == 3 else "grey (ITU-R 601 luma)"
    whole = run.config.data.fit == "squash"
    square = "resize the whole to" if whole else "cut out the centred square of the shorter side; resize it to"
    return (
        f"apply the EXIF rotation; lay transparency on white; convert to 8-bit {colour}; {square} {side}×{side} "
        f"(bilinear with antialiasing, as Pillow's BILINEAR; if its shorter side is less than {side / MANY_TIMES:g} "
        "pixels, bicubic, as Pillow's BICUBIC); channels first, levels 0 to 255. Scaling, normalisation and softmax "
        "are inside"
    )
