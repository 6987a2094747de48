"""How many threads torch uses for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 2**16
"""Numbers in a batch of features up to which a second thread costs more time than it saves: to wake it, and to wait."""


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """While it lasts, torch computes on one thread, if that is wanted."""
    before = torch.get_num_threads()
    if not wanted or before == 1:
        yield
        return
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(before)
