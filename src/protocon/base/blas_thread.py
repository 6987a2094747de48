"""Sums of one order: BLAS on one thread, whatever the machine has."""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """While it lasts, NumPy and SciPy multiply matrices on one thread."""
    return _libraries().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _libraries() -> ThreadpoolController:
    """Those of this process. Looking for them takes as long as a small regression, and they are loaded once."""
    import scipy.linalg  # noqa: F401  # loads SciPy's own

    return ThreadpoolController()
