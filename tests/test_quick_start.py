"""What the command line sets up before it imports anything large."""

import gc

import pytest
import torch

from protocon.__main__ import collect_seldom
from protocon.base.threads import one_thread


def test_garbage_is_looked_for_seldom_but_is_looked_for() -> None:
    before = gc.get_threshold()
    try:
        collect_seldom()
        assert gc.get_threshold()[0] >= 100 * 700
        assert gc.isenabled()
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize(("wanted", "inside"), [(True, 1), (False, 3)])
def test_threads_are_as_before_after_one_thread(wanted: bool, inside: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with pytest.raises(ZeroDivisionError), one_thread(wanted):
            assert torch.get_num_threads() == inside
            raise ZeroDivisionError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
