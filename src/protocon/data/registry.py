"""DATASETS: every data source by name. A new one is one function and one line here."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from protocon.data.source_options import SourceOptions

if TYPE_CHECKING:
    from protocon.data.imageset import DataBundle

Source = Callable[[SourceOptions], "DataBundle"]

# Name on the command line: module of `protocon.data.sources`, and function in it.
_TABLE = {
    "digits": "digits:digits",
    "fashion-mnist": "fashion_mnist:fashion_mnist",
    "cifar10": "cifar:cifar10",
    "cifar100": "cifar:cifar100",
    "mini-imagenet": "lists:mini_imagenet",
    "domainnet": "lists:domainnet",
    "imagenet": "class_folders:imagenet",
    "imagefolder": "class_folders:imagefolder",
    "folder": "labelled_folder:folder",
    "images": "unlabelled_folder:unlabelled_folder",
    "metadata": "hf_folder:metadata",
    "hf": "hf_hub:huggingface",
    "arrays": "arrays:arrays",
}
DATASET_NAMES = tuple(_TABLE)
"""Every data source, known without importing torch, for the shell's completion."""

OWN = ("folder", "imagefolder", "images", "metadata", "hf", "arrays")
"""Sources for data of any kind, rather than for one benchmark."""

DATASETS: dict[str, Source]
"""Every data source by its name.

Examples:
    >>> from protocon import DATASETS
    >>> from protocon.data.source_options import SourceOptions
    >>> len(DATASETS["digits"](SourceOptions()).train)
    1397
"""


def _load(place: str) -> Source:
    module, _, name = place.partition(":")
    found: Source = getattr(import_module(f"protocon.data.sources.{module}"), name)
    return found


def __getattr__(name: str) -> Any:
    """Import the sources, and torch with them, when they are first asked for."""
    if name != "DATASETS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = {source: _load(place) for source, place in _TABLE.items()}
    return found
