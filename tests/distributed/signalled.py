"""One of two processes is told to stop; both do, after the same step."""

import json
import os
import signal
from pathlib import Path

from protocon.base import distributed
from protocon.errors import RunStopped
from tests.distributed.cases import config_of, train
from tests.distributed.stopping import before_step

STEP = 9
"""In the middle of the second epoch."""


def signalled(data: Path, out: Path) -> None:
    """The same run twice: once left alone, once stopped and resumed."""
    config = config_of(data, "protocon", ())
    train(config, out, "whole")

    def stop_second() -> None:
        if distributed.rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    message = ""
    with before_step(STEP, stop_second):
        try:
            train(config, out, "stopped")
        except RunStopped as stop:
            message = str(stop)
    found = sorted(path.stem for path in (out / "stopped" / "checkpoints").iterdir())
    (out / f"stopped-{distributed.rank()}.json").write_text(json.dumps({"message": message, "checkpoints": found}))
    distributed.barrier()
    train(config, out, "stopped", resume=True)
