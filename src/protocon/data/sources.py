"""DATASETS: every data source by name. A new one is one function and one line here."""

from collections.abc import Callable

from protocon.data.arrays import arrays
from protocon.data.cifar import cifar10, cifar100
from protocon.data.digits import digits
from protocon.data.folders import imagefolder, imagenet
from protocon.data.huggingface import huggingface
from protocon.data.idx import fashion_mnist
from protocon.data.imageset import DataBundle
from protocon.data.labelled_folder import folder
from protocon.data.lists import domainnet, mini_imagenet
from protocon.data.metadata import metadata
from protocon.data.options import SourceOptions

Source = Callable[[SourceOptions], DataBundle]

DATASETS: dict[str, Source] = {
    "digits": digits,
    "fashion-mnist": fashion_mnist,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "mini-imagenet": mini_imagenet,
    "domainnet": domainnet,
    "imagenet": imagenet,
    "imagefolder": imagefolder,
    "folder": folder,
    "metadata": metadata,
    "hf": huggingface,
    "arrays": arrays,
}

OWN = ("folder", "imagefolder", "metadata", "hf", "arrays")
"""Sources for data of any kind, rather than for one benchmark."""
