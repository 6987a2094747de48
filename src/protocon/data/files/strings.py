"""A long, unchanging list of strings in two flat buffers."""

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np


class StringTable(Sequence[str]):
    """Strings that read like a tuple but cost two objects in all.

    A million Python strings are a million reference counts, so every loader process that touches them
    copies their memory pages. Here a worker only ever reads shared pages.
    """

    def __init__(self, strings: Iterable[str]) -> None:
        # surrogateescape: a file name need not be valid UTF-8
        encoded = [text.encode("utf-8", "surrogateescape") for text in strings]
        self._blob = b"".join(encoded)
        self._ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "StringTable": ...
    def __getitem__(self, index: int | slice) -> "str | StringTable":
        if isinstance(index, slice):
            return StringTable(self[i] for i in range(*index.indices(len(self))))
        position = range(len(self))[index]
        start, end = self._ends[position], self._ends[position + 1]
        return self._blob[start:end].decode("utf-8", "surrogateescape")

    def take(self, indices: np.ndarray) -> "StringTable":
        """The strings at these positions, in this order."""
        return StringTable(self[int(i)] for i in indices)

    def buffers(self) -> tuple[bytes, bytes]:
        """Text and offsets as bytes, for hashing: equal only if every string is equal."""
        return self._blob, self._ends.tobytes()
