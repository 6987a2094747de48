"""The whole pipeline on some of a folder's images: what `protocon train` makes of labels that were picked."""

import copy

import numpy as np
from rich.console import Console

from benchmarks.suite_cells import Folder as SuiteFolder
from benchmarks.suite_cells import every
from protocon.base.parts import Parts
from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.labels.label_split import make_split
from protocon.engine.loop.display import Display
from protocon.engine.loop.trainer import build_trainer, train_in_memory
from protocon.engine.setup.encode import FeatureInputs
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import build, settle
from protocon.features.cached_views import CachedViews

METHOD = "protocon-frozen"


class Pipeline:
    """`protocon train` as `auto` sets it, on cached features of a folder of the suite.

    Args:
        folder: of the suite.
    """

    def __init__(self, folder: SuiteFolder) -> None:
        self.folder = folder
        self._settled = folder.settled(METHOD, "1", 0)
        self._inputs = folder.inputs(self._settled)

    @property
    def bundle(self) -> DataBundle:
        """The images with their true classes."""
        return self._settled.bundle

    def seen(self) -> tuple[np.ndarray, np.ndarray, Parts]:
        """Features of the training images (N, D), as `protocon pick` sees them, and what goes with them.

        Returns:
            Features, true classes (N,), and what features consist of.
        """
        cached = self._inputs.cached
        return cached.mean().numpy(), self.bundle.train.labels, self._inputs.encoder.parts

    def tested(self) -> tuple[np.ndarray, np.ndarray]:
        """Components of the test images (T, d), and their true classes."""
        test = self.bundle.test
        assert test is not None
        return every(self._inputs.seen(test))[:, 0], test.labels

    def predict(self, kept: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Classes of the test images, and of the kept ones, after a run on the kept images alone.

        Classes without a label are unknown to the run, as they are to a user's.

        Args:
            kept: positions of the images that the run sees.
            labels: of the kept images, −1 = unknown.
            seed: of the run.
        """
        present = np.unique(labels[labels >= 0])
        test = self.bundle.test
        assert test is not None
        if len(present) == 1:
            return np.full(len(test), present[0]), np.full(len(kept), present[0])
        known = np.where(labels < 0, -1, np.searchsorted(present, labels))
        train = relabelled(self.bundle.train.subset(kept), known, present)
        tested = relabelled(test, np.full(len(test), -1), present)
        bundle = DataBundle(train, tested, self.bundle.hints)
        settled = settle(self.folder.config(METHOD, seed), bundle, split=make_split(train, seed=seed))
        views, own = self._inputs.train, self._inputs.tested
        assert own is not None
        inputs = FeatureInputs(
            *(settled.config, bundle, self._inputs.encoder, self._inputs.space),
            cached=CachedViews(train, self._inputs.cached.read(kept)),
            train=CachedViews(train, views.read(kept)),
            test=CachedViews(tested, own.tensor),
        )
        trainer = build_trainer(build(settled, inputs), build_fabric(settled.config))
        lengths = settled.resolved
        quiet = Display(
            Console(quiet=True), title="", total_epochs=lengths.total_epochs, steps_per_epoch=lengths.steps_per_epoch
        )
        with quiet:
            train_in_memory(trainer, quiet)
        guesses = [
            present[trainer.predict(trainer.evaluated, images).logits.argmax(-1).cpu().numpy()]
            for images in (tested, train)
        ]
        return guesses[0], guesses[1]


def relabelled(images: ImageSet, labels: np.ndarray, present: np.ndarray) -> ImageSet:
    """The same images, of which other labels are known, of some of the classes.

    Args:
        images: the set.
        labels: (N,), −1 = unknown, numbers within `present`.
        present: classes that are known.
    """
    chosen = copy.copy(images)
    chosen.labels = np.ascontiguousarray(labels, dtype=np.int64)
    chosen.class_names = tuple(images.class_names[int(label)] for label in present)
    return chosen
