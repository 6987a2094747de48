"""Gaussian blur of a batch, each image with its own width: two passes of a one-dimensional kernel."""

import torch
import torch.nn.functional as F
from torch import Tensor

_SIGMAS = 3.5  # taps beyond weigh 1 / 2,000 together


def visible_radius(sigma: Tensor, *, kernel: int) -> Tensor:
    """Taps on either side that count, (n,) int64: those of a kernel of `kernel` taps, up to 3.5 sigma."""
    return (sigma * _SIGMAS).ceil().long().clamp_(max=kernel // 2)


def tap_weights(sigma: Tensor, radius: Tensor, *, longest: int) -> Tensor:
    """Weights of a Gaussian's taps by distance, (n, longest + 1); both sides together add up to 1.

    Args:
        sigma: standard deviations in pixels, (n,).
        radius: taps on either side, (n,) int64; those further away weigh 0.
        longest: largest radius.
    """
    distance = torch.arange(longest + 1, device=sigma.device)
    weights = torch.exp(-0.5 * (distance / sigma[:, None]) ** 2) * (distance <= radius[:, None])
    return weights / (2.0 * weights.sum(dim=1, keepdim=True) - weights[:, :1])


def gaussian_blur(images: Tensor, sigma: Tensor, sizes: list[int]) -> Tensor:
    """Blur float images with a Gaussian, borders reflected.

    Args:
        images: (n, C, H, W), sorted by their radius.
        sigma: (n,), standard deviations in pixels.
        sizes: how many images have radius 1, 2, …, all below the image's side; a kernel has 2 · radius + 1 taps.
    """
    if not len(images):
        return images
    radius = torch.arange(1, len(sizes) + 1, device=images.device)
    radius = torch.repeat_interleave(radius, torch.tensor(sizes, device=images.device))
    weights = tap_weights(sigma, radius, longest=len(sizes))
    # Rows first: their sums are contiguous images, those of columns have the padding between them.
    return _weigh(_weigh(images, weights, sizes, dim=2), weights, sizes, dim=3)


def _weigh(images: Tensor, weights: Tensor, sizes: list[int], *, dim: int) -> Tensor:
    """Sum of the images moved along `dim` both ways, weighted by their distance (n, longest + 1).

    Not a convolution of torch: its sums run in another order for another number of images, and a view must not depend
    on its batch.
    """
    longest = len(sizes)
    padded = F.pad(images, (longest, longest, 0, 0) if dim == 3 else (0, 0, longest, longest), mode="reflect")
    # Moves are of the flattened image: sums for the padding are computed too, and skipped in the end.
    flat, step = padded.flatten(1), padded.stride(dim)
    length = flat.shape[1] - 2 * longest * step
    columns = weights[:, :, None].unbind(1)
    total = flat.narrow(1, longest * step, length) * columns[0]
    both = torch.empty_like(total)
    done = 0
    for away, smaller in enumerate([0, *sizes[:-1]], start=1):
        # Images of a smaller radius are done: the rest of the batch continues.
        done += smaller
        before, after = ((longest + side * away) * step for side in (-1, 1))
        pair = torch.add(flat[done:, before : before + length], flat[done:, after : after + length], out=both[done:])
        total[done:].addcmul_(pair, columns[away][done:])
    return total.as_strided(images.shape, (length, *padded.stride()[1:]))
