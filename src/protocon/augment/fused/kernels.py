"""How kernels are compiled, and how a batch is shared out among threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])
Scalar = Any
"""A number of a kernel, as wide as the arrays' own: float32, uint8 or int32, which are no float or int to mypy."""


def available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def kernel(function: F) -> F:
    """Compile a function of arrays and numbers, once a machine: the result is kept on disk.

    No fast maths: sums keep their order, so a result does not depend on the machine's vectors.
    """
    from numba import njit

    compiled: F = njit(function, cache=True, nogil=True, error_model="numpy")
    return compiled


def share_out(run: Callable[[int, int], None], count: int) -> None:
    """Call `run(start, stop)` on parts of range(count), one for each of torch's threads; kernels hold no lock.

    An image's view is a function of that image alone, so the number of parts changes nothing.
    """
    parts = max(1, min(torch.get_num_threads(), count))
    edges = [count * part // parts for part in range(parts + 1)]
    if parts == 1:
        run(0, count)
        return
    with ThreadPoolExecutor(parts) as pool:
        for result in [pool.submit(run, a, b) for a, b in pairwise(edges)]:
            result.result()
