"""Square images of a given size from arrays of images."""

import torch
import torch.nn.functional as F
from torch import Tensor

from protocon.data.files.decode import much_enlarged

_CHUNK_VALUES = 2**24  # float32 copies of at most 64 MiB at a time


def resize_images(images: Tensor, size: int, *, squash: bool = False) -> Tensor:
    """Resize uint8 (N, C, H, W) to (N, C, size, size): their centre squares, or the whole of them.

    Bilinear with antialiasing, or bicubic where they grow to more than twice their side, and rounded to the nearest
    integer, as files are decoded.

    Args:
        images: uint8 (N, C, H, W).
        size: side of the result.
        squash: keep the whole picture, whatever its aspect ratio, instead of its centre.
    """
    height, width = images.shape[-2:]
    if (height, width) == (size, size):
        return images
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    part = images if squash else images[..., top : top + side, left : left + side]
    if side == size and not squash:
        return part.contiguous()
    mode = "bicubic" if much_enlarged(side, size) else "bilinear"
    rows = max(1, _CHUNK_VALUES // (images.shape[1] * max(part.shape[-1] * part.shape[-2], size**2)))
    result = torch.empty((*images.shape[:2], size, size), dtype=torch.uint8)
    for start in range(0, len(images), rows):
        chunk = part[start : start + rows].float()
        resized = F.interpolate(chunk, size=(size, size), mode=mode, antialias=True)
        result[start : start + rows] = resized.round_().clamp_(0, 255).to(torch.uint8)
    return result
