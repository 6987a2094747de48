"""Colour jitter on float batches, as torchvision's `ColorJitter`: brightness, contrast, saturation, hue.

Images are float32 (n, C, H, W) in [0, 1], C = 1 or 3, and nothing is rounded between steps. Brightness, contrast and
saturation all add up the image, its luma and its mean luma, and differ in the coefficients only; so the images of a
batch take such a step together, whichever of the three each of them does.
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
    coefficients = adjustment(order, factors.gather(1, order))[rows]
    jitter_sorted(changed, coefficients, factors[rows, HUE], sizes[1:])
    return changed.index_select(0, torch.argsort(rows))


def hue_turn(order: Tensor) -> Tensor:
    """At which of its four turns each image changes its hue, (n,) int64."""
    return (order == HUE).int().argmax(dim=1)


def jitter_sorted(images: Tensor, coefficients: Tensor, shift: Tensor, sizes: list[int]) -> None:
    """`jitter` in place, of images sorted by their hue turn, with `sizes` images at each of the four.

    So the images whose hue changes next are a slice of the batch, and need not be copied.

    Args:
        images: (n, C, H, W).
        coefficients: (n, 4, 3), of each image's adjustment at each turn.
        shift: (n,), of the hue.
        sizes: how many images change their hue at each turn.
    """
    stop = 0
    for turn, size in enumerate(sizes):
        start, stop = stop, stop + size
        for rest in (slice(0, start), slice(stop, None)):
            if len(images[rest]):
                adjust(images[rest], coefficients[rest, turn])
        if size:
            shift_hue(images[start:stop], shift[start:stop])


def adjustment(kind: Tensor, factor: Tensor) -> Tensor:
    """Coefficients of the image, its luma and its mean luma that make the adjustments of this kind; HUE: none.

    `kind` and `factor` have any one shape, and the result one more dimension of 3. Factor 0 gives black, the mean grey
    or the grey image; 1 the image; above 1 goes away from those.
    """
    rest = 1.0 - factor
    image = torch.where(kind == HUE, 1.0, factor)
    return torch.stack([image, rest * (kind == SATURATION), rest * (kind == CONTRAST)], dim=-1)


def adjust(images: Tensor, coefficients: Tensor) -> Tensor:
    """Add up each image, its luma and its mean luma by their coefficients (n, 3), clamped to [0, 1]. In place."""
    of_image, of_luma, of_mean = coefficients[:, :, None, None, None].unbind(1)
    grey = luma(images)
    # Rows are summed as floats, each by itself; their sums as whole numbers, which add up to the same in any order.
    # So an image's mean does not depend on its batch.
    total = (grey.sum(dim=3, keepdim=True) * _SUM_STEPS).round_().long().sum(dim=2, keepdim=True)
    mean = total.float() / (_SUM_STEPS * grey.shape[2] * grey.shape[3])
    grey.mul_(of_luma).add_(mean * of_mean)
    return torch.addcmul(grey, images, of_image, out=images).clamp_(0.0, 1.0)


def luma(images: Tensor) -> Tensor:
    """Grey levels, a new (n, 1, H, W); those of one channel are itself."""
    if images.shape[1] == 1:
        return images.clone()
    red, green, blue = images.unbind(1)
    return red.mul(_RED).add_(green, alpha=_GREEN).add_(blue, alpha=_BLUE).unsqueeze(1)


def shift_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn each pixel's hue by `shift` (n,), in full turns, keeping its HSV saturation and value. In place.

    With hue h in turns and t(x) = clamp(6 |h − x| − 1, 0, 1), HSV says red = low + chroma · t(1/2),
    green = high − chroma · t(1/3), blue = high − chroma · t(2/3): no cases to tell apart.
    """
    if images.shape[1] == 1:
        return images
    red, green, blue = images.unbind(1)
    high = torch.maximum(red, green)
    torch.maximum(high, blue, out=high)
    low = torch.minimum(red, green)
    torch.minimum(low, blue, out=low)
    chroma = high - low
    # Sixths of a turn times chroma, by the formula of the largest channel. Weights of exactly 0 or 1 select, because
    # torch.where is not vectorised on a CPU. Where two channels are largest their formulas agree.
    hue = (red - green).add_(chroma, alpha=4.0)
    spare = (blue - red).add_(chroma, alpha=2.0)
    largest = torch.eq(green, high, out=torch.empty_like(hue))
    hue.lerp_(spare, largest)
    hue.lerp_(torch.sub(green, blue, out=spare), torch.eq(red, high, out=largest))
    # Grey pixels have no hue; any will do, since chroma 0 multiplies it. One turn more makes all hues positive.
    six = torch.mul(chroma, 6.0, out=largest).clamp_(min=1e-8)
    hue.div_(six).add_((1.0 + shift)[:, None, None]).frac_()
    # chroma · t(x) is six · clamp(|h − x|, 1/6, 2/6) − chroma.
    low.sub_(chroma)
    high.add_(chroma)
    for channel, base, sign, centre in ((red, low, 1.0, 3.0), (green, high, -1.0, 2.0), (blue, high, -1.0, 4.0)):
        ramp = torch.sub(hue, centre / 6.0, out=spare).abs_().clamp_(1.0 / 6.0, 2.0 / 6.0)
        torch.addcmul(base, six, ramp, value=sign, out=channel)
    return images


def to_grey(images: Tensor) -> Tensor:
    """Replace every channel by the grey levels. In place."""
    return images.copy_(luma(images))
