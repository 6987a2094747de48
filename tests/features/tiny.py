"""A tiny real encoder with random weights, and images, for tests."""

import numpy as np
import torch
from safetensors.torch import save_file
from timm import create_model
from torch import Tensor, nn

from protocon.augment.clean import CLEAN
from protocon.augment.views import WeakView
from protocon.data.imageset import ArrayImages
from protocon.features.extract import FrozenEncoder, View

NAME = "test_byobnet"
SIDE = 32
VIEWS: list[View] = [CLEAN, WeakView(flip=True), WeakView(flip=True)]


def tiny_module(seed: int = 0) -> nn.Module:
    """The encoder itself, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: nn.Module = create_model(NAME, num_classes=0)
        for buffer_name, values in module.named_buffers():
            if buffer_name.endswith("running_mean"):
                values.normal_(std=0.1)  # statistics that a training mode would notice
    return module.eval()


def save_weights(path: object, seed: int = 0) -> None:
    """Its weights in a file."""
    save_file(tiny_module(seed).state_dict(), str(path))


def tiny_images(count: int = 40, seed: int = 0, side: int = SIDE) -> ArrayImages:
    """Random images of two classes."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (count, 3, side, side), generator=generator, dtype=torch.uint8)
    return ArrayImages(pixels, np.arange(count) % 2, ["a", "b"])


PROBE = 4
"""Images that folding asks for: two of the encoder, two of its folded copy."""


class Tally:
    """A number that copies of its owner share."""

    def __init__(self) -> None:
        self.images = 0

    def __deepcopy__(self, memo: object) -> "Tally":
        return self


class CountingEncoder(nn.Module):
    """Counts the images that it, or a copy of it, is asked for."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.tally = Tally()

    def forward(self, x: Tensor) -> Tensor:
        self.tally.images += len(x)
        out: Tensor = self.module(x)
        return out


def tiny_encoder(seed: int = 0, name: str = NAME) -> tuple[FrozenEncoder, CountingEncoder]:
    """A frozen encoder, and the module in it that counts."""
    module = tiny_module(seed)
    counting = CountingEncoder(module)
    half = torch.full((3,), 0.5)
    return FrozenEncoder(name, counting, int(module.num_features), half, half), counting  # type: ignore[arg-type]


def striped_images(count: int, side: int = SIDE) -> tuple[np.ndarray, np.ndarray]:
    """Noise with no stripes, stripes across or stripes down, uint8 (n, side, side, 3), and which of the three."""
    kind = np.arange(count) % 3
    stripes = 120 * (np.arange(side) // 4 % 2)
    images = np.random.default_rng(0).integers(0, 120, (count, side, side, 3))
    images[kind == 1] += stripes[:, None, None]
    images[kind == 2] += stripes[None, :, None]
    return images.astype(np.uint8), kind
