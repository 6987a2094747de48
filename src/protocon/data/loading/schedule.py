"""Which images each step sees: a pure function of seed, epoch and step, so that nothing needs saving."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from protocon.base.draws import fold, permutation
from protocon.data.loading.support import SupportOrder
from protocon.data.purposes import Purpose
from protocon.errors import ConfigError, DataError

_NO_ROWS = torch.empty(0, dtype=torch.int64)


def steps_per_epoch(unlabelled: int, *, batch_size: int, mu: int) -> int:
    """⌈N / (μ·B)⌉: steps in one pass over the unlabelled set.

    Args:
        unlabelled: N.
        batch_size: B, labelled images in a global batch.
        mu: μ, unlabelled images for each labelled one.
    """
    return -(-unlabelled // (mu * batch_size))


@dataclass(frozen=True)
class StepPlan:
    """One process's rows of one step; int64 tensors on the CPU."""

    labelled_index: Tensor
    """Positions in the labelled set, about B / processes; none without labels."""
    labelled_keys: Tensor
    """Keys of their draws, one for each appearance."""
    index: Tensor
    """Positions in the unlabelled set, (n,)."""
    keys: Tensor
    """Keys of their draws, one for each image and epoch."""
    support_index: Tensor
    """Positions of the support set in the labelled set, (m,); none without a support set."""
    support_keys: Tensor
    """Keys of their draws, one for each appearance."""
    share: float
    """Unlabelled rows here ÷ mean rows per process."""
    labelled_share: float
    """The same for labelled rows."""
    support_share: float
    """The same for the support set."""


@dataclass(frozen=True)
class Plan:
    """The order of a whole training run, and one process's part of it.

    An epoch is one pass over the unlabelled set, every image exactly once. It has ⌈N / (mu·B)⌉ steps, and
    the permutation is cut into batches whose sizes differ by at most one: a small last batch would upset
    batch norm and leave some processes without rows.

    The labelled set is an endless stream of permutations; global step t takes positions t·B to (t+1)·B. A support set,
    where there is one, is drawn for each step (`SupportOrder`).

    Processes hold consecutive slices of each global batch, so that joining their rows in rank order gives
    the batch of a single process.
    """

    labelled: int
    """Images in the labelled set; 0 where training is without labels."""
    unlabelled: int
    """Images in the unlabelled set, N."""
    batch_size: int
    """Labelled images in a global batch, B. Without labels it still sets the size of the unlabelled batch, μ·B."""
    mu: int
    """Unlabelled images for each labelled one."""
    seed: int
    rank: int = 0
    world_size: int = 1
    support: SupportOrder | None = None

    def __post_init__(self) -> None:
        if self.batch_size < 1 or self.mu < 1:
            raise ConfigError(f"batch_size {self.batch_size} and mu {self.mu} must both be 1 or more.")
        if self.seed < 0:
            raise ConfigError(f"The seed is {self.seed}; it must be 0 or more.")
        if not 0 <= self.rank < self.world_size:
            raise ConfigError(f"Rank {self.rank} of {self.world_size} processes does not exist.")
        if self.labelled and self.batch_size < self.world_size:
            raise ConfigError(
                f"batch_size is {self.batch_size} over all {self.world_size} processes together, so some would have "
                "no labelled images. Use a larger one, or fewer processes."
            )
        if self.support is not None and self.support.rows < self.world_size:
            raise ConfigError(
                f"The support set has {self.support.rows} images, too few for {self.world_size} processes. "
                "Ask for more images per class, or use fewer processes."
            )
        if self.unlabelled < 1:
            raise DataError("There are no unlabelled images; at least one is needed.")
        smallest = self.unlabelled // self.steps_per_epoch
        if smallest < self.world_size:
            raise DataError(
                f"{self.unlabelled} unlabelled images make batches of {smallest}, too few for "
                f"{self.world_size} processes. Use fewer processes."
            )

    @property
    def steps_per_epoch(self) -> int:
        """Steps in one pass over the unlabelled set."""
        return steps_per_epoch(self.unlabelled, batch_size=self.batch_size, mu=self.mu)

    def order(self, epoch: int) -> np.ndarray:
        """The unlabelled set in this epoch's order, int64 (N,)."""
        return permutation(self.unlabelled, self.seed, Purpose.UNLABELLED_ORDER, epoch)

    def step(self, epoch: int, step: int, order: np.ndarray | None = None) -> StepPlan:
        """Rows of this process in a step of an epoch. `order` spares computing it again.

        Args:
            epoch: from 0.
            step: within the epoch, from 0.
            order: of the epoch, from `order(epoch)`, to spare computing it again.
        """
        if not 0 <= step < self.steps_per_epoch:
            raise IndexError(f"An epoch has {self.steps_per_epoch} steps; there is no step {step}.")
        order = self.order(epoch) if order is None else order
        start = step * self.unlabelled // self.steps_per_epoch
        size = (step + 1) * self.unlabelled // self.steps_per_epoch - start
        rows = self._slice(size)
        index = torch.from_numpy(order[start + rows.start : start + rows.stop].astype(np.int64))
        number = epoch * self.steps_per_epoch + step
        labelled_index, labelled_keys, labelled_share = self._labelled(number)
        support_index, support_keys, support_share = self._support(number)
        return StepPlan(
            labelled_index=labelled_index,
            labelled_keys=labelled_keys,
            index=index,
            keys=self.keys(epoch, index),
            support_index=support_index,
            support_keys=support_keys,
            share=len(index) * self.world_size / size,
            labelled_share=labelled_share,
            support_share=support_share,
        )

    def positions(self, epoch: int, step: int, order: np.ndarray) -> tuple[Tensor, Tensor]:
        """What a step of one process sees: positions in the labelled and in the unlabelled set, and nothing else.

        Args:
            epoch: from 0.
            step: within the epoch, from 0.
            order: of the epoch, from `order(epoch)`.
        """
        start, stop = (number * self.unlabelled // self.steps_per_epoch for number in (step, step + 1))
        first = (epoch * self.steps_per_epoch + step) * self.batch_size
        labelled = self._stream(np.arange(first, first + self.batch_size, dtype=np.int64))
        return torch.from_numpy(labelled), torch.from_numpy(order[start:stop].astype(np.int64))

    def labelled_keys(self, epoch: int) -> Tensor:
        """Keys of an epoch's labelled images, step after step; they do not depend on how many labels there are."""
        size = self.steps_per_epoch * self.batch_size
        return fold(fold(self.seed, Purpose.LABELLED_DRAW), torch.arange(epoch * size, (epoch + 1) * size))

    def keys(self, epoch: int, index: Tensor) -> Tensor:
        """Keys of unlabelled images at these positions in an epoch; they do not depend on how many images there are."""
        return fold(fold(fold(self.seed, Purpose.UNLABELLED_DRAW), epoch), index)

    def _labelled(self, number: int) -> tuple[Tensor, Tensor, float]:
        """Positions, keys and share of the labelled rows of step `number` of the run."""
        if not self.labelled:
            return _NO_ROWS, _NO_ROWS, 1.0
        rows = self._slice(self.batch_size)
        first = number * self.batch_size
        positions = np.arange(first + rows.start, first + rows.stop, dtype=np.int64)
        keys = fold(fold(self.seed, Purpose.LABELLED_DRAW), torch.from_numpy(positions))
        return torch.from_numpy(self._stream(positions)), keys, len(positions) * self.world_size / self.batch_size

    def _support(self, number: int) -> tuple[Tensor, Tensor, float]:
        """The same for the support set."""
        if self.support is None:
            return _NO_ROWS, _NO_ROWS, 1.0
        rows = self._slice(self.support.rows)
        places = torch.arange(rows.start, rows.stop)
        keys = fold(fold(fold(self.seed, Purpose.SUPPORT_DRAW), number), places)
        index = torch.from_numpy(self.support.positions(number)[rows])
        return index, keys, len(places) * self.world_size / self.support.rows

    def _slice(self, size: int) -> slice:
        """Rows of this process out of `size` global rows."""
        return slice(
            self.rank * size // self.world_size,
            (self.rank + 1) * size // self.world_size,
        )

    def _stream(self, positions: np.ndarray) -> np.ndarray:
        """What stands at these consecutive positions of the stream of labelled permutations."""
        rounds, places = np.divmod(positions, self.labelled)
        pieces = [
            _labelled_order(self.labelled, self.seed, int(number))[places[rounds == number]]
            for number in range(int(rounds[0]), int(rounds[-1]) + 1)
        ]
        return np.concatenate(pieces).astype(np.int64)


@lru_cache(maxsize=64)
def _labelled_order(size: int, seed: int, number: int) -> np.ndarray:
    """One permutation of the labelled set; with few labels a step needs several, and the next one the last again."""
    return permutation(size, seed, Purpose.LABELLED_ORDER, number)
