"""ProtoCon: label-scarce semi-supervised image classification, with its baselines in one codebase."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Takes effect where torch is not loaded yet: threads that wait for each other sleep instead of spinning. On a machine
# that does something else too, spinning threads keep the ones they wait for off the cores, and small networks train
# many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if TYPE_CHECKING:
    from protocon.data.registry import DATASETS
    from protocon.engine.run import fit
    from protocon.estimator.classifier import ProtoConClassifier
    from protocon.export.export_run import export_run
    from protocon.labeller.notebook import label
    from protocon.methods import METHODS
    from protocon.picking.pick_folder import pick
    from protocon.runs.trained import load_run
    from protocon.settings.config import RunConfig, build_config

__all__ = [
    "DATASETS",
    "METHODS",
    "ProtoConClassifier",
    "RunConfig",
    "build_config",
    "export_run",
    "fit",
    "label",
    "load_run",
    "pick",
]

_HOMES = {
    "DATASETS": "protocon.data.registry",
    "METHODS": "protocon.methods",
    "ProtoConClassifier": "protocon.estimator.classifier",
    "RunConfig": "protocon.settings.config",
    "build_config": "protocon.settings.config",
    "export_run": "protocon.export.export_run",
    "fit": "protocon.engine.run",
    "label": "protocon.labeller.notebook",
    "load_run": "protocon.runs.trained",
    "pick": "protocon.picking.pick_folder",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: the core can be used without the trainer's imports."""
    if name == "__version__":
        from importlib.metadata import version  # here: it takes longer than all the rest of this file

        return version("protocon")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'protocon' has no attribute {name!r}")
