"""One file per method. To add one: write its file, add its line to the table."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from protocon.methods.base import Method, MethodConfig, Problem, Samples

# Name on the command line: module of this package, and class in it.
_TABLE = {
    "protocon": "protocon:ProtoCon",
    "protocon-frozen": "protocon_frozen:ProtoConFrozen",
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
    "simclr": "simclr_v2:SimCLR",
    "moco": "moco:MoCo",
    "swav": "swav:SwAV",
    "dino": "dino:DINO",
    "paws": "paws:PAWS",
    "mpl": "mpl:MPL",
    "finetune": "finetune:Finetune",
}


METHOD_NAMES = tuple(_TABLE)
"""Every method, in the order in which they are listed. Known without importing torch, for the shell's completion."""

METHODS: dict[str, type["Method"]]
"""Every method by its name; each is a class, with its settings in `Config`.

Examples:
    >>> from protocon import METHODS
    >>> METHODS["fixmatch"].Config().threshold
    0.95
"""

__all__ = ["METHODS", "METHOD_NAMES", "Method", "MethodConfig", "Problem", "Samples"]


def _load(place: str) -> type["Method"]:
    module, _, name = place.partition(":")
    found: type[Method] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def __getattr__(name: str) -> Any:
    """Import the methods, and torch with them, when they are first asked for."""
    if name == "METHODS":
        found: Any = {method: _load(place) for method, place in _TABLE.items()}
    elif name in __all__:
        found = getattr(import_module(f"{__name__}.base"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
