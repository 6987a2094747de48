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
    count, channels, height, width = images.shape
    distance = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    kernel = torch.exp(-0.5 * (distance / sigma[:, None]) ** 2)
    kernel = (kernel / kernel.sum(dim=1, keepdim=True)).repeat_interleave(channels, dim=0)
    # Every plane is a channel of one image, with a kernel of its own.
    planes = images.reshape(1, count * channels, height, width)
    planes = F.pad(planes, (radius, radius, radius, radius), mode="reflect")
    planes = F.conv2d(planes, kernel[:, None, None, :], groups=count * channels)
    planes = F.conv2d(planes, kernel[:, None, :, None], groups=count * channels)
    return planes.view(count, channels, height, width)


def visible_radius(kernel: int, largest_sigma: float) -> int:
    """Radius of a kernel of about `kernel` taps, without those beyond 4 sigma, which move no level by 0.1 / 255."""
    return min(kernel // 2, math.ceil(4.0 * largest_sigma))
