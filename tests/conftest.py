"""What all tests need of the process they run in."""

import signal


def pytest_configure() -> None:
    """Hear Ctrl-C even where the tests were started in the background, which shells make deaf to it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
