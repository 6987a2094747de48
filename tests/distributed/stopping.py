"""Make training stop in the middle of an epoch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from protocon.engine.loop.trainer import Trainer


class StoppedError(Exception):
    """The process died."""


def die() -> None:
    """Die, as far as that is possible without taking the tests along."""
    raise StoppedError


@contextmanager
def before_step(number: int, action: Callable[..., None], *, with_trainer: bool = False) -> Iterator[None]:
    """Do something right before training's step of this number (from 0)."""
    original = Trainer.train_step

    def watched(self: Trainer, *args: Any, **kwargs: Any) -> Any:
        if self.step == number:
            action(self) if with_trainer else action()
        return original(self, *args, **kwargs)

    Trainer.train_step = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        Trainer.train_step = original  # type: ignore[method-assign]
