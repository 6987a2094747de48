"""Cells of the paper's tables for two steps on small data of the right layout: what is changed, and nothing else."""

from pathlib import Path

from rich.console import Console

from protocon.engine.run import fit
from protocon.paper.paper_cells import PaperCell, paper_cells
from protocon.reproduce.reproduce_run import Reproduction
from protocon.settings.config import build_config
from tests.engine.layouts import LAYOUTS

QUICK = ("report=false", "tensorboard=false", "batch_size=16", "mu=7", "epochs=auto", "total_steps=2")
_SMALL = ("network.encoder=wrn-10-1",)
"""A WRN-28-8, and a ResNet-50 at 224 pixels, would take minutes for two steps."""
_OURS = ("method.neighbours=5",)
"""The paper's n = 250 needs more images than these sets have."""
_SIDE = ("data.image_size=16",)
_FEW = ("data.labels_per_class=2",)
"""Where the cell has about as many labels per class as the set has images."""


def changes(cell: PaperCell) -> list[str]:
    """What small data change in a cell's recipe. CIFAR-10 with 40 labels keeps its WRN-28-2."""
    data = data_of(cell)
    found = [*QUICK, *(() if cell.column == "cifar10-40" and cell.row == "protocon" else _SMALL)]
    if cell.method.method == "protocon":
        found += _OURS
    if data in ("mini-imagenet", "domainnet", "imagenet"):
        found += _SIDE
    if data == "imagenet":
        found += ["data.workers=1"]
    if cell.column in ("cifar100-400", "cifar100-800", "mini-imagenet-1000") or cell.table == "moderate":
        found += _FEW
    if cell.method.method == "paws":
        found += ["method.support_classes=2", "method.support_per_class=1", "method.small_size=8"]
    return found


def data_of(cell: PaperCell) -> str:
    """The data set's name, as `--root NAME=FOLDER` has it."""
    return cell.setting.parent.removeprefix("paper-")


def small_reproduction(name: str, data: Path, out: Path) -> Reproduction:
    """A cell with one seed.

    Args:
        name: of the cell.
        data: folder of small data sets, which are written where they are missing.
        out: folder of the reproduction.
    """
    cell = paper_cells()[name]
    root = data / data_of(cell)
    if not root.exists():
        root.mkdir(parents=True)
        LAYOUTS[data_of(cell)][1](root)
    weights = {} if cell.method.weights is None else {cell.row: pretrained(cell.row, root, data)}
    cells, roots = [f"{cell.column}/{cell.row}"], {data_of(cell): root}
    return Reproduction(cell.table, out, cells=cells, roots=roots, weights=weights, seeds=1, overrides=changes(cell))


def pretrained(row: str, root: Path, out: Path) -> Path:
    """Weights that a row starts from: one step of the pre-training that it names.

    Args:
        row: of Table 3.
        root: small ImageNet.
        out: folder of the runs; a finished one is used again.
    """
    method = "moco" if row.endswith("-eman") else row
    small = [*QUICK, *_SMALL, *_SIDE, "data.workers=1", f"data.root={root}", "mu=1", "total_steps=1"]
    small += {"swav": ["method.small_size=8", "method.prototypes=4"], "moco": ["method.queue_size=8"]}.get(method, [])
    small += ["method.small_size=8", "method.prototypes=16"] if method == "dino" else []
    config = build_config(recipe=f"imagenet-{method}", overrides=small)
    if not (out / method / "model.safetensors").is_file():
        fit(config, out=out, name=method, console=Console(quiet=True))
    return out / method / "model.safetensors"
