"""What all tests need of the process they run in."""

import gc
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.quick import without_waiting

if TYPE_CHECKING:
    from tests.engine.zygote import Zygote

without_waiting()
gc.disable()  # until all is imported: looking through it for garbage, again and again, takes a quarter of the time


def pytest_configure() -> None:
    """Hear Ctrl-C even where the tests were started in the background, which shells make deaf to it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Look for garbage from here on, and only in what tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let Python take everything apart at its end."""
    gc.unfreeze()
    gc.enable()


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Zygote"]:
    """The process whose forks are killed; all tests of this process share it."""
    from tests.engine.zygote import Zygote

    with Zygote(tmp_path_factory.mktemp("zygote") / "log", waits=False) as running:
        assert running.run("recipes").code == 0  # it has imported everything now
        yield running


@pytest.fixture
def toys() -> Iterator[None]:
    """Methods of the tests among the package's."""
    from tests.methods.toys import registered

    with registered():
        yield
