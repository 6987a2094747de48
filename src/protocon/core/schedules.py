"""Numbers that change during training, as pure functions of where training is: there is nothing to save."""

import math

from protocon.types import Progress


def fixmatch_cosine(progress: Progress) -> float:
    """FixMatch's factor on the learning rate, cos(7πk / 16K): it ends at a fifth, not at zero."""
    return math.cos(7.0 * math.pi * progress.step / (16.0 * progress.total_steps))


def cosine_between(first: float, last: float, progress: Progress) -> float:
    """From `first` at step 0 to `last` at the end along half a cosine, as DINO's momentum and weight decay.

    Args:
        first: value at step 0.
        last: value at the last step.
        progress: where training is.
    """
    return last + (first - last) * 0.5 * (1.0 + math.cos(math.pi * progress.step / progress.total_steps))
