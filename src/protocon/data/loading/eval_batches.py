"""Every image of a set once, in order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from protocon.data.imageset import ImageSet
from protocon.data.loading.loader import leave_group
from protocon.errors import ConfigError, DataError


@dataclass(frozen=True)
class EvaluationBatch:
    """Images to predict, with what is known of them."""

    images: Tensor
    """uint8 (n, C, H, W), or float32 (n, D)."""
    labels: Tensor
    """int64 (n,); −1 = unknown."""
    index: Tensor
    """Positions in the set, int64 (n,)."""

    def to(self, device: torch.device) -> "EvaluationBatch":
        """The same batch on a device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> "EvaluationBatch":
        """The same batch in page-locked memory, from which copies to a GPU need not wait."""
        return self._map(Tensor.pin_memory)

    def _map(self, change: Callable[[Tensor], Tensor]) -> "EvaluationBatch":
        return EvaluationBatch(change(self.images), change(self.labels), change(self.index))


def evaluation_batches(
    images: ImageSet,
    *,
    batch_size: int,
    device: torch.device,
    rank: int = 0,
    world_size: int = 1,
    workers: int = 0,
) -> Iterator[EvaluationBatch]:
    """Batches of every image exactly once, in order; the last may be smaller.

    Processes take consecutive parts of the set, which differ by at most one image: joined in rank order
    they are the whole set. A process may get none. `workers` read ahead if images are decoded from files.

    Args:
        images: the set.
        batch_size: images per batch.
        device: where batches go.
        rank: this process's number.
        world_size: number of processes.
        workers: processes that read ahead; not used where images are in memory.
    """
    if batch_size < 1 or not 0 <= rank < world_size:
        raise ConfigError(
            f"batch_size {batch_size}, rank {rank} of {world_size}: "
            "the batch size must be 1 or more, and the rank below the number of processes."
        )
    start, stop = rank * len(images) // world_size, (rank + 1) * len(images) // world_size
    parts = [np.arange(first, min(first + batch_size, stop)) for first in range(start, stop, batch_size)]
    reader = _PartReader(images, parts)
    if images.in_memory or not parts:
        workers = 0
    stream: DataLoader[EvaluationBatch | str] = DataLoader(
        reader,
        batch_size=None,
        shuffle=False,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        generator=torch.Generator(),  # else each evaluation would draw from torch's global one
        worker_init_fn=leave_group,
    )
    failure: str | None = None
    for batch in stream:
        if isinstance(batch, str):
            failure = batch
            break
        yield batch.to(device)
    if failure is not None:
        raise DataError(failure)


class _PartReader(Dataset["EvaluationBatch | str"]):
    """Reads the i-th batch, or the message of what went wrong."""

    def __init__(self, images: ImageSet, parts: list[np.ndarray]) -> None:
        self._images = images
        self._parts = parts

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: int) -> "EvaluationBatch | str":
        part = self._parts[number]
        try:
            pixels = self._images.read(part)
        except DataError as error:
            return str(error)
        labels = torch.from_numpy(self._images.labels[part])
        return EvaluationBatch(pixels, labels, torch.from_numpy(part))
