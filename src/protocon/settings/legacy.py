"""Files of version 0.1: what its runs did where their settings say nothing, and names that have changed since."""

from collections.abc import Mapping
from typing import Any

_ADDED: dict[str, dict[str, Any]] = {
    "data": {"fit": "crop"},
    "network": {
        "pooled_blocks": 0,
        "second_look": 0.0,
        "colour_shares": False,
        "space": "standard",
        "feature_engine": "torch",
    },
    "views": {"cached_mirror": False},
}
"""Settings that were added later, with the value that stands for what was done before."""


def with_old_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a finished choice, complete: a setting that the file does not have is what it was then."""
    complete = dict(settings)
    for section, added in _ADDED.items():
        given = settings.get(section)
        if isinstance(given, Mapping):
            complete[section] = {**added, **given}
    return complete


def with_current_result(result: Any) -> Any:
    """The content of a result.json with its present names; 0.1 counted `hidden` labels where they are held out."""
    checked = result.get("cross_check") if isinstance(result, dict) else None
    if not isinstance(checked, dict) or "hidden" not in checked:
        return result
    return {**result, "cross_check": {"held_out" if key == "hidden" else key: n for key, n in checked.items()}}


def with_epochs(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a finished run; 0.1 wrote no number of epochs where it was given the number of steps.

    There were at most as many, of one step each; what uses a finished run has no need of the number.
    """
    optim = settings.get("optim")
    if isinstance(optim, Mapping) and optim.get("epochs") == "auto" and optim.get("total_steps") is not None:
        return {**settings, "optim": {**optim, "epochs": optim["total_steps"]}}
    return dict(settings)
