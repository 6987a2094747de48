"""The rows of the tables: which method, and what is different about it in that row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """A method as a table has it."""

    method: str
    """A name of METHODS, whether or not it is there yet."""
    title: str
    """As the paper prints it."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What differs from the method in other tables, section by section."""
    weights: str | None = None
    """What the encoder starts from, where it does not start from scratch."""
    recipe: str | None = None
    """The recipe that it extends, where that is not the column's: the method's own paper has another schedule."""
    by_column: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """What differs in one column only."""


_EMAN: Mapping[str, Mapping[str, Any]] = {"method": {"teacher": "eman"}, "optim": {"epochs": 50}}
"""850 epochs: 800 of MoCo, then 50."""
_MOCO = "an encoder pre-trained by MoCo for 800 epochs"
_TENTH: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "imagenet-10": {"method": {"classifier_rate": 20}, "optim": {"lr": 0.01, "total_steps": 10_009}}
}
"""SwAV's fine-tuning with 10 % of the labels: other rates, and 20 passes over 128,117 images."""
_SIMCLR_TENTH: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"imagenet-10": {"optim": {"total_steps": 3_753}}}
"""SimCLR v2's fine-tuning with 10 % of the labels: 30 passes over them instead of 60."""


def _tuned(title: str, recipe: str, source: str, **more: Any) -> Row:
    """A row of representation learning: pre-trained without labels, then fine-tuned."""
    return Row("finetune", title, {}, f"an encoder pre-trained by {source}", recipe, **more)


ROWS = {
    "fixmatch": Row("fixmatch", "FixMatch"),
    "fixmatch-da": Row("fixmatch-da", "FixMatch + DA"),
    "comatch": Row("comatch", "CoMatch"),
    "simmatch": Row("simmatch", "SimMatch"),
    "debiaspl": Row("debiaspl", "FixMatch + DB"),
    "protocon": Row("protocon", "ProtoCon"),
}
"""Tables 1 and 2 and the moderate-label table."""
IMAGENET_ROWS = {
    **{name: ROWS[name] for name in ("fixmatch", "fixmatch-da", "debiaspl", "protocon")},
    "supervised": Row("supervised", "Supervised"),
    "swav": _tuned("SwAV", "imagenet-finetune-swav", "SwAV (recipe imagenet-swav)", by_column=_TENTH),
    "simclr": _tuned(
        "SimCLRv2++", "imagenet-finetune-simclr", "SimCLR v2 (recipe imagenet-simclr)", by_column=_SIMCLR_TENTH
    ),
    "dino": _tuned("DINO", "imagenet-finetune-swav", "DINO (recipe imagenet-dino)", by_column=_TENTH),
    "paws": Row("paws", "PAWS++", recipe="imagenet-paws"),
    "mpl": Row("mpl", "MPL", recipe="imagenet-mpl"),
    "comatch": Row("comatch", "CoMatch", {"optim": {"epochs": 400}}),
    "fixmatch-eman": Row("fixmatch", "FMatch + EMAN", _EMAN, _MOCO),
    "debiaspl-eman": Row("debiaspl", "FMatch + DB + EMAN", _EMAN, _MOCO),
    "protocon-eman": Row("protocon", "ProtoCon + EMAN", _EMAN, _MOCO),
}
"""Table 3. Epochs are in the table's own column; those that are not 300 are given here."""


def _ours(title: str, **method: Any) -> Row:
    return Row("protocon", title, {"method": method})


ABLATION_ROWS = {
    "all": Row("protocon", "all losses, n = 250, α = 0.8"),
    "no-lc": _ours("without L_c", lambda_c=0),
    "no-lp": _ours("without L_p", lambda_p=0),
    "no-lc-lp": _ours("without L_c and L_p", lambda_c=0, lambda_p=0),
    "n-50": _ours("n = 50", neighbours=50, clusters=1000),
    "n-500": _ours("n = 500", neighbours=500, clusters=100),
    "n-1000": _ours("n = 1,000", neighbours=1000, clusters=50),
    "alpha-0.5": _ours("α = 0.5", alpha=0.5),
    "alpha-0.7": _ours("α = 0.7", alpha=0.7),
    "alpha-0.9": _ours("α = 0.9", alpha=0.9),
}
