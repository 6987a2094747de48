"""Features of every view of every image, from the cache or computed once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from protocon.base.draws import fold
from protocon.base.parts import Parts
from protocon.base.threads import one_thread
from protocon.data.imageset import ImageSet
from protocon.errors import ConfigError
from protocon.features.feature_table import FeatureTable, TableFacts
from protocon.features.fold import fold_norms
from protocon.features.key import describe, encoder_key, features_key, images_digest, module_digest
from protocon.features.onnx_forward import ENGINE, onnx_forward
from protocon.features.shared_rows import Found, SharedRows, pixel_digests

_PURPOSE = 301  # what these draws are for, so that no other key of the same seed is among them
_BATCH = 16
"""Batch size of PyTorch on a CPU: activations of so few images stay in the cache, a quarter faster than 64."""
_ONNX_BATCH = 4
"""Of onnxruntime, which calls its layers with less ado: a sixth faster than 16."""

Precision = Literal["half", "full"]
View = Callable[[Tensor, Tensor], Tensor]
"""uint8 images and int64 keys → float images; a dataclass whose fields are all of its settings."""


@dataclass(frozen=True)
class Way:
    """How features are computed."""

    forward: Callable[[Tensor], Tensor]
    """Float images (n, C, H, W) → features (n, D) float32."""
    lanes: int
    """Threads that may call it at once."""
    batch: int
    """Images that it is given at a time."""


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
    parts: Parts = ()
    """What features consist of."""
    _ways: dict[tuple[int, ...], Way] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Answers of `fastest`: finding one takes more than a second."""

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Features (n, D) float32 of float images (n, C, H, W)."""
        shape = (1, -1, 1, 1)
        values: Tensor = self.module((images - self.mean.view(shape)) / self.std.view(shape))
        return values.float()

    def fastest(self, shape: tuple[int, ...]) -> Way:
        """The quickest way to the same features of images (C, H, W)."""
        if shape not in self._ways:
            self._ways[shape] = self._find_fastest(shape)
        return self._ways[shape]

    def _find_fastest(self, shape: tuple[int, ...]) -> Way:
        ramp = torch.linspace(-1, 1, 2 * shape[0] * shape[1] * shape[2], device=self.mean.device).view(2, *shape)
        on_cpu = self.mean.device.type == "cpu"
        through_onnx = onnx_forward(self.module, ramp) if self.engine == ENGINE and on_cpu else None
        module = fold_norms(self.module, ramp) if through_onnx is None else self.module
        shape = (1, -1, 1, 1)
        mean, std = self.mean.view(shape), self.std.view(shape)

        @torch.inference_mode()
        def forward(images: Tensor) -> Tensor:
            normal = (images - mean) / std
            values: Tensor = module(normal) if through_onnx is None else through_onnx(normal)
            return values.float()

        if through_onnx is None:
            return Way(forward, lanes=1, batch=_BATCH)
        return Way(forward, lanes=max(1, torch.get_num_threads()), batch=_ONNX_BATCH)

    def digest(self) -> str:
        """Hash of the weights and of how they are used: normalisation, parts of the features, engine (its rounding)."""
        engine = "" if self.engine == "torch" else f" {self.engine}"
        parts = ", ".join(map(str, self.parts))
        return f"{module_digest(self.module)} {self.mean.tolist()} {self.std.tolist()} {parts}{engine}"

    def to(self, device: torch.device) -> "FrozenEncoder":
        """On a device, for evaluation, in the memory order that convolutions are fastest in."""
        module = self.module.to(device).to(memory_format=torch.channels_last).eval().requires_grad_(False)
        return replace(self, module=module, mean=self.mean.to(device), std=self.std.to(device))


def feature_table(
    images: ImageSet,
    encoder: FrozenEncoder,
    views: Sequence[View],
    *,
    seed: int,
    cache: Path,
    precision: Precision | None = None,
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
        precision: another one than these.
    """
    full = len(views) == 1 if precision is None else precision == "full"
    dtype = np.dtype(np.float32 if full else np.float16)
    described, weights = [describe(view) for view in views], encoder.digest()
    key = features_key(
        images=images_digest(images),
        encoder=encoder.name,
        weights=weights,
        views=described,
        seed=seed,
        dtype=dtype.name,
    )
    facts = TableFacts(encoder_key(encoder.name, weights), tuple(described))
    shape = (len(images), len(views), encoder.features)
    return FeatureTable(cache / f"features-{key}", shape=shape, dtype=dtype, facts=facts)


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
    """Compute chunks of a table. Rows that other tables of the cache hold already are taken from there.

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
    shared = SharedRows(table, [column for column, view in enumerate(views) if getattr(view, "fixed", False)])

    def read(number: int) -> _Chunk:
        rows = table.rows(number)
        positions = np.arange(rows.start, rows.stop)
        pixels = images.read(positions)
        return _Chunk(pixels, fold(fold(seed, _PURPOSE), torch.from_numpy(positions)), pixel_digests(pixels))

    with _Lanes(encoder, images.shape, views) as lanes, ThreadPoolExecutor(1) as reader:
        coming = reader.submit(read, chunks[0])
        for number, following in zip_longest(chunks, chunks[1:]):
            chunk = coming.result()
            if following is not None:  # decoded while the encoder is at work
                coming = reader.submit(read, following)
            parts = []
            for part in lanes.compute(chunk, shared.find(chunk.digests)):
                parts.append(part)
                progress(len(part))
            table.write(number, _narrowed(np.concatenate(parts), table.dtype, encoder.name), chunk.digests)
            done(len(chunk.pixels))


@dataclass(frozen=True)
class _Chunk:
    """Images that are computed and written together."""

    pixels: Tensor
    keys: Tensor
    """Of each image's draws."""
    digests: list[str]


class _Lanes(AbstractContextManager["_Lanes"]):
    """The encoder at work, in as many threads as may use it at once. It is made ready when the first image needs it.

    Args:
        encoder: on its device.
        shape: of an image.
        views: of each image.
    """

    def __init__(self, encoder: FrozenEncoder, shape: tuple[int, ...], views: Sequence[View]) -> None:
        self._encoder = encoder
        self._shape = shape
        self._views = views
        self._stack = ExitStack()
        self._ready: tuple[Way, ThreadPoolExecutor] | None = None

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def compute(self, chunk: _Chunk, known: Mapping[int, Found]) -> Iterator[np.ndarray]:
        """Features (n, V, D) of a chunk, batch by batch.

        Args:
            chunk: the images.
            known: features that need not be computed, by the position of the view.
        """
        if len(known) == len(self._views) and all(found.known.all() for found in known.values()):
            yield np.stack([known[column].rows for column in range(len(self._views))], axis=1)
            return
        if self._ready is None:
            found = self._encoder.fastest(self._shape)
            self._ready = found, self._stack.enter_context(_one_thread_each(found.lanes))
        way, pool = self._ready
        parts = (slice(start, start + way.batch) for start in range(0, len(chunk.pixels), way.batch))
        yield from pool.map(lambda part: self._batch(way.forward, chunk, known, part), parts)

    def _batch(
        self, forward: Callable[[Tensor], Tensor], chunk: _Chunk, known: Mapping[int, Found], part: slice
    ) -> np.ndarray:
        device = self._encoder.mean.device
        pixels, keys = chunk.pixels[part].to(device), chunk.keys[part]
        columns = []
        for column, view in enumerate(self._views):
            # Views that are fixed take keys and ignore them.
            drawn = keys if getattr(view, "fixed", False) else fold(keys, column).to(device)
            found = known.get(column)
            if found is None or not found.known[part].any():
                columns.append(forward(view(pixels, drawn)).cpu().numpy())
                continue
            rows = found.rows[part].copy()
            wanted = torch.from_numpy(~found.known[part])
            if wanted.any():
                rows[wanted.numpy()] = forward(view(pixels[wanted], drawn[wanted])).cpu().numpy()
            columns.append(rows)
        return np.stack(columns, axis=1)


@contextmanager
def _one_thread_each(lanes: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that each compute the views and features of a batch; with several, PyTorch uses one thread in each."""
    with ThreadPoolExecutor(lanes) as pool, one_thread(lanes > 1):
        yield pool


def _narrowed(values: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
    largest = float(np.abs(values).max())  # NaN if there is one
    if not largest <= float(np.finfo(dtype).max):
        raise ConfigError(
            f"features of encoder {name} are as large as {largest:g}, or not numbers at all; check that its weights "
            "are those of this encoder"
        )
    return values.astype(dtype)
