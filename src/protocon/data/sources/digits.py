"""scikit-learn's handwritten digits: 1,797 grey images of 8×8 that need no download."""

import numpy as np
import torch

from protocon.data.files.digests import content_of
from protocon.data.files.resize_arrays import resize_images
from protocon.data.imageset import ArrayImages, DataBundle, DataHints
from protocon.data.source_options import SourceOptions

_TEST_PER_CLASS = 40


def digits(options: SourceOptions) -> DataBundle:
    """1,397 training and 400 test images, grey, pixel values 0–16 scaled to 0–255.

    The test set is fixed: of each class, 40 images evenly spaced in the file's order (of n images those
    at ⌊j·n/40⌋, j = 0…39), so that every writer is in both sets and no seed changes the test.
    """
    from sklearn.datasets import load_digits  # imported here: it takes a second, and only this needs it

    options.accept_only("digits", "image_size")
    values, labels = load_digits(return_X_y=True)
    images = np.rint(values * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    labels = labels.astype(np.int64)
    members = [np.flatnonzero(labels == label) for label in range(10)]
    test = np.sort(np.concatenate([m[np.arange(_TEST_PER_CLASS) * len(m) // _TEST_PER_CLASS] for m in members]))
    train = np.setdiff1d(np.arange(len(labels)), test)

    def part(index: np.ndarray) -> ArrayImages:
        chosen = torch.from_numpy(images[index])
        resized = chosen if options.image_size is None else resize_images(chosen, options.image_size)
        return ArrayImages(
            resized,
            labels[index],
            map(str, range(10)),
            name="digits",
            ids=map(str, index),
            content=content_of(chosen),
        )

    return DataBundle(part(train), part(test), DataHints(flip=False))
