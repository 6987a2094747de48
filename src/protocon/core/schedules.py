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


def warmup_cosine(progress: Progress, *, warmup_epochs: float, start: float = 0.0, end: float = 0.0) -> float:
    """A factor on the learning rate: from `start` to 1 along a line, then to `end` along half a cosine.

    Args:
        progress: where training is.
        warmup_epochs: length of the line; at most a tenth of the run.
        start: at step 0.
        end: at the last step.
    """
    warmup = min(warmup_epochs / progress.total_epochs, 0.1) * progress.total_steps
    if progress.step < warmup:
        return start + (1.0 - start) * progress.step / warmup
    done = (progress.step - warmup) / max(1.0, progress.total_steps - warmup)
    return end + (1.0 - end) * 0.5 * (1.0 + math.cos(math.pi * done))
