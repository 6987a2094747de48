"""Colour operations on uint8 batches, level for level as PIL's ImageOps and ImageEnhance.

Every function takes images (n, C, H, W) uint8, C = 1 or 3, and one magnitude per image, (n, 1) float32, and returns
uint8 images. Operations without a magnitude take one and leave it, so that all can stand in one table. Statistics are
of each image and, except for contrast, each channel.
"""

import torch
from torch import Tensor


def luma(images: Tensor) -> Tensor:
    """Grey levels (n, 1, H, W) float32, whole numbers as of `Image.convert("L")` (ITU-R 601-2)."""
    if images.shape[1] == 1:
        return images.float()
    red, green, blue = images.int().unbind(1)
    total = red.mul_(19595).add_(green, alpha=38470).add_(blue, alpha=7471).add_(1 << 15)
    return total.bitwise_right_shift_(16).float().unsqueeze(1)


def blend(degenerate: Tensor, levels: Tensor, factor: Tensor) -> Tensor:
    """Between a degenerate version (factor 0) and the image (factor 1), fractions dropped, as `Image.blend`.

    Args:
        degenerate: float32, broadcasts against the levels.
        levels: float32 (n, C, H, W), overwritten.
        factor: (n, 1).
    """
    mixed = levels.sub_(degenerate).mul_(factor[:, :, None, None]).add_(degenerate)
    return to_pixels(mixed.clamp_(0.0, 255.0))


def to_pixels(levels: Tensor) -> Tensor:
    """Drop the fractions of levels in 0 … 255; by way of int16, which is vectorised where float to uint8 is not."""
    return levels.to(torch.int16).to(torch.uint8)


def identity(images: Tensor, _: Tensor) -> Tensor:
    """The image itself."""
    return images


def autocontrast(images: Tensor, _: Tensor) -> Tensor:
    """Stretch each channel so that its darkest level becomes 0 and its brightest 255; a flat channel stays.

    Levels are ⌊255 (v − low) / (high − low)⌋, exactly; PIL's doubles land one lower where that has no fraction.
    """
    low = images.amin(dim=(2, 3), keepdim=True).float()
    high = images.amax(dim=(2, 3), keepdim=True).float()
    flat = (low == high).float()
    # A flat channel gets low = 0 and a range of 255: the identity.
    low, span = low * (1.0 - flat), (high - low) + 255.0 * flat
    # The products are whole numbers below 2^24, so float32's division is exact where it has no remainder.
    return to_pixels(images.float().sub_(low).mul_(255.0).div_(span))


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Darken towards black: factor 0 is black, 1 the image."""
    return to_pixels(images.float().mul_(factor[:, :, None, None]).clamp_(0.0, 255.0))


def colour(images: Tensor, factor: Tensor) -> Tensor:
    """Desaturate: factor 0 is grey, 1 the image. The identity where there is one channel."""
    return images if images.shape[1] == 1 else blend(luma(images), images.float(), factor)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Flatten towards the mean grey level, rounded: factor 0 is that grey, 1 the image."""
    count = images.shape[2] * images.shape[3]
    # A row's sum is a whole number below 2^24, exact in float32 in any order; the whole image's may not be.
    total = luma(images).sum(dim=3, keepdim=True).long().sum(dim=2, keepdim=True)
    return blend(((2 * total + count) // (2 * count)).float(), images.float(), factor)


def equalize(images: Tensor, _: Tensor) -> Tensor:
    """Spread each channel's levels so that they occur about equally often."""
    flat = images.reshape(-1, images.shape[2] * images.shape[3])
    planes = flat.shape[0]
    # Each plane counts in, and reads from, 256 entries of its own.
    index = flat.long().add_(torch.arange(0, planes * 256, 256, device=images.device)[:, None]).view(-1)
    histogram = torch.bincount(index, minlength=planes * 256).view(planes, 256)
    # The steps go up to the brightest level present, not past it.
    levels = torch.arange(256, device=images.device)
    brightest = (levels * (histogram > 0)).amax(dim=1, keepdim=True)
    step = (flat.shape[1] - histogram.gather(1, brightest)) // 255
    below = histogram.cumsum(dim=1) - histogram
    table = ((step // 2 + below) // step.clamp(min=1)).clamp_(max=255)
    # With too few pixels to spread (step 0), PIL leaves the channel alone.
    table = torch.where(step == 0, levels, table).to(torch.uint8)
    return table.view(-1).index_select(0, index).view(images.shape)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the leading ⌊bits⌋ bits of every level."""
    mask = (256.0 - torch.exp2(8.0 - bits.floor().clamp_(1.0, 8.0))).to(torch.uint8)
    return images & mask[:, :, None, None]


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Blur: factor 0 is PIL's SMOOTH filter (3 × 3, centre weight 5 of 13), 1 the image. Borders stay."""
    changed = images.clone()
    if min(images.shape[2:]) < 3:
        return changed
    levels = images.to(torch.int16)
    rows = (levels[..., :-2] + levels[..., 1:-1]).add_(levels[..., 2:])
    total = (rows[..., :-2, :] + rows[..., 1:-1, :]).add_(rows[..., 2:, :])
    inner = levels[..., 1:-1, 1:-1]
    # Thirteenths never fall on a half, so adding it and dropping the fraction rounds as PIL does.
    smooth = total.add_(inner, alpha=4).float().mul_(1.0 / 13.0).add_(0.5).floor_()
    changed[..., 1:-1, 1:-1] = blend(smooth, inner.float(), factor)
    return changed


def solarize(images: Tensor, share: Tensor) -> Tensor:
    """Invert every level at or above share · 255."""
    threshold = (share * 255.0).ceil().to(torch.int16)[:, :, None, None]
    # The sign of threshold - 1 - level, spread over all bits: 255 where the level is inverted, else 0.
    # (Comparisons of bytes are not vectorised on a CPU.)
    inverted = ((threshold - 1) - images.to(torch.int16)).bitwise_right_shift_(15).to(torch.uint8)
    return inverted.bitwise_xor_(images)
