"""How much the colours of images count among the encoder's features: as much as the images themselves say.

In some folders colours go with what the encoder sees (leaves, dishes, lesions), in others they are an accident (the
paint of a car). No label is needed to tell the two apart: where colours matter, images that the encoder takes for
neighbours are alike in colour, too, about as much as in the encoder's own features. Its last layer has been taught to
overlook colours, so it is a fair judge; the pooled outputs of earlier blocks know them, and would find neighbours that
are alike in colour wherever they are asked.
"""

import numpy as np

from protocon.base.blas_thread import on_one_blas_thread
from protocon.base.parts import Parts, columns

ASKED = 1024
"""Images, spread evenly, that are asked: more say the same."""
_FEWEST = 32
"""Fewer have no neighbours to speak of, and colours count."""
_NEIGHBOURS, _FEWEST_NEIGHBOURS, _IMAGES_A_NEIGHBOUR = 15, 5, 25
"""Of how many nearest others likeness is the mean: fewer among a few hundred images, so that they are near ones."""
_NOTHING, _ALL = 0.75, 0.9
"""Likeness in colour over likeness in the encoder's own features at which colours do not count, and count in full."""


@on_one_blas_thread
def column_weights(rows: np.ndarray, parts: Parts) -> np.ndarray:
    """What each column is to be multiplied by, (D,) float32: 1, and of colours a number between 0 and 1.

    Args:
        rows: features (n, D), each part as it stands in a point.
        parts: what they consist of.
    """
    kinds = np.concatenate([np.full(part.width, part.kind) for _, part in columns(parts)])
    of_colours = kinds == "colours"
    weights = np.ones(len(kinds), dtype=np.float32)
    if of_colours.any() and len(rows) >= _FEWEST:
        asked = rows[np.linspace(0, len(rows) - 1, min(len(rows), ASKED)).astype(np.int64)].astype(np.float32)
        weights[of_colours] = _weight(asked - asked.mean(0), of_colours, kinds == "own")
    return weights


def _weight(centred: np.ndarray, of_colours: np.ndarray, own: np.ndarray) -> float:
    found = _nearest(centred[:, own])
    in_itself = likeness(centred[:, own], found)
    if in_itself <= 0:  # neighbours have nothing in common: nothing is known
        return 1.0
    ratio = likeness(centred[:, of_colours], found) / in_itself
    return float(np.clip((ratio - _NOTHING) / (_ALL - _NOTHING), 0.0, 1.0))


def _nearest(rows: np.ndarray) -> np.ndarray:
    """The nearest others of each row by cosine, (n, 5 to 15), in no order."""
    count = min(_NEIGHBOURS, max(_FEWEST_NEIGHBOURS, len(rows) // _IMAGES_A_NEIGHBOUR))
    units = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    return np.asarray(np.argpartition(cosines, -count, axis=1)[:, -count:])


def likeness(centred: np.ndarray, found: np.ndarray) -> float:
    """Mean product of a row and its neighbours, over the mean square of a row: 1 where they are the same, 0 by chance.

    Args:
        centred: (n, d), mean 0.
        found: neighbours of each row (n, k).
    """
    products = np.take_along_axis(centred @ centred.T, found, axis=1)
    return float(products.mean(dtype=np.float64) / max(np.square(centred).sum(1).mean(dtype=np.float64), 1e-12))
