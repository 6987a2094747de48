"""Gaussian blur of a batch, each image with its own width: two passes of a one-dimensional kernel."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def gaussian_blur(images: Tensor, sigma: Tensor, *, radius: int) -> Tensor:
    """Blur float images (n, C, H, W) with a Gaussian of standard deviation `sigma` (n,) pixels, borders reflected.

    The kernel has 2 · radius + 1 taps; a radius beyond the image is cut down to it.
    """
    radius = min(radius, images.shape[2] - 1, images.shape[3] - 1)
    if radius < 1 or not len(images):
        return images
    distance = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-0.5 * (distance / sigma[:, None]) ** 2)
    kernel = kernel / kernel.sum(dim=1, keepdim=True)
    images = _weigh(F.pad(images, (radius, radius, 0, 0), mode="reflect"), kernel, dim=3)
    return _weigh(F.pad(images, (0, 0, radius, radius), mode="reflect"), kernel, dim=2)


def _weigh(padded: Tensor, kernel: Tensor, *, dim: int) -> Tensor:
    """Sum of the images moved along `dim`, weighted by the kernel (n, 2 · radius + 1).

    Not a convolution of torch: its sums run in another order for another number of images, and a view must not
    depend on its batch.
    """
    radius = kernel.shape[1] // 2
    length = padded.shape[dim] - 2 * radius
    weights = kernel[:, :, None, None, None].unbind(1)
    total = padded.narrow(dim, radius, length) * weights[radius]
    both = torch.empty_like(total)
    for away in range(1, radius + 1):
        torch.add(padded.narrow(dim, radius - away, length), padded.narrow(dim, radius + away, length), out=both)
        total.addcmul_(both, weights[radius + away])
    return total


def visible_radius(kernel: int, largest_sigma: float) -> int:
    """Radius of a kernel of about `kernel` taps, without those beyond 3.5 sigma: together they weigh 1 / 2,000."""
    return min(kernel // 2, math.ceil(3.5 * largest_sigma))
