"""Coverage: which images, looked at together, leave the fewest others without a look-alike.

Facility location: an image is covered as well as its most similar chosen image covers it, and every image *demands* to
be covered, by default all alike. The greedy choice takes the image that adds most; it has density (it covers many) and
diversity (what is covered already counts no more) in one number, and a longer list begins with the shorter one.
"""

import heapq
from collections.abc import Sequence

import numpy as np

from protocon.base.draws import permutation
from protocon.picking.likeness import Likeness

DEMANDS = 5_000
"""Of more images than this a part is covered, drawn once: what covers five thousand covers the rest."""
CANDIDATES = 2_000
"""Images that may be picked, drawn once: with them a table of similarities takes 40 MB, and a pick 10 ms, at most."""
_PURPOSE = 401


class Coverage:
    """Similarities of all images to those that may be picked, and how well each is covered so far.

    Calling `best` never changes what was chosen; `cover` does.

    Args:
        units: points (N, d), rows of length 1.
        seed: of the draws of candidates and demands where there are many images.
        candidates: how many images may be picked, at most.
        demands: how many images are to be covered, at most.
    """

    def __init__(
        self, units: np.ndarray, *, seed: int = 0, candidates: int = CANDIDATES, demands: int = DEMANDS
    ) -> None:
        order = permutation(len(units), seed, _PURPOSE)
        self.demands = np.sort(order[:demands])
        self.candidates = np.sort(order[: min(candidates, demands)])
        self._units = units
        self._wanting = {int(image): row for row, image in enumerate(self.demands)}
        self._likeness = Likeness(units[self.demands])
        self._table = self._likeness.between(np.searchsorted(self.demands, self.candidates))
        self._places = {int(image): place for place, image in enumerate(self.candidates)}
        self.covered = np.zeros(len(self.demands), dtype=np.float32)

    def similarity(self, image: int) -> np.ndarray:
        """Of one image to all that demand to be covered."""
        if image in self._places:
            row: np.ndarray = self._table[self._places[image]]
        elif image in self._wanting:
            row = self._likeness.between(np.array([self._wanting[image]]))[0]
        else:
            row = self._likeness.outside(self._units[image])
        return row

    def cover(self, images: Sequence[int] | np.ndarray) -> None:
        """Take these images as chosen."""
        for image in images:
            np.maximum(self.covered, self.similarity(int(image)), out=self.covered)

    def best(self, count: int, *, without: set[int], demand: np.ndarray | None = None) -> list[int]:
        """The next images, best first: lazily greedy, which gives the greedy choice without looking at all of them.

        Args:
            count: how many; fewer where candidates run out.
            without: images that may not be chosen, such as those with labels.
            demand: how much each of the demanding images counts; None: all alike.
        """
        covered = self.covered.copy()
        weights = np.ones(len(covered), dtype=np.float32) if demand is None else demand.astype(np.float32)
        gains = self._gains(covered, weights)
        heap = [
            (-float(gain), int(image))
            for gain, image in zip(gains, self.candidates, strict=True)
            if int(image) not in without
        ]
        heapq.heapify(heap)
        chosen: list[int] = []
        while heap and len(chosen) < count:
            _, image = heapq.heappop(heap)
            row = self._table[self._places[image]]
            gain = float(weights @ np.maximum(row - covered, 0.0))
            # A gain never grows when others are chosen: what is still ahead of all others is the best.
            if heap and (-gain, image) > heap[0]:
                heapq.heappush(heap, (-gain, image))
                continue
            chosen.append(image)
            np.maximum(covered, row, out=covered)
        return chosen

    def _gains(self, covered: np.ndarray, weights: np.ndarray) -> np.ndarray:
        gains = np.empty(len(self._table), dtype=np.float32)
        for start in range(0, len(self._table), 64):  # few rows at a time stay in the processor's cache
            part = self._table[start : start + 64]
            gains[start : start + 64] = np.maximum(part - covered, 0.0) @ weights
        return gains


def nearest_chosen(units: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """For each image the position in `chosen` of the one that it is most similar to; ties go to the first."""
    owner = np.empty(len(units), dtype=np.int64)
    for start in range(0, len(units), 4096):
        owner[start : start + 4096] = (units[start : start + 4096] @ units[chosen].T).argmax(axis=1)
    owner[chosen] = np.arange(len(chosen))  # copies of one image: each stands for itself at least
    return owner


def stands_for(units: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """How many images each chosen one stands for, itself included: the sum is N."""
    return np.bincount(nearest_chosen(units, chosen), minlength=len(chosen))
