"""Labels say whether mirroring changes them, and are believed only where they say it clearly."""

import numpy as np
import pytest

from protocon.core.mirror_test import MirrorEvidence, mirror_evidence


def features(classes: int, each: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    centres = generator.normal(size=(classes, 32))
    return (centres[labels] + noise * generator.normal(size=(len(labels), 32))).astype(np.float32), labels


def test_left_and_right_arrows_become_each_other() -> None:
    plain, labels = features(2, 5, 0.3)
    found = mirror_evidence(plain, features(2, 5, 0.3, seed=0)[0][::-1], labels)
    assert (found.asked, found.plain, found.mirrored) == (10, 10, 0)
    assert found.changes_labels
    assert found.p_value == pytest.approx(2**-10)


def test_photographs_look_alike_when_mirrored() -> None:
    plain, labels = features(4, 10, 0.5)
    mirrored = plain + 0.3 * np.random.default_rng(9).normal(size=plain.shape).astype(np.float32)
    assert not mirror_evidence(plain, mirrored, labels).changes_labels


def test_an_image_is_not_recognised_by_itself() -> None:
    """Its mirror image would have to be compared with its own twin, which it always loses."""
    generator = np.random.default_rng(0)
    labels = np.arange(200) % 2
    noise = generator.normal(size=(200, 64)).astype(np.float32)
    found = mirror_evidence(noise, generator.normal(size=(200, 64)).astype(np.float32), labels)
    assert found.plain < 130  # chance is 100
    assert not found.changes_labels


def test_a_handful_of_labels_is_no_evidence() -> None:
    assert not MirrorEvidence(asked=6, plain=6, mirrored=0, worse=6, better=0).changes_labels
    assert MirrorEvidence(asked=7, plain=7, mirrored=0, worse=7, better=0).changes_labels
    assert not MirrorEvidence(asked=40, plain=30, mirrored=25, worse=9, better=4).changes_labels
    assert MirrorEvidence(asked=0, plain=0, mirrored=0, worse=0, better=0).p_value == 1.0


def test_classes_with_one_label_are_not_asked() -> None:
    plain, labels = features(3, 4, 0.1)
    chosen = [0, *range(4, 12)]
    found = mirror_evidence(plain[chosen], plain[chosen], labels[chosen])
    assert (found.asked, found.plain, found.mirrored) == (8, 8, 8)
