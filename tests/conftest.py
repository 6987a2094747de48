"""What all tests need of the process they run in."""

import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Hear Ctrl-C even where the tests were started in the background, which shells make deaf to it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def toys() -> Iterator[None]:
    """Methods of the tests among the package's."""
    from tests.methods.toys import registered

    with registered():
        yield
