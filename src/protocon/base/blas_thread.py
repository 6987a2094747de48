"""Sums of one order: BLAS on one thread, whatever the machine has."""

import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """While it lasts, NumPy and SciPy multiply matrices on one thread."""
    return _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _libraries(with_scipy: bool) -> ThreadpoolController:  # noqa: ARG001
    """Those of this process, again once SciPy's own is loaded. Looking for them takes as long as a small regression."""
    return ThreadpoolController()
