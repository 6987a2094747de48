"""Batched views on the device, every image with its own draw."""

from protocon.augment.batches import PixelView, View
from protocon.augment.features import FeatureView
from protocon.augment.randaugment import OPERATIONS, Operation, RandAugmentView
from protocon.augment.simclr import SimCLRView
from protocon.augment.views import CentreView, RandomCropFlip, WeakView

__all__ = [
    "OPERATIONS",
    "CentreView",
    "FeatureView",
    "Operation",
    "PixelView",
    "RandAugmentView",
    "RandomCropFlip",
    "SimCLRView",
    "View",
    "WeakView",
]
