"""Features of every view of every image, from the cache or computed once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from protocon.base.draws import fold
from protocon.data.imageset import ImageSet
from protocon.errors import ConfigError
from protocon.features.fold import fold_norms
from protocon.features.key import describe, features_key, images_digest, weights_digest
from protocon.features.table import FeatureTable

_PURPOSE = 301  # what these draws are for, so that no other key of the same seed is among them
_BATCH = 16
"""Images at a time: on a CPU activations of so few stay in the cache, a quarter faster than 64."""

View = Callable[[Tensor, Tensor], Tensor]
"""uint8 images and int64 keys → float images; a dataclass whose fields are all of its settings."""


@dataclass(frozen=True)
class FrozenEncoder:
    """An encoder whose weights stay as they are, with what its input is normalised by."""

    name: str
    module: nn.Module
    features: int
    """D."""
    mean: Tensor
    """Per channel, of pixels in [0, 1]."""
    std: Tensor

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Features (n, D) float32 of float images (n, C, H, W)."""
        shape = (1, -1, 1, 1)
        values: Tensor = self.module((images - self.mean.view(shape)) / self.std.view(shape))
        return values.float()

    def folded(self, shape: tuple[int, ...]) -> "FrozenEncoder":
        """The same features sooner: see `fold_norms`. Images are (C, H, W)."""
        ramp = torch.linspace(-1, 1, 2 * shape[0] * shape[1] * shape[2], device=self.mean.device)
        return replace(self, module=fold_norms(self.module, ramp.view(2, *shape)))

    def digest(self) -> str:
        """Hash of the weights and of the normalisation."""
        return f"{weights_digest(self.module)} {self.mean.tolist()} {self.std.tolist()}"

    def to(self, device: torch.device) -> "FrozenEncoder":
        """On a device, for evaluation, in the memory order that convolutions are fastest in."""
        module = self.module.to(device).to(memory_format=torch.channels_last).eval().requires_grad_(False)
        return FrozenEncoder(self.name, module, self.features, self.mean.to(device), self.std.to(device))


def feature_table(
    images: ImageSet, encoder: FrozenEncoder, views: Sequence[View], *, seed: int, cache: Path
) -> FeatureTable:
    """Where the features of these views of these images are kept, filled or not.

    Several views are kept in half precision: they are perturbed copies, and take V times the space. A single one, on
    which a network is evaluated, is kept in full.
    """
    dtype = np.dtype(np.float32 if len(views) == 1 else np.float16)
    key = features_key(
        images=images_digest(images),
        encoder=encoder.name,
        weights=encoder.digest(),
        views=[describe(view) for view in views],
        seed=seed,
        dtype=dtype.name,
    )
    return FeatureTable(cache / f"features-{key}", shape=(len(images), len(views), encoder.features), dtype=dtype)


def fill(
    table: FeatureTable,
    images: ImageSet,
    encoder: FrozenEncoder,
    views: Sequence[View],
    *,
    seed: int,
    chunks: Sequence[int],
    done: Callable[[int], None],
) -> None:
    """Compute chunks of a table.

    A chunk is computed in the same batches whatever came before it, so that an interrupted computation and an
    uninterrupted one leave the same bits.

    Args:
        table: to write to.
        images: all images of the table.
        encoder: on its device, in evaluation mode.
        views: in the table's order.
        seed: of the views' draws.
        chunks: which ones.
        done: told after each chunk how many images it had.
    """
    device = encoder.mean.device
    fast = encoder.folded(images.shape) if chunks else encoder
    for number in chunks:
        rows = table.rows(number)
        positions = np.arange(rows.start, rows.stop)
        pixels = images.read(positions)
        keys = fold(fold(seed, _PURPOSE), torch.from_numpy(positions))
        values = np.empty((len(positions), *table.shape[1:]), dtype=np.float32)
        for start in range(0, len(positions), _BATCH):
            part = slice(start, start + _BATCH)
            batch = pixels[part].to(device)
            for column, view in enumerate(views):
                values[part, column] = fast(view(batch, fold(keys[part], column).to(device))).cpu().numpy()
        table.write(number, _narrowed(values, table.dtype, encoder.name))
        done(len(positions))


def _narrowed(values: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    largest = float(np.abs(values).max())  # NaN if there is one
    if not largest <= float(np.finfo(dtype).max):
        raise ConfigError(
            f"features of encoder {name} are as large as {largest:g}, or not numbers at all; check that its weights "
            "are those of this encoder"
        )
    return values.astype(dtype)
