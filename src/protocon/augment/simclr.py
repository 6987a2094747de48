"""SimCLR's view (Chen et al., 2020), the strong view of large images: crop, flip, colour jitter, grey, blur."""

from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment.batches import (
    FLOAT_BLOCK,
    Engine,
    check_images,
    in_blocks,
    runs_fused,
    sort_groups,
    write_planes,
)
from protocon.augment.blur import gaussian_blur, tap_weights, visible_radius
from protocon.augment.crops import check_scale
from protocon.augment.jitter import HUE, adjustment, hue_turn, jitter_sorted, to_grey
from protocon.augment.resized_crop import Taps, resample
from protocon.augment.slots import Slot
from protocon.augment.views import RandomCropFlip, check_size
from protocon.base.draws import uniform
from protocon.errors import ConfigError

_SIGMAS = (0.1, 2.0)
_KERNEL_SHARE = 0.1


@dataclass(frozen=True)
class Draws:
    """What each image drew, besides its crop."""

    factors: Tensor
    """float32 (B, 4): of brightness, contrast and saturation, and the turn of the hue."""
    turns: Tensor
    """int64 (B, 4): which of those comes first, second, …"""
    jittered: Tensor
    """bool (B,): whether they are applied."""
    greyed: Tensor
    """bool (B,)."""
    blurred: Tensor
    """bool (B,)."""
    sigma: Tensor
    """float32 (B,): of the blur, in pixels."""


@dataclass(frozen=True)
class SimCLRView:
    """Random resized crop, mirrored; then with their probabilities colour jitter, grey, and blur; in this order.

    (B, C, H, W) uint8 -> (B, C, size, size) float32. With one channel, saturation, hue and grey change nothing.
    """

    size: int
    """Side of the view in pixels."""
    strength: float = 1.0
    """Scale s of the jitter: ±0.8 s for brightness, contrast and saturation, ±0.2 s of a turn for hue. The paper
    takes 0.5 for CIFAR."""
    scale: tuple[float, float] = (0.08, 1.0)
    """Lowest and highest share of the image's area."""
    ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
    """Lowest and highest width / height of the crop."""
    flip: bool = True
    """Mirror left to right with probability 1/2."""
    jitter: float = 0.8
    """Probability of the colour jitter."""
    grey: float = 0.2
    """Probability of losing all colour."""
    blur: float = 0.5
    """Probability of the Gaussian blur, sigma uniform in 0.1 … 2 pixels, kernel a tenth of the side. The paper takes
    0 for CIFAR."""
    engine: Engine = "torch"

    def __post_init__(self) -> None:
        check_size(self.size)
        check_scale(self.scale, self.ratio)
        if not 0.0 <= self.strength <= 2.5:
            raise ConfigError(f"strength is in [0, 2.5], so that hue turns by half at most; got {self.strength}.")
        for name in ("jitter", "grey", "blur"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} is a probability, in [0, 1]; got {getattr(self, name)}.")

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """SimCLR views, float32 (B, C, size, size)."""
        check_images(images, keys)
        crop = RandomCropFlip(self.size, scale=self.scale, ratio=self.ratio, flip=self.flip)
        columns, rows = crop.taps(keys, images.shape[2], images.shape[3])
        draws = self.draw(keys)
        if runs_fused(self.engine, images):
            return self._fused(images, (columns, rows), draws)
        turn = torch.where(draws.jittered, hue_turn(draws.turns), -1)
        coefficients = adjustment(draws.turns, draws.factors.gather(1, draws.turns))
        longest, finish = self._finish(draws)

        def make(block: Tensor, part: slice, out: Tensor) -> None:
            # Sorted by when their hue changes (-1: never), so that each step's images are a slice.
            order, sizes = sort_groups(turn[part], 4)
            chosen = order + part.start
            view = resample(block.index_select(0, order), columns[chosen], rows[chosen])
            changed = chosen[sizes[0] :]
            jitter_sorted(view[sizes[0] :], coefficients[changed], draws.factors[changed, HUE], sizes[1:])
            # Sorted again, by what else is done to them.
            again, sizes = sort_groups(finish[chosen], 2 * longest + 2)
            view = _grey_and_blur(view.index_select(0, again), draws.sigma[chosen[again]], sizes[1:])
            # Sums are in [0, 1] up to rounding.
            write_planes(view.index_select(0, torch.argsort(order[again])).clamp_(0.0, 1.0), out)

        return in_blocks(images, size=(self.size, self.size), limit=FLOAT_BLOCK, make=make)

    def _fused(self, images: Tensor, taps: tuple[Taps, Taps], draws: Draws) -> Tensor:
        """The same views by the compiled kernels."""
        from protocon.augment.fused.simclr_kernels import simclr

        longest, radius = self._radius(draws)
        out = torch.empty((len(images), self.size, self.size, images.shape[1]), dtype=torch.float32)
        simclr(
            images,
            taps,
            out,
            jittered=draws.jittered,
            turns=draws.turns,
            factors=draws.factors,
            greyed=draws.greyed,
            radius=radius,
            weights=tap_weights(draws.sigma, radius, longest=longest),
        )
        return out.permute(0, 3, 1, 2)

    def _radius(self, draws: Draws) -> tuple[int, Tensor]:
        """The longest radius of a blur, and each image's, (B,); 0: sharp."""
        kernel = round(_KERNEL_SHARE * self.size)
        longest = int(visible_radius(torch.tensor([_SIGMAS[1]]), kernel=kernel))
        return longest, visible_radius(draws.sigma, kernel=kernel) * draws.blurred

    def _finish(self, draws: Draws) -> tuple[int, Tensor]:
        """The longest radius of a blur, and how each image ends, (B,): twice its radius (0: sharp), plus 1 if grey."""
        longest, radius = self._radius(draws)
        return longest, 2 * radius + draws.greyed

    def draw(self, keys: Tensor) -> Draws:
        """What the images of these keys draw, besides their crop."""
        u = uniform(keys, Slot.SIMCLR, 12)
        # Three factors around 1 and never below 0; a turn around 0.
        low = [max(0.0, 1.0 - 0.8 * self.strength)] * 3 + [-0.2 * self.strength]
        high = [1.0 + 0.8 * self.strength] * 3 + [0.2 * self.strength]
        lowest, highest = torch.tensor([low, high], device=keys.device)
        return Draws(
            factors=lowest + (highest - lowest) * u[:, :4],
            turns=torch.argsort(u[:, 4:8], dim=1),
            jittered=u[:, 8] < self.jitter,
            greyed=u[:, 9] < self.grey,
            blurred=u[:, 10] < self.blur,
            sigma=_SIGMAS[0] + (_SIGMAS[1] - _SIGMAS[0]) * u[:, 11],
        )


def _grey_and_blur(images: Tensor, sigma: Tensor, sizes: list[int]) -> Tensor:
    """Finish images that are sorted by how: `sizes` are of sharp, sharp and grey, radius 1, radius 1 and grey, ….

    In place.
    """
    stop = 0
    for number, size in enumerate(sizes):
        start, stop = stop, stop + size
        if size and number % 2:
            to_grey(images[start:stop])
    sharp = sizes[0] + sizes[1]
    radii = [plain + grey for plain, grey in zip(sizes[2::2], sizes[3::2], strict=True)]
    images[sharp:] = gaussian_blur(images[sharp:], sigma[sharp:], radii)
    return images
