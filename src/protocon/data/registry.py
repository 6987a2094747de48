"""DATASETS: every data source by name. A new one is one function and one line here."""

from collections.abc import Callable

from protocon.data.imageset import DataBundle
from protocon.data.source_options import SourceOptions
from protocon.data.sources.arrays import arrays
from protocon.data.sources.cifar import cifar10, cifar100
from protocon.data.sources.class_folders import imagefolder, imagenet
from protocon.data.sources.digits import digits
from protocon.data.sources.fashion_mnist import fashion_mnist
from protocon.data.sources.hf_folder import metadata
from protocon.data.sources.hf_hub import huggingface
from protocon.data.sources.labelled_folder import folder
from protocon.data.sources.lists import domainnet, mini_imagenet

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
