"""The text that a view is known by: all of its settings, and nothing of the process that it is in."""

from dataclasses import dataclass, replace

from protocon.augment.clean import CLEAN
from protocon.augment.randaugment import RandAugmentView
from protocon.augment.views import RandomCropFlip, WeakView
from protocon.features.key import describe

VIEW = RandAugmentView(weak=RandomCropFlip(32, scale=(0.5, 1.0)), ops=2, cutout=0.25)


def test_functions_are_named_and_not_given_addresses() -> None:
    text = describe(VIEW)
    assert "0x" not in text
    assert "protocon.augment.colour.autocontrast" in text
    assert describe(replace(VIEW)) == text  # another object of the same settings


def test_settings_at_any_depth_count() -> None:
    others = [
        replace(VIEW, ops=3),
        replace(VIEW, weak=RandomCropFlip(32, scale=(0.4, 1.0))),
        replace(VIEW, weak=WeakView(flip=True)),
        replace(VIEW, pool=VIEW.pool[:-1]),
        CLEAN,
    ]
    assert len({describe(view) for view in [VIEW, *others]}) == 6


def test_who_computes_a_view_does_not_count() -> None:
    @dataclass(frozen=True)
    class Blur:
        sigma: float
        engine: str

    assert describe(Blur(1.0, "a")) == describe(Blur(1.0, "b")) != describe(Blur(2.0, "a"))
