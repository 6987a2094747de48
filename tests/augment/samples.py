"""Real images for the tests of the views, and PIL's answer to compare with."""

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor

from benchmarks.augment import photographs
from protocon.base.draws import fold


def photos(count: int, size: int, width: int | None = None) -> Tensor:
    """Pieces of two photographs, uint8 (count, 3, size, width or size)."""
    pixels = photographs(count, max(size, width or size))[:, :size, : width or size]
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()


def digits(count: int, size: int = 8) -> Tensor:
    """Handwritten digits, uint8 (count, 1, size, size); 8 pixels wide or a multiple."""
    pixels = torch.from_numpy((load_digits().images[:count] * (255 / 16)).astype(np.uint8))
    repeat = size // 8
    return pixels.repeat_interleave(repeat, 1).repeat_interleave(repeat, 2)[:, None].contiguous()


def some_keys(count: int, seed: int = 0) -> Tensor:
    """Keys as training makes them."""
    return fold(seed, torch.arange(count))


def to_pil(image: Tensor) -> Image.Image:
    """One image (C, H, W) for PIL."""
    return Image.fromarray(image[0].numpy() if image.shape[0] == 1 else image.permute(1, 2, 0).numpy())


def from_pil(image: Image.Image) -> Tensor:
    """PIL's image as uint8 (C, H, W)."""
    pixels = torch.from_numpy(np.array(image))
    return pixels[None] if pixels.dim() == 2 else pixels.permute(2, 0, 1)


def each_by_pil(images: Tensor, magnitudes: Tensor, change: Callable[[Image.Image, float], Image.Image]) -> Tensor:
    """What PIL makes of every image with its magnitude."""
    pairs = zip(images, magnitudes.tolist(), strict=True)
    return torch.stack([from_pil(change(to_pil(image), magnitude)) for image, magnitude in pairs])


def levels_apart(first: Tensor, second: Tensor) -> Tensor:
    """Absolute difference of two uint8 images."""
    return (first.int() - second.int()).abs()
