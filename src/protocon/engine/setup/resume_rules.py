"""The settings of a run, pinned: what `auto` came to, and which of them may change when a run is resumed."""

from dataclasses import dataclass
from typing import Any

from protocon.errors import RunError
from protocon.runs.run_folder import RunFolder
from protocon.settings.config import RunConfig, flat_settings, validate

MAY_CHANGE = frozenset(
    (
        "data.root",
        "data.labels",
        "data.storage",
        "data.workers",
        "network.weights",
        "optim.epochs",
        "optim.total_steps",
        "optim.lr",
        "optim.weight_decay",
        "run.accelerator",
        "run.precision",
        "run.eval_every",
        "run.eval_batch_size",
        "run.checkpoint_every",
        "run.checkpoint_minutes",
        "run.tensorboard",
        "run.loggers",
        "run.cache",
        "run.sync_batchnorm",
        "run.timeout_minutes",
    )
)
"""Settings that a half-finished run can be resumed with: where the data and the weights lie (fingerprint and digest
are checked), how long and how fast to train, on what device, and how often to look. Others would make it neither the
old run nor a new one."""

_OPEN = frozenset(("network.weights", "network.weights_sha256"))
"""Settings that are left to be chosen where they are null, as others are by `auto`."""


@dataclass(frozen=True)
class Continued:
    """A run to resume, and the settings to do it with."""

    folder: RunFolder
    asked: RunConfig
    """As config.yaml has it, with accepted changes."""
    pinned: RunConfig
    """Without `auto`, but for what changed."""
    changes: tuple[str, ...] = ()
    finished: bool = False


def carry_on(folder: RunFolder, asked: RunConfig, *, accept_changes: bool = False) -> Continued:
    """What to resume with; refuses settings that differ from those the run began with, unless told to accept them.

    A value of resolved.yaml counts too where the setting is not `auto`: should a crash have come between the two files,
    they differ, and that is said rather than passed over.

    Args:
        folder: of the run.
        asked: settings that it is resumed with.
        accept_changes: take over those that may change.
    """
    finished = folder.finished()
    before, now = flat_settings(folder.config()), flat_settings(asked)
    pinned = {} if finished else flat_settings(folder.resolved())

    def settled(key: str) -> bool:
        return now[key] != "auto" and not (key in _OPEN and now[key] is None)

    changed = {
        key: (before.get(key) if now[key] != before.get(key) else pinned.get(key), now[key])
        for key in sorted(now)
        if now[key] != before.get(key) or (settled(key) and now[key] != pinned.get(key, now[key]))
    }
    gone = sorted(key for key in before if key not in now)
    lines = [f"{key}: {old!r} → {new!r}" for key, (old, new) in changed.items()]
    lines += [f"{key}: {before[key]!r} → no such setting" for key in gone]
    if not lines:
        return Continued(folder, asked, asked if finished else folder.resolved(), finished=finished)
    if finished:
        raise RunError(
            f"{folder.path} is finished, and was trained with other settings:\n  " + "\n  ".join(lines) + "\n"
            "Leave --resume out to start a new run; --init starts one from the encoder of a finished run"
        )
    allowed = MAY_CHANGE if pinned.get("network.weights_sha256") else MAY_CHANGE - {"network.weights"}
    barred = [key for key in (*changed, *gone) if key not in allowed]
    if barred or not accept_changes:
        raise RunError(_refusal(folder, lines, barred))
    return Continued(folder, asked, _with_changes(folder.resolved(), changed), tuple(lines))


def _with_changes(pinned: RunConfig, changed: dict[str, tuple[Any, Any]]) -> RunConfig:
    values = pinned.model_dump(mode="json")
    for key, (_, new) in changed.items():
        section, _, name = key.partition(".")
        values[section][name] = new
    if "optim.total_steps" in changed and "optim.epochs" not in changed:
        values["optim"]["epochs"] = "auto"
    return validate(values)


def _refusal(folder: RunFolder, lines: list[str], barred: list[str]) -> str:
    text = f"{folder.path} was started with other settings:\n  " + "\n  ".join(lines) + "\n"
    if barred:
        return (
            text + f"A run that has begun cannot change {', '.join(barred)}. "
            "Resume with the settings it began with, or leave --resume out to start a new run"
        )
    return text + (
        "Resume with the settings it began with, add --accept-changes to continue with these, "
        "or leave --resume out to start a new run"
    )
