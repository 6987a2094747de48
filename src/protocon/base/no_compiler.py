"""Keep torch from importing its compiler, which takes two seconds, where nothing is compiled.

torch marks a few functions as none of the compiler's business, and imports the compiler to do so when one of them is
first called. Optimisers are full of them.
"""

import sys
from collections.abc import Callable
from typing import Any

_MARK = "__dynamo_disable"


def spare_compiler(*functions: Callable[..., Any]) -> None:
    """Let these functions of torch run as they are, unless the compiler is there already.

    They are marked where torch looks for its own mark. A version of torch that looks elsewhere imports the compiler, as
    it would without this.

    Args:
        functions: marked by torch, not called before.
    """
    if "torch._dynamo" in sys.modules:
        return
    for function in functions:
        plain = getattr(function, "__wrapped__", None)
        if plain is not None and not hasattr(plain, _MARK):
            setattr(plain, _MARK, plain)
