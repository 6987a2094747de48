"""One file a method. To add one: write its file, add its line to METHODS."""

from protocon.methods.base import Method, MethodConfig, Problem
from protocon.methods.comatch import CoMatch
from protocon.methods.debiaspl import DebiasPL
from protocon.methods.fixmatch import FixMatch, FixMatchDA
from protocon.methods.flexmatch import FlexMatch
from protocon.methods.freematch import FreeMatch
from protocon.methods.protocon import ProtoCon
from protocon.methods.pseudolabel import PseudoLabel
from protocon.methods.simmatch import SimMatch
from protocon.methods.softmatch import SoftMatch
from protocon.methods.supervised import Supervised

METHODS: dict[str, type[Method]] = {
    "protocon": ProtoCon,
    "supervised": Supervised,
    "pseudo-label": PseudoLabel,
    "fixmatch": FixMatch,
    "fixmatch-da": FixMatchDA,
    "debiaspl": DebiasPL,
    "comatch": CoMatch,
    "simmatch": SimMatch,
    "flexmatch": FlexMatch,
    "freematch": FreeMatch,
    "softmatch": SoftMatch,
}

__all__ = ["METHODS", "Method", "MethodConfig", "Problem"]
