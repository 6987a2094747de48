"""Classes that may be one, spelled in two ways: Butterfly, buterfly, butterflies."""

from collections.abc import Sequence

from protocon.data.files.names import shown

_SHORTEST = 5
"""Shorter names differ by a letter without being mistakes: cat and bat."""
_COMPARED = 400
"""Of more classes, letters are not compared: that is a comparison for every pair."""


def similar_classes(names: Sequence[str], counts: Sequence[int]) -> list[str]:
    """A line for each group of class names that differ by capitals, spaces, a plural or one letter.

    Args:
        names: of the classes.
        counts: labels of each.
    """
    group = list(range(len(names)))
    stems = [_stem(name) for name in names]
    first: dict[str, int] = {}
    for number, stem in enumerate(stems):
        group[number] = group[first.setdefault(stem, number)]
    if len(names) <= _COMPARED:
        for number, stem in enumerate(stems):
            for other in range(number):
                if group[other] != group[number] and _one_letter_apart(stems[other], stem):
                    old, new = group[number], group[other]
                    group = [new if g == old else g for g in group]
    lines = []
    for leader in dict.fromkeys(group):
        members = [number for number, g in enumerate(group) if g == leader]
        if len(members) > 1:
            listed = ", ".join(f"{shown(names[n])} ({counts[n]:,})" for n in members)
            lines.append(f"classes that may be one, with their labels: {listed}. If so, give them one name")
    return lines


def meant_class(came: str, names: Sequence[str]) -> str | None:
    """The class that a name which is none of them was probably meant to be; None where it is near none.

    Args:
        came: the name, as a person wrote it.
        names: of the classes.
    """
    stem = _stem(came)
    stems = {name: _stem(name) for name in names}
    same = (name for name, other in stems.items() if stem and other == stem)
    near = (name for name, other in stems.items() if _one_letter_apart(other, stem))
    return next(same, None) or next(near, None)


def _stem(name: str) -> str:
    """A name without capitals, spaces and plural; numbers stay as they are."""
    text = "".join(name.casefold().replace("-", " ").replace("_", " ").split())
    if not text or text[-1] != "s" or len(text) < _SHORTEST - 1:
        return text
    if text.endswith("ies"):
        return text[:-3] + "y"
    if text.endswith(("ches", "shes", "sses", "xes")):
        return text[:-2]
    return text if text.endswith(("ss", "us", "is")) else text[:-1]


def _one_letter_apart(first: str, second: str) -> bool:
    """Whether a typing mistake makes one of the other: a letter more, less, another, or two swapped.

    Not if a digit differs (`type 1`, `type 2`), nor in the first letter (house, mouse).
    """
    short, long = sorted((first, second), key=len)
    if len(short) < _SHORTEST or len(long) - len(short) > 1 or short[0] != long[0]:
        return False
    start = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) < len(long):
        return long[start + 1 :] == short[start:] and long[start].isalpha()
    a, b = short[start:], long[start:]
    if a[:2] == b[1::-1] and a[2:] == b[2:]:
        return a[:2].isalpha()
    return a[1:] == b[1:] and a[:1].isalpha() and b[:1].isalpha()
