"""CIFAR's pickled batches, read without letting the pickle run anything.

A pickle is a program. This one may build dicts, lists, text, bytes, numbers and byte arrays; every name
it asks for is answered by an inert stand-in of ours, and any other name is refused. NumPy's own
unpickling code is not used either.
"""

import io
import pickle
from typing import Any

import numpy as np

from protocon.errors import DataError

_MAX_ELEMENTS = 2**31


class _Marker:
    """Stands for the class `numpy.ndarray`, which array pickles name but need not call."""

    __slots__ = ()


class _ByteArray:
    """Receives an array's state: (version, shape, dtype, Fortran order, bytes)."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        self.values = _as_array(data, dtype, shape, fortran=bool(fortran))


class _DataType:
    """Receives a dtype: its code, and a state that says no more for single bytes."""

    __slots__ = ("code",)

    def __init__(self, code: Any) -> None:
        self.code = code.decode() if isinstance(code, bytes) else code

    def __setstate__(self, state: Any) -> None:
        """Byte order and alignment: nothing to know for single bytes."""


def _as_array(data: Any, dtype: Any, shape: Any, *, fortran: bool) -> np.ndarray:
    if not isinstance(dtype, _DataType) or dtype.code not in ("u1", "|u1", "uint8"):
        raise pickle.UnpicklingError("an array whose elements are not unsigned bytes")
    if not isinstance(data, bytes | bytearray) or len(data) > _MAX_ELEMENTS:
        raise pickle.UnpicklingError("an array without plain bytes")
    return np.frombuffer(bytes(data), dtype=np.uint8).reshape(shape, order="F" if fortran else "C")


class _Unpickler(pickle.Unpickler):
    """Answers the few names that CIFAR's files use; the real ones behind them are never looked up."""

    def find_class(self, module: str, name: str) -> Any:
        # Fresh objects at every call, so that a pickle's BUILD can change nothing that outlives it.
        module = module.replace("numpy._core", "numpy.core")
        if (module, name) == ("numpy.core.multiarray", "_reconstruct"):
            return lambda _type, _shape, _code: _ByteArray()
        if (module, name) == ("numpy.core.numeric", "_frombuffer"):
            return lambda data, dtype, shape, order: _as_array(data, dtype, shape, fortran=order == "F")
        if (module, name) == ("numpy", "dtype"):
            return lambda code, *_: _DataType(code)
        if (module, name) == ("numpy", "ndarray"):
            return _Marker()
        if (module, name) == ("_codecs", "encode"):  # how Python 3 writes bytes in old protocols
            return lambda text, _encoding: str(text).encode("latin1")
        raise pickle.UnpicklingError(f"it asks to run {module}.{name}")


def read_batch(data: bytes, name: str) -> dict[str, Any]:
    """One batch or meta file as a dict with text keys; arrays are uint8.

    Raises:
        DataError: if the file is no pickle, or asks for anything but plain values and byte arrays.
    """
    try:
        content = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except MemoryError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise DataError(
            f"{name} is not a CIFAR batch, or not an honest one: {error}. Nothing in it was run. "
            "Fetch the archive again from https://www.cs.toronto.edu/~kriz/cifar.html."
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{name} holds a {type(content).__name__}; a CIFAR batch is a dict.")
    return {_text(key): _plain(value) for key, value in content.items()}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, _ByteArray) else value
