"""A process that has imported everything and forks one child after another, to be killed at will.

`python -m tests.engine.zygote` reads one JSON request a line and answers each with a line once its child has ended.
Importing takes seconds and is not what is tested; what is forked is the whole command line, a job of several
processes or a function, and the kill is real. It computes nothing itself: a fork of a process whose threads have
computed would wait for them.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from protocon.runs.layout import LOCK
from tests.quick import without_waiting

ROOT = Path(__file__).parents[2]
STAGES = ("features", "training", "held-out labels", "labels and report")
"""Of a run on a frozen encoder, in order; before the first it reads the images."""


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    code: int
    """As the shell counts: negative for a signal."""
    events: int
    """Steps and file operations that it did, if it was asked to count."""
    output: str
    stages: tuple[tuple[str, float], ...] = ()
    """Stages that it reached and seconds since its start, if it was asked to say."""


class Zygote:
    """The test's end of the line."""

    def __init__(self, log: Path, *, waits: bool = True) -> None:
        """Start the process.

        Args:
            log: for what children say.
            waits: for the disk, as children do outside of tests.
        """
        self._log = log
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.zygote", *(() if waits else ("--quick",))],
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Zygote":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def run(
        self,
        *arguments: str,
        after: float | None = None,
        training_in: Path | None = None,
        in_stage: str | None = None,
        signal_number: int = signal.SIGKILL,
        at_event: int | None = None,
        before_file: str | None = None,
        once: Path | None = None,
        cache: Path | None = None,
        packages: Path | None = None,
    ) -> Ended:
        """`protocon ARGUMENTS`.

        Args:
            arguments: of the command line.
            after: send it a signal after so many seconds.
            training_in: count these from when it has locked this run folder, which is when training begins.
            in_stage: count these from when it is in this stage of `STAGES`; with any text, it says when it is where.
            signal_number: which.
            at_event: let it kill itself just before this step or file operation, counted from 0; −1 only counts.
            before_file: let it kill itself just before a file of this name, written aside, is renamed to it.
            once: send its whole process group a signal, once this file exists.
            cache: the user's cache folder.
            packages: where the package of a tiny encoder's weights lies, which `--frozen` then takes.
        """
        return self._ask(
            arguments=arguments,
            after=after,
            lock=None if training_in is None else str(training_in / LOCK),
            stage=in_stage,
            signal=int(signal_number),
            at_event=at_event,
            before_file=before_file,
            once=None if once is None else str(once),
            packages=None if packages is None else str(packages),
            cache=None if cache is None else str(cache),
        )

    def call(self, function: str, *arguments: str, once: Path | None = None, lines: int = 1) -> Ended:
        """A function of the tests, `module:name`, of these arguments; killed once a file, if given, has so many lines.

        Args:
            function: by the name of its module and its own.
            arguments: of the function.
            once: the file, or a pattern that one of several files fits.
            lines: of the file.
        """
        file = None if once is None else str(once)
        return self._ask(function=function, arguments=arguments, once=file, lines=lines, signal=signal.SIGKILL)

    def job(self, part: str, data: Path, out: Path, *, processes: int) -> Ended:
        """A part of the distributed tests' worker in so many processes."""
        return self._ask(job=part, processes=processes, arguments=(str(data), str(out)))

    def _ask(self, **request: Any) -> Ended:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"log": str(self._log), **request}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        output = self._log.read_text(encoding="utf-8", errors="replace")
        stages = tuple((name, seconds) for name, seconds in answer["stages"])
        return Ended(answer["code"], answer["events"], output, stages)


def _serve() -> None:
    _import_everything()
    if "--quick" in sys.argv:
        without_waiting()
    for line in sys.stdin:
        request = json.loads(line)
        counter = Path(request["log"] + ".events")
        counter.unlink(missing_ok=True)
        stages_file(request).unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _be_child(request, counter)
        code = _wait(child, request)
        events = int(counter.read_text()) if counter.is_file() else 0
        answer = {"code": code, "events": events, "stages": stages_in(stages_file(request))}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


NEEDED = (
    *("protocon.cli", "protocon.engine.run", "protocon.report.model_card", "sklearn.datasets"),
    *("tests.distributed.norms", "tests.distributed.photos", "tests.distributed.worker"),
)


def stages_file(request: dict[str, Any]) -> Path:
    return Path(request["log"] + ".stages")


def stages_in(file: Path) -> list[tuple[str, float]]:
    """Stages that a child has reached, with seconds since its start."""
    lines = file.read_text().splitlines() if file.is_file() else []
    return [(name, float(seconds)) for name, _, seconds in (line.rpartition(" ") for line in lines)]


def _import_everything() -> None:
    sys.modules.setdefault("wandb", None)  # type: ignore[arg-type]  # timm imports it where it is installed
    gc.disable()  # nothing that is imported is garbage
    for module in NEEDED:
        import_module(module)
    gc.freeze()  # nor do children look through it, which would copy it
    gc.enable()


def _wait(child: int, request: dict[str, Any]) -> int:
    if request.get("once") is not None:
        while not _there(Path(request["once"]), request.get("lines", 0)):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.killpg(child, request["signal"])
    if request.get("lock") is not None:
        lock, own = Path(request["lock"]), f'"pid": {child},'
        while not (lock.is_file() and own in lock.read_text()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
    if request.get("stage") in STAGES:
        while request["stage"] not in dict(stages_in(stages_file(request))):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
    if request.get("after") is not None:
        deadline = time.monotonic() + request["after"]
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
        os.kill(child, request["signal"])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _there(pattern: Path, lines: int) -> bool:
    """Whether there is a file of that name, or that fits the pattern, and has so many lines."""
    found = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
    return any(file.read_bytes().count(b"\n") >= lines for file in found)


def _be_child(request: dict[str, Any], counter: Path) -> None:
    os.setpgid(0, 0)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in ((0, nothing), (1, log), (2, log)):
        os.dup2(handle, number)
    code = 1
    try:
        if "job" in request:
            from tests.distributed.forks import main

            code = main(request["processes"], [request["job"], *request["arguments"]])
        elif "function" in request:
            module, _, name = request["function"].partition(":")
            getattr(import_module(module), name)(*request["arguments"])
            code = 0
        else:
            code = _be_protocon(request, counter)
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _say_stages(file: Path) -> None:
    """Write a line whenever a stage of a frozen run begins."""
    from protocon.engine import run
    from protocon.engine.labelling import label_run

    began = time.monotonic()

    def said(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            with file.open("a") as lines:
                lines.write(f"{stage} {time.monotonic() - began:.3f}\n")
            return function(*args, **kwargs)

        return call

    for stage, owner, name in zip(
        (*STAGES, STAGES[-1]),
        (run, run, label_run, label_run, run),
        ("encode", "train_run", "cross_check_labels", "_accept", "draw_report"),
        strict=True,
    ):
        setattr(owner, name, said(stage, getattr(owner, name)))


def _be_protocon(request: dict[str, Any], counter: Path) -> int:
    from protocon.cli import main
    from protocon.methods import METHODS
    from tests.methods.toys import TOYS

    METHODS.update(TOYS)  # methods of the tests are killed like all others
    if request["packages"] is not None:
        from tests.engine.photos import install

        install(Path(request["packages"]))
    if request["cache"] is not None:
        os.environ["XDG_CACHE_HOME"] = request["cache"]
    if request["stage"] is not None:
        _say_stages(stages_file(request))
    watches = request["at_event"] is not None or request["before_file"] is not None
    count = _watch(request["at_event"], request["before_file"]) if watches else lambda: 0
    sys.argv = ["protocon", *request["arguments"]]
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    if request["at_event"] is not None:
        counter.write_text(str(count()))
    return code


def _watch(at_event: int | None, before_file: str | None) -> Callable[[], int]:
    """Count training steps and everything that changes the disk for good; die just before a number or a file."""
    from protocon.engine.loop.trainer import Trainer

    done = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            named = before_file is not None and any(str(argument).endswith(f"/{before_file}") for argument in args)
            if done == at_event or named:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
            return function(*args, **kwargs)

        return call

    for name in ("fsync", "replace", "rename", "unlink", "mkdir", "ftruncate"):
        setattr(os, name, watched(getattr(os, name)))
    Trainer.train_step = watched(Trainer.train_step)  # type: ignore[method-assign]
    return lambda: done


if __name__ == "__main__":
    _serve()
    os._exit(0)  # what is frozen is not taken apart
