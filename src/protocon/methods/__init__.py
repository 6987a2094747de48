"""One file a method. To add one: write its file, add its line to the table."""

from importlib import import_module

from protocon.methods.base import Method, MethodConfig, Problem

# Name on the command line: module of this package, and class in it.
_TABLE = {
    "protocon": "protocon:ProtoCon",
    "supervised": "supervised:Supervised",
    "pseudo-label": "pseudolabel:PseudoLabel",
    "fixmatch": "fixmatch:FixMatch",
    "fixmatch-da": "fixmatch:FixMatchDA",
    "debiaspl": "debiaspl:DebiasPL",
    "comatch": "comatch:CoMatch",
    "simmatch": "simmatch:SimMatch",
    "flexmatch": "flexmatch:FlexMatch",
    "freematch": "freematch:FreeMatch",
    "softmatch": "softmatch:SoftMatch",
}


def _load(place: str) -> type[Method]:
    module, _, name = place.partition(":")
    found: type[Method] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


METHODS: dict[str, type[Method]] = {name: _load(place) for name, place in _TABLE.items()}
"""Every method by its name, in the order in which they are listed."""

__all__ = ["METHODS", "Method", "MethodConfig", "Problem"]
