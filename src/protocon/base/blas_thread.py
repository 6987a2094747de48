"""Sums of one order: BLAS on one thread, whatever the machine has."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_blas_thread() -> AbstractContextManager[Any]:
    """While it lasts, NumPy and SciPy multiply matrices on one thread."""
    return _libraries("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _libraries(with_scipy: bool) -> ThreadpoolController:  # noqa: ARG001
    """Those of this process, again once SciPy's own is loaded. Looking for them takes as long as a small regression."""
    return ThreadpoolController()


def on_one_blas_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, during which NumPy and SciPy multiply matrices on one thread."""

    @wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with one_blas_thread():
            return function(*args, **kwargs)

    return run
