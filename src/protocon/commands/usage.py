"""Wrong usage: an option that does not exist names the nearest one that does, or the setting that was meant."""

import difflib
from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose message about an unknown option is of use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does, with another message for an option that it does not know."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # click's NoSuchOption, which typer brings from one place or another
            unknown = getattr(error, "option_name", None)
            if unknown is None or not hasattr(error, "possibilities"):
                raise
            flags = [flag for parameter in self.params for flag in parameter.opts if flag.startswith("--")]
            takes_settings = any(parameter.name == "arguments" for parameter in self.params)
            error.message = _advice(unknown, flags, takes_settings=takes_settings)  # type: ignore[attr-defined]
            error.possibilities = None
            raise


def _advice(unknown: str, flags: list[str], *, takes_settings: bool) -> str:
    """What is wrong with an option, and what to write instead."""
    near = difflib.get_close_matches(unknown, flags, n=1, cutoff=0.5)
    slip = difflib.get_close_matches(unknown, flags, n=1, cutoff=0.8)
    if not slip and takes_settings and (setting := _setting(unknown.lstrip("-").replace("-", "_"))):
        return f"there is no option {unknown}, but a setting of that name: write {setting}=VALUE"
    return f"there is no option {unknown}; " + (f"did you mean {near[0]}?" if near else "see --help")


def _setting(name: str) -> str | None:
    """The setting of any method that is called so."""
    from protocon.methods import METHODS
    from protocon.settings.config import known_keys

    for method in METHODS:
        for section, names in known_keys(method).items():
            if name in names:
                return f"{section}.{name}"
    return None
