"""Metrics for TensorBoard, beside the JSONL that is the record."""

import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from protocon.base.atomic import cannot_write


class ScalarLog:
    """Event files in `folder/tensorboard`; does nothing where not enabled.

    Written at once, one epoch at a time. The usual writer has a thread of its own, which would meet a full disk
    when nobody is there to be told, and which a fork of the process would lose.

    Args:
        folder: the run folder.
        enabled: False on all processes but the first, or if switched off.
        first_epoch: where a resumed run starts: what an earlier process wrote from there on is not shown.
    """

    def __init__(self, folder: Path, *, enabled: bool, first_epoch: int = 0) -> None:
        unique = f"{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._path = folder / "tensorboard" / f"events.out.tfevents.{unique}"
        self._enabled = enabled
        self._first_epoch = first_epoch

    def __enter__(self) -> "ScalarLog":
        if self._enabled:
            events = [Event(wall_time=time.time(), file_version="brain.Event:2")]
            if self._first_epoch:
                start = SessionLog(status=SessionLog.START)
                events.append(Event(wall_time=time.time(), step=self._first_epoch, session_log=start))
            self._write(events)
        return self

    def write(self, row: dict[str, float]) -> None:
        """One epoch's numbers."""
        if self._enabled:
            values = [Summary.Value(tag=name, simple_value=value) for name, value in row.items() if name != "epoch"]
            self._write([Event(wall_time=time.time(), step=int(row["epoch"]), summary=Summary(value=values))])

    def _write(self, events: list[Any]) -> None:
        try:
            self._path.parent.mkdir(exist_ok=True)
            with self._path.open("ab") as file:
                writer = RecordWriter(file)
                for event in events:
                    writer.write(event.SerializeToString())
        except OSError as error:
            raise cannot_write(self._path, error, "the curves before are untouched") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is left open."""
