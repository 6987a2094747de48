"""A run from its settings to its folder: new, or resumed where an earlier process stopped."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from protocon.base import distributed
from protocon.base.atomic import write_bytes
from protocon.base.say import say as say_to
from protocon.data.imageset import DataBundle
from protocon.data.registry import OWN
from protocon.engine.labelling.label_run import label_run
from protocon.engine.labelling.write_outputs import draw_report, write_card
from protocon.engine.loop.epochs import train_run
from protocon.engine.loop.signals import StopSignals
from protocon.engine.planning.budget import within_budget
from protocon.engine.planning.side_budget import images_within_budget
from protocon.engine.setup.announce import announce, bar, keep_answer, keep_record
from protocon.engine.setup.encode import encode
from protocon.engine.setup.fabric import Fabric, build_fabric
from protocon.engine.setup.mirrors import ask_about_mirrors
from protocon.engine.setup.resume_rules import Continued, carry_on
from protocon.engine.setup.session import build, settle
from protocon.engine.setup.settled import Settled
from protocon.errors import ConfigError, DataError
from protocon.methods import METHODS
from protocon.runs import layout
from protocon.runs import run_folder as runfolder
from protocon.runs.lock import locked
from protocon.runs.run_data import load_data
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import RunConfig, build_config, to_yaml


def run_name(config: RunConfig) -> str:
    """Name of a run's folder: data, labels, method, seed."""
    data = config.data
    if not METHODS[config.method_name].uses_labels:
        return f"{_data_name(config)}-{config.method_name}-seed{config.run.seed}"
    labels = (
        f"{data.labels_per_class}pc"
        if data.labels_per_class is not None
        else f"{data.labels_percent:g}percent"
        if data.labels_percent is not None
        else "labels"
    )
    return f"{_data_name(config)}-{labels}-{config.method_name}-seed{config.run.seed}"


def _data_name(config: RunConfig) -> str:
    """The data set's name, or that of the folder or file with one's own data."""
    root = config.data.root
    if config.data.name not in OWN or root is None:
        return config.data.name
    name = re.sub(r"[^\w.-]+", "-", root.expanduser().resolve().stem).strip("-.")
    return name or config.data.name


def fit(
    config: RunConfig,
    *,
    out: str | Path,
    name: str | None = None,
    resume: bool | RunFolder = False,
    accept_changes: bool = False,
    console: Console | None = None,
    bundle: DataBundle | None = None,
    verbose: bool = False,
) -> dict[str, Any]:
    """Train as configured and return the run's summary.

    Args:
        config: settings, `auto` allowed.
        out: folder that holds run folders.
        name: of the run folder; by default made of data, labels, method and seed.
        resume: continue the newest run of that name (True) or this particular run; a finished one is not repeated.
        accept_changes: continue although settings differ from those that the run began with, where that makes sense.
        console: where progress goes; standard error by default.
        bundle: the data of the config, if already loaded.
        verbose: say at the start what every `auto` became, and why.

    Examples:
        Two epochs on drawn digits, into a folder below `runs`:

        >>> from protocon import build_config, fit
        >>> data = {"name": "digits", "labels_per_class": 2, "image_size": 8}
        >>> short = ["epochs=2", "batch_size=32", "report=false", "tensorboard=false"]
        >>> config = build_config(settings={"data": data}, overrides=short)
        >>> result = fit(config, out="runs", name="digits")
        >>> result["method"], result["epochs"], result["test_accuracy"] > 0.1
        ('protocon', 2, True)
    """
    started = time.monotonic()
    fabric = build_fabric(config)
    if distributed.rank() != 0:
        console = Console(quiet=True)  # the first process speaks for all
    console = console or Console(stderr=True)
    say = partial(say_to, console)
    if name is not None and (name in ("", ".", "..") or Path(name).name != name):
        raise ConfigError(f"the run's name is {name!r}; it must be the name of a folder in {out}, not a path")
    path = Path(out) / (name or run_name(config))
    # The first process settles what to do; the others do the same.
    begun = _find(path, config, resume, accept_changes=accept_changes) if distributed.rank() == 0 else None
    begun = fabric.broadcast(begun, src=0)
    if begun is not None and begun.finished:
        say(f"{begun.folder.path} is finished; nothing to do")
        if distributed.rank() == 0:
            _tidy(begun, console, say)
        return begun.folder.result()
    if resume and begun is None:
        say(f"no run {path} to resume; starting it")
    settled = _settle(config, begun, console, bundle)
    if begun is None:
        if bundle is None:
            smaller = images_within_budget(config, settled, fabric, console)
            settled = settled if smaller is settled.bundle else settle(config, smaller)
        settled = within_budget(config, settled, fabric, console, started=started)
        announce(settled, console, verbose=verbose)
    folder = begun.folder if begun is not None else None
    if distributed.rank() == 0 and folder is None:
        folder = runfolder.create(path.parent, path.name, config, settled.split, resolved=settled.config)
        if folder.path.name != path.name:
            say(f"{path} is there already; this run is a new one, in {folder.path} (--resume auto continues a run)")
    folder = RunFolder(Path(fabric.broadcast(str(folder.path) if folder else "", src=0)))
    with distributed.reporting_lost_processes(), _held(folder, begun, settled, say):
        if distributed.rank() == 0 and not folder.data_file.is_file():
            keep_record(folder, settled)
        return _train(config, settled, fabric, folder, console, new=begun is None)


def _train(
    config: RunConfig, settled: Settled, fabric: Fabric, folder: RunFolder, console: Console, *, new: bool
) -> dict[str, Any]:
    """Features, training, labels, report: each stage leaves on the disk what the next one needs to be resumed."""
    with StopSignals() as signals:
        stop = partial(
            signals.stop_if_asked,
            None,  # processes compute different numbers of chunks
            during="the computation of features",
            kept="those that are done are in the cache",
            resume=str(folder.path),
        )
        begun = distributed.largest(int(any(folder.checkpoints.glob("*"))), fabric.device)
        encoder = None
        with _only_with_features(folder, new=new):
            if not begun:  # views of a run whose training has begun stay as they are
                answer = ask_about_mirrors(config, settled, console, fabric.device, after_chunk=stop)
                settled, encoder = answer.settled, answer.encoder
                if answer.reason and distributed.rank() == 0:
                    keep_answer(folder, settled, answer)
            inputs = encode(settled, console, fabric.device, encoder=encoder, after_chunk=stop)
        trainer, result = train_run(build(settled, inputs), fabric, folder, console, signals)
        result |= label_run(trainer, folder, console, signals)
    if distributed.rank() == 0:
        folder.write_json(folder.result_file, result)
        write_card(folder, console)
        if settled.config.run.report:
            draw_report(folder, settled.bundle.train, console)
    distributed.barrier()
    return result


def resume_run(
    folder: RunFolder,
    console: Console | None = None,
    *,
    overrides: Sequence[str] = (),
    accept_changes: bool = False,
) -> dict[str, Any]:
    """Resume one particular run, with the settings it began with, or with some of them changed.

    Args:
        folder: of the run.
        console: where progress goes; standard error by default.
        overrides: `key=value` texts: settings to change.
        accept_changes: continue although settings differ from those that the run began with.
    """
    config = build_config(settings=folder.config().model_dump(mode="json"), overrides=overrides)
    return fit(
        config,
        out=folder.path.parent,
        name=folder.path.name,
        resume=folder,
        accept_changes=accept_changes,
        console=console,
    )


def _find(path: Path, config: RunConfig, resume: bool | RunFolder, *, accept_changes: bool) -> Continued | None:
    """The run to resume; None to start a new one. A run that is there and cannot be resumed is an error."""
    found = (
        resume if isinstance(resume, RunFolder) else runfolder.newest_run(path.parent, path.name) if resume else None
    )
    return None if found is None else carry_on(found, config, accept_changes=accept_changes)


def _settle(config: RunConfig, begun: Continued | None, console: Console, bundle: DataBundle | None = None) -> Settled:
    """Settings that leave nothing to choose, with their data; a resumed run's are the ones it was started with.

    The split is the run's own, which is refused if the data is no longer what it was.
    """
    settings = config if begun is None else begun.pinned
    if bundle is None:
        with bar(console) as progress:
            bundle = load_data(settings, progress)
    return settle(settings, bundle, split_file=None if begun is None else begun.folder.split_file)


def _tidy(begun: Continued, console: Console, say: Callable[[str], None]) -> None:
    """Make up for what a process that was killed right after the result could not do any more: the report."""
    folder = begun.folder
    half_done = folder.unfinished()
    if not (folder.path / layout.CARD).is_file():
        write_card(folder, console)
    if not half_done and (
        folder.report_file.is_file() or not begun.asked.run.report or not folder.split_file.is_file()
    ):
        return
    with locked(folder.path, say):
        folder.clear_unfinished()
        if begun.asked.run.report and not folder.report_file.is_file():
            say("but it has no report yet; drawing it")
            draw_report(folder, _settle(begun.asked, begun, console).bundle.train, console)


@contextmanager
def _only_with_features(folder: RunFolder, *, new: bool) -> Iterator[None]:
    """Without features nothing is learnt: a new folder goes again, or each try with such a cache would leave one more.

    A run that was stopped by a signal keeps its folder: its message says how to resume it.
    """
    try:
        yield
    except (ConfigError, DataError):
        if new and distributed.rank() == 0:
            folder.remove()
        raise


@contextmanager
def _held(folder: RunFolder, begun: Continued | None, settled: Settled, say: Callable[[str], None]) -> Iterator[None]:
    """The run folder, locked by the first process for all, with accepted changes written down."""
    if distributed.rank() != 0:
        yield
        return
    with locked(folder.path, say):
        if begun is not None:
            say(f"resuming {folder.path}")
            folder.clear_unfinished()
            if begun.changes:
                say("with changed settings:\n  " + "\n  ".join(begun.changes))
                folder.append(folder.changes_file, {"epoch": len(folder.metrics()), "changes": list(begun.changes)})
                write_bytes(folder.path / layout.RESOLVED, to_yaml(settled.config).encode())
                write_bytes(folder.path / layout.CONFIG, to_yaml(begun.asked).encode())
        yield
