"""Which slot of a key's random numbers belongs to which component, so that no two share a draw."""

from enum import IntEnum


class Slot(IntEnum):
    """The `slot` argument of `protocon.base.draws`; a new component takes a new number, never a used one."""

    WEAK = 1
    CROP = 2
    RANDAUGMENT = 3
    SIMCLR = 4
    FEATURE_NOISE = 5
    FEATURE_DROPOUT = 6
    CACHED_VIEW = 7
    SOLARISED = 8
