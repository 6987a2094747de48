"""What each random draw of this room is for: two purposes never share a draw, whatever the seed."""

from enum import IntEnum


class Purpose(IntEnum):
    """Numbers folded into the seed. They are part of what a seed means: never renumber them."""

    LABEL_SPLIT = 101
    TEST_SPLIT = 102
    LABELLED_ORDER = 103
    UNLABELLED_ORDER = 104
    LABELLED_DRAW = 105
    UNLABELLED_DRAW = 106
    SUPPORT_CLASSES = 107
    SUPPORT_ORDER = 108
    SUPPORT_DRAW = 109
