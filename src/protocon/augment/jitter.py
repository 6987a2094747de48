"""Colour jitter on float batches, as torchvision's `ColorJitter`: brightness, contrast, saturation, hue.

Images are float32 (n, C, H, W) in [0, 1], C = 1 or 3, and mostly changed in place; factors are (n,) float32. Nothing is
rounded between steps. Brightness, contrast and saturation all are `scale · image + grey · luma(image) + offset`, clamped, with
other coefficients; so the images of a batch take such a step together whichever of the three each of them does.
"""

import torch
from torch import Tensor

from protocon.augment.batches import sort_groups

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
_RED, _GREEN, _BLUE = 0.299, 0.587, 0.114  # ITU-R 601-2, as PIL
_SUM_STEPS = 4096.0


def jitter(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Apply all four adjustments to each image in its own order; returns new images.

    Args:
        images: left as they are.
        factors: (n, 4), of brightness, contrast, saturation and hue.
        order: int64 (n, 4), each row a permutation of 0 … 3: which adjustment comes first, second, …
    """
    rows, sizes = sort_groups(hue_turn(order), 4)
    changed = images.index_select(0, rows)
    jitter_sorted(changed, factors[rows], order[rows], sizes[1:])
    return changed.index_select(0, torch.argsort(rows))


def hue_turn(order: Tensor) -> Tensor:
    """At which of its four turns each image changes its hue, (n,) int64."""
    return (order == HUE).int().argmax(dim=1)


def jitter_sorted(images: Tensor, factors: Tensor, order: Tensor, sizes: list[int]) -> None:
    """`jitter` in place, of images sorted by their hue turn, with `sizes` images at each of the four.

    So the images whose hue changes next are a slice of the batch, and need not be copied.
    """
    stop = 0
    for turn, size in enumerate(sizes):
        adjust(images, order[:, turn], factors.gather(1, order[:, turn, None])[:, 0])
        start, stop = stop, stop + size
        if images.shape[1] == 3 and size:
            shift_hue(images[start:stop], factors[start:stop, HUE])


def adjust(images: Tensor, kind: Tensor, factor: Tensor) -> Tensor:
    """Change each image's brightness, contrast or saturation, by `kind` (n,); HUE leaves it alone. In place.

    Factor 0 gives black, the mean grey or the grey image; 1 the image; above 1 goes away from those.
    """
    one_channel = images.shape[1] == 1
    toned = kind == SATURATION
    kept = (kind == HUE) | (toned & one_channel)
    scale = torch.where(kept, 1.0, factor)[:, None, None, None]
    offset = torch.where(kind == CONTRAST, (1.0 - factor) * _mean_luma(images), 0.0)[:, None, None, None]
    if not one_channel:
        towards_grey = torch.where(toned, 1.0 - factor, 0.0)[:, None, None, None]
        offset = luma(images).mul_(towards_grey).add_(offset)
    return torch.addcmul(offset, images, scale, out=images).clamp_(0.0, 1.0)


def _mean_luma(images: Tensor) -> Tensor:
    """Mean grey level, (n,).

    Rows are summed as floats, each by itself; their sums as whole numbers, which add up to the same in any order. So
    an image's mean does not depend on its batch.
    """
    rows = (images.sum(dim=3) * _SUM_STEPS).round_().long().sum(dim=2)
    means = rows.float() / (_SUM_STEPS * images.shape[2] * images.shape[3])
    return luma(means[:, :, None, None])[:, 0, 0, 0]


def luma(images: Tensor) -> Tensor:
    """Grey levels, (n, 1, H, W); the images themselves if they have one channel."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.unbind(1)
    return red.mul(_RED).add_(green, alpha=_GREEN).add_(blue, alpha=_BLUE).unsqueeze(1)


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn each pixel's hue by `shift` (n,), in full turns, keeping its HSV saturation and value. In place.

    With hue h in sixths of a turn and t(x) = clamp(|h − x| − 1, 0, 1), HSV says red = low + chroma · t(3),
    green = high − chroma · t(2), blue = high − chroma · t(4): no cases to tell apart.
    """
    red, green, blue = images.unbind(1)
    high = torch.maximum(torch.maximum(red, green), blue)
    low = torch.minimum(torch.minimum(red, green), blue)
    chroma = high - low
    # Sixths of a turn times chroma, by the formula of the largest channel. Weights of exactly 0 or 1 select, because
    # torch.where is not vectorised on a CPU. Where two channels are largest their formulas agree.
    hue = (red - green).add_(chroma, alpha=4.0)
    largest = torch.empty_like(red)
    hue.lerp_((blue - red).add_(chroma, alpha=2.0), torch.eq(green, high, out=largest))
    hue.lerp_(green - blue, torch.eq(red, high, out=largest))
    # Grey pixels have no hue; any will do, since chroma 0 multiplies it.
    hue.div_((6.0 * chroma).clamp_(min=1e-8)).add_(shift[:, None, None])
    hue.sub_(hue.floor()).mul_(6.0)

    def ramp(centre: float) -> Tensor:
        return (hue - centre).abs_().sub_(1.0).clamp_(0.0, 1.0)

    torch.addcmul(low, chroma, ramp(3.0), out=red)
    torch.addcmul(high, chroma, ramp(2.0), value=-1.0, out=green)
    torch.addcmul(high, chroma, ramp(4.0), value=-1.0, out=blue)
    return images


def to_grey(images: Tensor, chosen: Tensor) -> Tensor:
    """Replace every channel of the chosen images, bool (n,), by their grey levels. In place."""
    if images.shape[1] == 1:
        return images
    # A weight of exactly 0 or 1 gives exactly one or the other, without copying the chosen images out and in.
    return images.lerp_(luma(images), chosen.to(images.dtype)[:, None, None, None])
