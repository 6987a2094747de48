"""Why an image was picked, in a few words that a labeller understands."""

_UNSURE = 0.5
"""A margin below this is called unsure."""


def reason(stands_for: int, margin: float | None, *, apart: bool) -> str:
    """One line.

    Args:
        stands_for: images that it stands for, itself included.
        margin: of the model's two likeliest classes; None where there is no model yet.
        apart: the model and the nearest labels disagree.
    """
    others = stands_for - 1
    like = f"looks like {others:,} other image{'' if others == 1 else 's'}" if others else "unlike all others"
    if apart:
        return f"the model and the nearest labels disagree; {like}"
    if margin is not None and margin < _UNSURE:
        return f"the model is unsure; {like}"
    return like if margin is None else f"no label near it; {like}"
