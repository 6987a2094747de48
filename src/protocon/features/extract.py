"""Features of every view of every image, from the cache or computed once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from protocon.base.draws import fold
from protocon.data.imageset import ImageSet
from protocon.errors import ConfigError
from protocon.features.feature_table import FeatureTable
from protocon.features.fold import fold_norms
from protocon.features.key import describe, features_key, images_digest, module_digest
from protocon.features.onnx_forward import ENGINE, onnx_forward

_PURPOSE = 301  # what these draws are for, so that no other key of the same seed is among them
_BATCH = 16
"""Batch size: on a CPU, activations of so few images stay in the cache, which is a quarter faster than 64."""

View = Callable[[Tensor, Tensor], Tensor]
"""uint8 images and int64 keys → float images; a dataclass whose fields are all of its settings."""


@dataclass(frozen=True)
class FrozenEncoder:
    """An encoder whose weights do not change, and the normalisation of its input."""

    name: str
    module: nn.Module
    features: int
    """D."""
    mean: Tensor
    """Per channel, of pixels in [0, 1]."""
    std: Tensor
    engine: str = "torch"
    """What computes the features: torch, or onnxruntime where possible."""
    parts: tuple[int, ...] = ()
    """Lengths of the encoder's own features and of its pooled blocks."""

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Features (n, D) float32 of float images (n, C, H, W)."""
        shape = (1, -1, 1, 1)
        values: Tensor = self.module((images - self.mean.view(shape)) / self.std.view(shape))
        return values.float()

    def fastest(self, shape: tuple[int, ...]) -> tuple[Callable[[Tensor], Tensor], int]:
        """The quickest way to the same features of images (C, H, W), and how many threads may take it at once."""
        ramp = torch.linspace(-1, 1, 2 * shape[0] * shape[1] * shape[2], device=self.mean.device).view(2, *shape)
        module = fold_norms(self.module, ramp)
        through_onnx = onnx_forward(module, ramp) if self.engine == ENGINE and self.mean.device.type == "cpu" else None
        shape = (1, -1, 1, 1)
        mean, std = self.mean.view(shape), self.std.view(shape)

        @torch.inference_mode()
        def forward(images: Tensor) -> Tensor:
            normal = (images - mean) / std
            values: Tensor = module(normal) if through_onnx is None else through_onnx(normal)
            return values.float()

        return forward, 1 if through_onnx is None else max(1, torch.get_num_threads())

    def digest(self) -> str:
        """Hash of the weights and of the normalisation, with the engine, whose rounding is its own."""
        engine = "" if self.engine == "torch" else f" {self.engine}"
        return f"{module_digest(self.module)} {self.mean.tolist()} {self.std.tolist()}{engine}"

    def to(self, device: torch.device) -> "FrozenEncoder":
        """On a device, for evaluation, in the memory order that convolutions are fastest in."""
        module = self.module.to(device).to(memory_format=torch.channels_last).eval().requires_grad_(False)
        return replace(self, module=module, mean=self.mean.to(device), std=self.std.to(device))


def feature_table(
    images: ImageSet, encoder: FrozenEncoder, views: Sequence[View], *, seed: int, cache: Path
) -> FeatureTable:
    """Where the features of these views of these images are kept, filled or not.

    Several views are kept in half precision: they are perturbed copies, and take V times the space. A single one, on
    which a network is evaluated, is kept in full.

    Args:
        images: what to encode.
        encoder: the frozen encoder.
        views: of every image, V of them.
        seed: of the views' draws.
        cache: folder of all tables.
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
    done: Callable[[int], None] = lambda _: None,
    progress: Callable[[int], None] = lambda _: None,
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
        done: told after each chunk how many images it had; may raise.
        progress: told how many more images are computed.
    """
    if not chunks:
        return
    device = encoder.mean.device
    forward, lanes = encoder.fastest(images.shape)

    def compute(pixels: Tensor, keys: Tensor) -> np.ndarray:
        """Features (n, V, D) of a batch."""
        batch = pixels.to(device)
        found = [forward(view(batch, fold(keys, column).to(device))) for column, view in enumerate(views)]
        return torch.stack(found, dim=1).cpu().numpy()

    def read(number: int) -> tuple[Tensor, Tensor]:
        """Pixels and keys of a chunk."""
        rows = table.rows(number)
        positions = np.arange(rows.start, rows.stop)
        return images.read(positions), fold(fold(seed, _PURPOSE), torch.from_numpy(positions))

    with _one_thread_each(lanes) as pool, ThreadPoolExecutor(1) as reader:
        coming = reader.submit(read, chunks[0])
        for number, following in zip_longest(chunks, chunks[1:]):
            pixels, keys = coming.result()
            if following is not None:  # decoded while the encoder is at work
                coming = reader.submit(read, following)
            parts = []
            for part in pool.map(compute, torch.split(pixels, _BATCH), torch.split(keys, _BATCH)):
                parts.append(part)
                progress(len(part))
            table.write(number, _narrowed(np.concatenate(parts), table.dtype, encoder.name))
            done(len(pixels))


@contextmanager
def _one_thread_each(lanes: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that each compute the views and features of a batch; with several, PyTorch uses one thread in each."""
    before = torch.get_num_threads()
    with ThreadPoolExecutor(lanes) as pool:
        try:
            if lanes > 1:
                torch.set_num_threads(1)
            yield pool
        finally:
            torch.set_num_threads(before)


def _narrowed(values: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    largest = float(np.abs(values).max())  # NaN if there is one
    if not largest <= float(np.finfo(dtype).max):
        raise ConfigError(
            f"features of encoder {name} are as large as {largest:g}, or not numbers at all; check that its weights "
            "are those of this encoder"
        )
    return values.astype(dtype)
