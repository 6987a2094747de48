"""What happens in the background: features arrive, the model learns, labels.csv follows, the folder is watched.

Two threads: one looks at images, one thinks. A third takes in features when many have arrived, which takes seconds:
meanwhile the second goes on thinking with those that it has. Requests wait for none of them.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import scipy.linalg  # noqa: F401  # loaded before its threads are counted

from protocon.base.blas_thread import one_blas_thread
from protocon.errors import ProtoConError
from protocon.labeller.desk import Desk
from protocon.labeller.opinion import Prepared, prepared
from protocon.labeller.sight import Sight

_BATCH = 3
"""Answers after which the model learns at once; fewer wait a moment for more."""
_PATIENCE = 0.4
_WATCH_SECONDS = 5.0
_WATCH_SHARE = 20.0
"""Looking at a folder of a hundred thousand files takes seconds: at most one part in so many of the time."""
_IDLE_SECONDS = 0.05
_RETRY_SECONDS = 5.0


class _LeaveError(Exception):
    """The program ends; features that are not there yet are left for another time."""


class Worker:
    """The background of a desk.

    While it works, matrices are multiplied on one thread: the model's answers are the same on any machine, and a
    processor is left for those who wait.

    Args:
        desk: where answers come from and opinions go to.
        sight: features.
        clock: seconds.
    """

    def __init__(self, desk: Desk, sight: Sight, clock: Callable[[], float] = time.monotonic) -> None:
        self.desk = desk
        self.sight = sight
        self.seconds: list[float] = []
        """How long each of the latest opinions took."""
        self._clock = clock
        self._numbers = np.zeros(0, dtype=np.int64)
        self._thought = -1
        self._written = -1
        self._incomplete = False
        self._watched = clock()
        self._pause = _WATCH_SECONDS
        self._arrived: queue.SimpleQueue[tuple[np.ndarray, np.ndarray]] = queue.SimpleQueue()
        self._look = threading.Event()
        self._look.set()
        self._all_seen = threading.Event()
        self._leave = threading.Event()
        self._stack = ExitStack()
        self._taker = ThreadPoolExecutor(1, thread_name_prefix="features")
        self._coming: Future[Prepared] | None = None
        self._threads = [
            threading.Thread(target=self._repeat, args=(self.see,), name="sight", daemon=True),
            threading.Thread(target=self._repeat, args=(self.turn,), name="thought", daemon=True),
        ]

    def start(self) -> None:
        """Begin."""
        self._stack.enter_context(one_blas_thread())
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Leave features where they are, write labels.csv, end."""
        self._leave.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._taker.shutdown(cancel_futures=True)
        self._stack.close()
        self.desk.write_labels()

    def _repeat(self, act: Callable[[], bool]) -> None:
        while not self._leave.is_set():
            pause = _IDLE_SECONDS
            try:
                if act():
                    continue
            except _LeaveError:
                return
            except ProtoConError as error:
                self.desk.trouble = str(error)
                pause = _RETRY_SECONDS
            except Exception as error:  # labelling continues whatever befalls the model
                self.desk.trouble = f"the model failed: {type(error).__name__}: {error}"
                pause = _RETRY_SECONDS
            self._leave.wait(pause)

    def see(self) -> bool:
        """Compute features of all files that have none; False if there are no such files."""
        if not self._look.is_set():
            return False
        self._look.clear()
        try:
            self.sight.look(self._deliver)
        except ProtoConError:
            self._look.set()  # try again: disks are mounted, room is made
            raise
        if not self._look.is_set():
            self._all_seen.set()
        self.desk.trouble = None
        return True

    def _deliver(self, numbers: np.ndarray, features: np.ndarray) -> None:
        if self._leave.is_set():
            raise _LeaveError
        self._arrived.put((numbers, features))

    def turn(self) -> bool:
        """Do what there is to do; False if there was nothing."""
        if self._written != self.desk.version:
            self._written = self.desk.version
            self.desk.write_labels()
        if self._clock() - self._watched > self._pause:
            self._watch()
        while not self._arrived.empty():
            numbers, features = self._arrived.get()
            self.desk.thinker.add(numbers, features)
            self.desk.features_done += len(numbers)
        self._take_in()
        if self._wants_opinion():
            self._think()
        elif self._incomplete and self._thought == self.desk.version:
            self._incomplete = False
            self.desk.opinion = self.desk.thinker.complete(self.desk.opinion)
        else:
            return False
        return True

    def _watch(self) -> None:
        began = self._clock()
        changed = self.desk.refresh()
        self._watched = self._clock()
        self._pause = max(_WATCH_SECONDS, _WATCH_SHARE * (self._watched - began))
        if changed:
            self._thought = self._written = -1
            self._all_seen.clear()
            self._look.set()

    def _finished(self) -> bool:
        return self._all_seen.is_set() and self._arrived.empty()

    def _take_in(self) -> None:
        """Begin to take in features where many have arrived; think with them once they are taken in."""
        thinker = self.desk.thinker
        if self._coming is not None and self._coming.done():
            coming, self._coming = self._coming, None
            self._numbers = thinker.adopt(coming.result())
            self._thought = -1
        if self._coming is None and thinker.behind(finished=self._finished()):
            thinker.parts = self.sight.parts
            self._coming = self._taker.submit(
                prepared, tuple(thinker.numbers), tuple(thinker.features), self.sight.parts
            )

    def _wants_opinion(self) -> bool:
        if not len(self._numbers) or self._thought == self.desk.version:
            return False
        fresh = self.desk.version - self._thought
        return self._thought < 0 or fresh >= _BATCH or self._clock() - self.desk.changed_at > _PATIENCE

    def _think(self) -> None:
        began = time.perf_counter()
        known = self.desk.known(self._numbers)
        self.desk.opinion = self.desk.thinker.think(self._numbers, known)
        self._thought, self._incomplete = known.version, True
        self.seconds = [*self.seconds[-199:], time.perf_counter() - began]
