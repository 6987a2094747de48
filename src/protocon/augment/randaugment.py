"""FixMatch's strong view: RandAugment (Cubuk et al., 2020) without a search, then cutout.

The pool and its ranges are those of FixMatch's appendix. Each image draws its own operations, with replacement, and
for each a magnitude, uniform in the range, and whether it is applied. Operations act on 8-bit pixels, one after the
other in the order drawn, exactly as in PIL; images that drew the same operation are handled together.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from protocon.augment import colour, geometry
from protocon.augment.batches import (
    PIXEL_BLOCK,
    Engine,
    PixelView,
    check_images,
    in_blocks,
    runs_fused,
    sort_groups,
    write_pixels,
)
from protocon.augment.slots import Slot
from protocon.augment.views import RandomCropFlip, WeakView
from protocon.base.draws import uniform
from protocon.errors import ConfigError

Function = Callable[[Tensor, Tensor], Tensor]
_GREY = 127


@dataclass(frozen=True)
class Operation:
    """One entry of the pool; called, it applies itself to images (n, C, H, W) uint8 with magnitudes (n,)."""

    name: str
    low: float
    high: float
    """Magnitudes are uniform in [low, high)."""
    apply: Function
    """Images uint8 (n, C, H, W) and parameters (n, k) -> images of the same shape."""
    unit: tuple[float, ...] = (1.0,)
    """The k parameters are the magnitude times this: operations that share a function are carried out together."""

    def __call__(self, images: Tensor, magnitudes: Tensor) -> Tensor:
        """The operation alone, on every image."""
        return self.apply(images, magnitudes[:, None] * torch.tensor(self.unit, device=images.device))


OPERATIONS: tuple[Operation, ...] = (
    Operation("AutoContrast", 0.0, 0.0, colour.autocontrast),
    Operation("Brightness", 0.05, 0.95, colour.brightness),
    Operation("Color", 0.05, 0.95, colour.colour),
    Operation("Contrast", 0.05, 0.95, colour.contrast),
    Operation("Equalize", 0.0, 0.0, colour.equalize),
    Operation("Identity", 0.0, 0.0, colour.identity),
    Operation("Posterize", 4.0, 9.0, colour.posterize),  # ⌊m⌋ bits: 4, 5, 6, 7 and 8 equally often
    Operation("Rotate", -30.0, 30.0, geometry.turn, (1.0, 0.0)),  # degrees
    Operation("Sharpness", 0.05, 0.95, colour.sharpness),
    Operation("ShearX", -0.3, 0.3, geometry.slide, (1.0, 0.0, 0.0)),
    Operation("ShearY", -0.3, 0.3, geometry.turn, (0.0, 1.0)),
    Operation("Solarize", 0.0, 1.0, colour.solarize),  # of 255
    Operation("TranslateX", -0.3, 0.3, geometry.slide, (0.0, 1.0, 0.0)),  # of the width
    Operation("TranslateY", -0.3, 0.3, geometry.slide, (0.0, 0.0, 1.0)),  # of the height
)


@dataclass(frozen=True)
class Draws:
    """What each image drew."""

    operation: Tensor
    """int64 (B, ops), indices into the pool."""
    magnitude: Tensor
    """float32 (B, ops), in the operations' ranges."""
    applied: Tensor
    """bool (B, ops)."""
    centre: Tensor
    """float32 (B, 2), the square's row and column as shares of the height and width."""


@dataclass(frozen=True)
class RandAugmentView:
    """The weak view, then `ops` random operations, then a grey square."""

    weak: PixelView | None = None
    """What comes first; nothing if None."""
    ops: int = 2
    """Operations drawn per image."""
    probability: float = 0.5
    """With which each drawn operation is applied."""
    cutout: float = 0.5
    """Side of the grey square as a share of the image's shorter side; 0 cuts nothing out."""
    pool: tuple[Operation, ...] = OPERATIONS
    """What is drawn from."""
    engine: Engine = "torch"

    def __post_init__(self) -> None:
        if self.ops < 0 or not self.pool:
            raise ConfigError(f"RandAugment takes ops >= 0 and a pool of operations; got {self.ops}, {self.pool}.")
        if not (0.0 <= self.probability <= 1.0 and 0.0 <= self.cutout <= 1.0):
            raise ConfigError(f"probability and cutout are in [0, 1]; got {self.probability} and {self.cutout}.")

    def __call__(self, images: Tensor, keys: Tensor) -> Tensor:
        """Strong views, float32 (B, C, h, w): the weak view's size."""
        check_images(images, keys)
        size = self.output_size(images.shape[2], images.shape[3])
        if runs_fused(self.engine, images) and self._has_kernels():
            return self._fused(images, keys)

        def make(block: Tensor, rows: slice, out: Tensor) -> None:
            write_pixels(self.pixels(block, keys[rows]), out)

        return in_blocks(images, size=size, limit=PIXEL_BLOCK, make=make)

    def pixels(self, images: Tensor, keys: Tensor) -> Tensor:
        """Strong views, uint8 (B, C, h, w)."""
        pixels = images if self.weak is None else self.weak.pixels(images, keys)
        draws = self.draw(keys)
        functions, numbers, units = self._functions()
        chosen = torch.tensor(numbers, device=keys.device)[draws.operation]
        chosen = torch.where(draws.applied, chosen, -1)
        parameters = draws.magnitude[:, :, None] * torch.tensor(units, device=keys.device)[draws.operation]
        place = torch.arange(len(keys), device=keys.device)  # where each image is in `pixels`
        for turn in range(self.ops):
            order, sizes = sort_groups(chosen[:, turn], len(functions))
            pixels = pixels.index_select(0, place[order])
            place = torch.argsort(order)
            apply_groups(pixels, functions, sizes, parameters[order, turn])
        pixels = pixels.index_select(0, place)
        return cut_out(pixels, draws.centre, share=self.cutout) if self.cutout else pixels

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """The weak view's size."""
        return (height, width) if self.weak is None else self.weak.output_size(height, width)

    def _has_kernels(self) -> bool:
        """Whether the weak view and all of the pool are among the compiled kernels."""
        from protocon.augment.fused.randaugment_kernels import CODES

        known = isinstance(self.weak, WeakView | RandomCropFlip)
        return known and all(entry.apply in CODES for entry in self.pool)

    def _fused(self, images: Tensor, keys: Tensor) -> Tensor:
        """The same views by the compiled kernels."""
        from protocon.augment.fused.randaugment_kernels import CODES, strong

        if isinstance(self.weak, WeakView):
            moves = self.weak.moves(keys, images.shape)
        else:
            # Cropped beforehand, and then not moved.
            images = images if self.weak is None else self.weak.pixels(images, keys)
            moves = torch.zeros(len(images), 2, dtype=torch.int64)
        draws = self.draw(keys)
        codes = torch.tensor([CODES[entry.apply] for entry in self.pool])[draws.operation]
        units = torch.tensor([[*entry.unit, 0.0, 0.0, 0.0][:3] for entry in self.pool])[draws.operation]
        corners, side = square(draws.centre, images.shape[2], images.shape[3], share=self.cutout)
        view = torch.empty((len(images), *images.shape[2:], images.shape[1]), dtype=torch.float32)
        strong(
            images,
            moves,
            view,
            codes=torch.where(draws.applied, codes, -1),
            parameters=draws.magnitude[:, :, None] * units,
            corners=corners,
            side=side,
        )
        return view.permute(0, 3, 1, 2)

    def _functions(self) -> tuple[dict[Function, int], list[int], list[list[float]]]:
        """The pool's functions with their number of parameters; each operation's function, and its padded unit."""
        functions = {entry.apply: len(entry.unit) for entry in self.pool if entry.apply is not colour.identity}
        index = {function: number for number, function in enumerate(functions)}
        numbers = [index.get(entry.apply, -1) for entry in self.pool]
        width = max(len(entry.unit) for entry in self.pool)
        return functions, numbers, [[*entry.unit, *[0.0] * (width - len(entry.unit))] for entry in self.pool]

    def draw(self, keys: Tensor) -> Draws:
        """What the images of these keys draw."""
        u = uniform(keys, Slot.RANDAUGMENT, 3 * self.ops + 2)
        choice, level, luck, centre = torch.split(u, [self.ops, self.ops, self.ops, 2], dim=1)
        operation = (choice * len(self.pool)).long().clamp_(max=len(self.pool) - 1)
        low = torch.tensor([entry.low for entry in self.pool], device=keys.device)[operation]
        high = torch.tensor([entry.high for entry in self.pool], device=keys.device)[operation]
        magnitude = low + (high - low) * level
        return Draws(operation=operation, magnitude=magnitude, applied=luck < self.probability, centre=centre)


def apply_groups(pixels: Tensor, functions: dict[Function, int], sizes: list[int], parameters: Tensor) -> None:
    """Apply one function to each group of images, in place.

    Args:
        pixels: uint8 (n, C, H, W), sorted by function: first those of none, then those of the first, …
        functions: with how many of an image's parameters each takes.
        sizes: of the groups.
        parameters: (n, …).
    """
    stop = sizes[0]
    for (function, width), size in zip(functions.items(), sizes[1:], strict=True):
        start, stop = stop, stop + size
        if size:
            pixels[start:stop] = function(pixels[start:stop], parameters[start:stop, :width])


def cut_out(pixels: Tensor, centre: Tensor, *, share: float) -> Tensor:
    """Paint a mid-grey square into each uint8 image (n, C, H, W), in place.

    The side is share · min(H, W), rounded; `centre` (n, 2) is in shares of the height and width, and what sticks out
    of the image is cut off. Grey is level 127, as in PIL versions of FixMatch: 0.5 to the nearest level.

    Args:
        pixels: the images, overwritten.
        centre: of each square, float32 (n, 2).
        share: side of the square as a share of the shorter side.
    """
    height, width = pixels.shape[2:]
    corners, side = square(centre, height, width, share=share)

    def outside(first: Tensor, length: int) -> Tensor:
        distance = torch.arange(length, device=pixels.device) - first[:, None]
        return ((distance < 0) | (distance >= side)).to(torch.uint8).neg_()  # 255 outside, 0 inside

    kept = outside(corners[:, 0], height)[:, None, :, None] | outside(corners[:, 1], width)[:, None, None, :]
    # Bits instead of masks, because torch's masked fills are not vectorised on a CPU.
    return pixels.bitwise_and_(kept).bitwise_or_(kept.bitwise_not_().bitwise_and_(_GREY))


def square(centre: Tensor, height: int, width: int, *, share: float) -> tuple[Tensor, int]:
    """Top and left of the square around `centre` (n, 2), int64 (n, 2), possibly outside; and its side.

    Args:
        centre: row and column as shares of the height and width, (n, 2).
        height: of the images.
        width: of the images.
        share: side of the square as a share of the shorter side.
    """
    side = round(share * min(height, width))
    return (centre * torch.tensor([height, width], device=centre.device)).long() - side // 2, side
