"""Batches of uint8 images with their indices and draw keys, from memory or from files.

`Loader` gives the same batches whichever way it reads: images resident on the device, or streamed by any
number of worker processes. Which images and keys they are is decided by `Plan` alone.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from protocon.data.imageset import ImageSet
from protocon.data.labels.label_split import Split
from protocon.data.loading.schedule import Plan, StepPlan
from protocon.data.loading.support import Support, SupportOrder
from protocon.errors import DataError

RESIDENT_LIMIT = 4 * 2**30
"""Bytes of images up to which they are kept on an accelerator."""


@dataclass(frozen=True)
class RawBatch:
    """One step's images before any view is made: this process's rows of the global batch."""

    labelled: Tensor
    """uint8 (B, C, H, W), or float32 (B, D); no rows without labels."""
    targets: Tensor
    """Their classes, int64 (B,)."""
    labelled_index: Tensor
    """Their positions in the labelled set, int64 (B,)."""
    labelled_keys: Tensor
    """Keys for their views, int64 (B,)."""
    unlabelled: Tensor
    """uint8 (n, C, H, W), or float32 (n, D)."""
    index: Tensor
    """Their positions in the unlabelled set, int64 (n,)."""
    keys: Tensor
    """Keys for their views, int64 (n,)."""
    support: Tensor
    """Images of the support set, as `labelled`; no rows without one."""
    support_targets: Tensor
    """Their classes, int64 (m,)."""
    support_index: Tensor
    """Their positions in the labelled set, int64 (m,)."""
    support_keys: Tensor
    """Keys for their views, int64 (m,)."""
    share: float
    """Rows of `unlabelled` here ÷ mean rows per process."""
    labelled_share: float
    """The same for `labelled`."""
    support_share: float
    """The same for `support`."""

    def to(self, device: torch.device) -> "RawBatch":
        """The same batch on a device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> "RawBatch":
        """The same batch in page-locked memory, from which copies to a GPU need not wait."""
        return self._map(Tensor.pin_memory)

    def _map(self, change: Callable[[Tensor], Tensor]) -> "RawBatch":
        changed: dict[str, Any] = {
            field.name: change(value)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **changed)


class Loader:
    """A training run's batches, epoch by epoch. Any epoch can be had at any time."""

    def __init__(
        self,
        images: ImageSet,
        split: Split,
        *,
        batch_size: int,
        mu: int,
        seed: int,
        device: torch.device,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 0,
        resident: bool | None = None,
        resident_limit: int = RESIDENT_LIMIT,
        uses_labels: bool = True,
        support: Support | None = None,
    ) -> None:
        """Prepare to read.

        Args:
            images: the training set that `split` belongs to.
            split: which of them are labelled and unlabelled.
            batch_size: labelled images per step, over all processes.
            mu: unlabelled images for each labelled one.
            seed: decides the order and the keys.
            device: where batches go.
            rank: this process's number.
            world_size: number of processes.
            workers: processes that read ahead; not used when resident.
            resident: keep the whole set on the device. None: if it is in memory, and no larger than
                `resident_limit` unless the device is the CPU, where it costs nothing.
            resident_limit: bytes.
            uses_labels: whether batches have labelled images.
            support: the support set that batches have, if any.
        """
        if split.size != len(images):
            raise DataError(
                f"The split is for {split.size:,} images, but {images.name} has {len(images):,}. "
                "Make a split of this set."
            )
        if uses_labels and not len(split.labelled):
            raise DataError("There are no labelled images; at least one is needed. Label some, or use another method.")
        self.plan = Plan(
            labelled=len(split.labelled) if uses_labels else 0,
            unlabelled=len(split.unlabelled),
            batch_size=batch_size,
            mu=mu,
            seed=seed,
            rank=rank,
            world_size=world_size,
            support=None if support is None else SupportOrder(support, split.labels, seed=seed),
        )
        if resident is None:
            fits = device.type == "cpu" or images.nbytes <= resident_limit
            resident = images.in_memory and fits
        self.device = device
        self.resident = resident
        self._resident: _Resident | None = _Resident(images, split, device) if resident else None
        self._reader = _StepReader(images, split, self.plan)
        self._sampler = _StepSampler(self.plan.steps_per_epoch)
        self._workers = workers
        self._stream: DataLoader[RawBatch | _Failure] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Steps in one pass over the unlabelled set."""
        return self.plan.steps_per_epoch

    def epoch(self, epoch: int, *, first_step: int = 0) -> Iterator[RawBatch]:
        """The batches of an epoch, on the device, from `first_step` on."""
        if self._resident is not None:
            order = self.plan.order(epoch)
            for step in range(first_step, self.steps_per_epoch):
                yield self._resident.batch(self.plan.step(epoch, step, order))
            return
        self._sampler.epoch, self._sampler.first_step = epoch, first_step
        failure: _Failure | None = None
        for batch in self._streaming():
            if isinstance(batch, _Failure):
                failure = batch
                break
            yield batch.to(self.device)
        if failure is not None:
            # Workers end here and now: left to the traceback's garbage, torch waits seconds for each.
            self._stream = None
            raise DataError(failure.message)

    def _streaming(self) -> "DataLoader[RawBatch | _Failure]":
        if self._stream is None:
            self._stream = DataLoader(
                self._reader,
                sampler=self._sampler,
                batch_size=None,  # an item is a whole batch: workers share out steps, not images
                num_workers=self._workers,
                persistent_workers=self._workers > 0,
                pin_memory=self.device.type == "cuda",
                # A generator of its own: by default every epoch would draw from torch's global one, so
                # that dropout would depend on how images are read.
                generator=torch.Generator(),
                worker_init_fn=leave_group,
            )
        return self._stream


def leave_group(_worker: int) -> None:
    """Take a reading process out of its parent's group: a signal to the group is for the parent, who still needs it.

    Ctrl-C and job schedulers signal whole groups. Without its readers the parent could not finish the step.
    """
    if hasattr(os, "setsid"):
        os.setsid()


class _Resident:
    """The whole set as one tensor on the device."""

    def __init__(self, images: ImageSet, split: Split, device: torch.device) -> None:
        whole = getattr(images, "tensor", None)
        self.images: Tensor = (images.read(np.arange(len(images))) if whole is None else whole).to(device)
        self.labelled = torch.from_numpy(split.labelled).to(device)
        self.targets = torch.from_numpy(split.labels).to(device)
        self.unlabelled = torch.from_numpy(split.unlabelled).to(device)
        self.device = device

    def batch(self, plan: StepPlan) -> RawBatch:
        labelled_index = plan.labelled_index.to(self.device)
        index = plan.index.to(self.device)
        support_index = plan.support_index.to(self.device)
        return RawBatch(
            labelled=self.images.index_select(0, self.labelled[labelled_index]),
            targets=self.targets[labelled_index],
            labelled_index=labelled_index,
            labelled_keys=plan.labelled_keys.to(self.device),
            unlabelled=self.images.index_select(0, self.unlabelled[index]),
            index=index,
            keys=plan.keys.to(self.device),
            support=self.images.index_select(0, self.labelled[support_index]),
            support_targets=self.targets[support_index],
            support_index=support_index,
            support_keys=plan.support_keys.to(self.device),
            share=plan.share,
            labelled_share=plan.labelled_share,
            support_share=plan.support_share,
        )


@dataclass(frozen=True)
class _Failure:
    """A worker's error as a value: raised there, its message would be buried in two tracebacks."""

    message: str


class _StepReader(Dataset["RawBatch | _Failure"]):
    """Reads the batch of a (epoch, step)."""

    def __init__(self, images: ImageSet, split: Split, plan: Plan) -> None:
        self._images = images
        self._split = split
        self._plan = plan
        self._order: tuple[int, np.ndarray] | None = None

    def __getitem__(self, place: tuple[int, int]) -> "RawBatch | _Failure":
        epoch, step = place
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, self._plan.order(epoch))
        plan = self._plan.step(epoch, step, self._order[1])
        labels = torch.from_numpy(self._split.labels)
        try:
            unlabelled = self._images.read(self._split.unlabelled[plan.index.numpy()])
            labelled, support = (
                self._images.read(self._split.labelled[index.numpy()]) if len(index) else unlabelled[:0]
                for index in (plan.labelled_index, plan.support_index)
            )
        except DataError as error:
            return _Failure(str(error))
        return RawBatch(
            labelled=labelled,
            targets=labels[plan.labelled_index],
            labelled_index=plan.labelled_index,
            labelled_keys=plan.labelled_keys,
            unlabelled=unlabelled,
            index=plan.index,
            keys=plan.keys,
            support=support,
            support_targets=labels[plan.support_index],
            support_index=plan.support_index,
            support_keys=plan.support_keys,
            share=plan.share,
            labelled_share=plan.labelled_share,
            support_share=plan.support_share,
        )


class _StepSampler(Sampler[tuple[int, int]]):
    """Names the steps of one epoch. It lives in the main process, so workers persist over epochs."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.epoch = 0
        self.first_step = 0

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((self.epoch, step) for step in range(self.first_step, self.steps))

    def __len__(self) -> int:
        return self.steps - self.first_step
