"""A thousand inputs that nobody would write: none ends in a traceback, hangs, or writes anywhere else.

`python -m benchmarks.fuzz` throws ten thousand.
"""

from pathlib import Path

import pytest

from tests.fuzz.running import nothing_else_written, throw
from tests.fuzz.targets import TARGETS

INPUTS = 1000


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_gets_a_result_or_one_of_our_errors(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    with nothing_else_written(tmp_path):
        tally = throw(target, max(20, target.share * INPUTS // 100))
    assert tally.errors > 0  # else the inputs are too tame
