"""Random inputs for the tests of the core: arrays for the reference, the same numbers as tensors for us."""

from typing import TypeVar

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.reference import Floats, Ints, unit

quick = settings(deadline=None, derandomize=True, max_examples=30)
"""Decorator of every property test: the same few examples in every run."""

seeds = st.integers(0, 2**32 - 1)
temperatures = st.sampled_from([0.05, 0.1, 0.5, 1.0])
precisions = st.sampled_from([torch.float32, torch.float64])

CLEAR = 1e-5
"""A lead over the runner-up that float32 cannot turn round."""

M = TypeVar("M", bound=nn.Module)


def as_float32(array: Floats) -> Floats:
    """The same numbers as far as float32 holds them, so that both sides start from equal inputs."""
    return array.astype(np.float32).astype(np.float64)


def unit_rows(rng: np.random.Generator, *shape: int) -> Floats:
    """Random directions along the last axis."""
    flat = rng.normal(size=(int(np.prod(shape[:-1])), shape[-1]))
    return as_float32(np.array([unit(row) for row in flat]).reshape(shape))


def distributions(rng: np.random.Generator, rows: int, classes: int) -> Floats:
    """Random rows that sum to one."""
    return as_float32(rng.dirichlet(np.full(classes, 0.5) + 0.2, size=rows))


def floats(array: Floats, dtype: torch.dtype = torch.float32) -> Tensor:
    """To a tensor of the given precision."""
    return torch.as_tensor(array).to(dtype)


def ints(array: Ints) -> Tensor:
    """To an int64 tensor."""
    return torch.as_tensor(array.astype(np.int64))


def numpy64(tensor: Tensor) -> Floats:
    """To float64 NumPy."""
    return tensor.detach().double().numpy()


def tolerance(dtype: torch.dtype) -> float:
    """Relative and absolute error that sums of some hundred terms may gather."""
    return 1e-9 if dtype == torch.float64 else 2e-5


def snapshot(module: nn.Module) -> dict[str, Tensor]:
    """A copy of a module's whole state."""
    return {name: value.clone() for name, value in module.state_dict().items()}


def same_state(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    """Bit-for-bit equality of two snapshots."""
    return left.keys() == right.keys() and all(
        left[n].dtype == right[n].dtype and torch.equal(left[n], right[n]) for n in left
    )


def restored(module: nn.Module, fresh: M) -> M:
    """`fresh`, a module built anew, with `module`'s saved state."""
    fresh.load_state_dict(snapshot(module), strict=True)
    return fresh
