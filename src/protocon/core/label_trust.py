"""What labels that were held out tell: whom to trust, and how far.

Neighbours do not help everywhere: where classes differ in details that distances do not show, they carry a common class
into a rare one. A few labels, each predicted without itself, are enough to notice.
"""

import math
from dataclasses import dataclass

import numpy as np

from protocon.core.softmax_regression import softmax

_FOR, _AGAINST = 6, 2
"""Labels' worth of belief, before any is seen, that the agreement is better than the linear classifier, and not."""
_STEPS = 17
_MAX_TEMPERATURE = 5.0
_PULL = 2.0
"""How strongly temperatures are pulled to 1: nats per squared logarithm."""
_TINY = 1e-6


@dataclass(frozen=True)
class HeldOut:
    """Labels, each with what was said of it by models that did not have it."""

    known: np.ndarray
    """The labels, int64 (m,)."""
    linear: np.ndarray
    """Probabilities by the linear classifier, (m, C)."""
    agreed: np.ndarray
    """Probabilities by linear classifier, Gaussians and neighbours in agreement, (m, C)."""


def linear_share(held_out: HeldOut, smallest: float) -> float:
    """How much the linear classifier alone should count: the probability that it is the better of the two.

    Only labels that one of them gets right and the other wrong tell anything. Of these, a share p speaks for the
    agreement; the answer is the probability that p < ½ under a beta distribution.

    Args:
        held_out: labels and opinions.
        smallest: share that it has in any case; all that it has where no label could be held out.
    """
    if not len(held_out.known):
        return smallest
    linear, agreed = (probs.argmax(1) == held_out.known for probs in (held_out.linear, held_out.agreed))
    wins, losses = int((agreed & ~linear).sum()), int((linear & ~agreed).sum())
    return max(smallest, _below_half(wins + _FOR, losses + _AGAINST))


def _below_half(first: int, second: int) -> float:
    """P(p < ½) under a beta distribution: that of so many heads or more, of whole numbers."""
    throws = first + second - 1
    ways = total = math.comb(throws, first)
    for heads in range(first, throws):
        ways = ways * (throws - heads) // (heads + 1)
        total += ways
    return total / (1 << throws)


def mix(linear: np.ndarray, agreed: np.ndarray, share: float) -> np.ndarray:
    """Both opinions' weighted mean; rows sum to 1.

    Args:
        linear: the linear classifier's opinion, (n, C).
        agreed: of linear classifier, Gaussians and neighbours in agreement, (n, C).
        share: weight of the first.
    """
    mixed = share * linear + (1.0 - share) * agreed
    return np.asarray(mixed / mixed.sum(1, keepdims=True))


def fitted_temperature(probs: np.ndarray, known: np.ndarray) -> float:
    """The temperature, 1 or more, at which the held-out labels are likeliest, pulled to 1; 1 where there are none.

    Args:
        probs: of the held-out images (m, C).
        known: their labels (m,).
    """
    if not len(known):
        return 1.0
    grid = np.exp(np.linspace(0.0, np.log(_MAX_TEMPERATURE), _STEPS))
    own = np.arange(len(known))
    losses = [-np.log(softened(probs, t)[own, known] + _TINY).sum() + _PULL * np.log(t) ** 2 for t in grid]
    return float(grid[int(np.argmin(losses))])


def softened(probs: np.ndarray, temperature: float) -> np.ndarray:
    """Probabilities to the power 1 / temperature, rows summing to 1; the order of the classes stays."""
    return softmax(np.log(probs + _TINY) / temperature)
