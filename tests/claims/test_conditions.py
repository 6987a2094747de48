"""Noise and long tails: how much is changed, and that nothing else is."""

import numpy as np

from protocon.claims.conditions import IMBALANCE, NOISE, long_tailed, noisy
from protocon.claims.field import drawn, field_named
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions

BUNDLE = DATASETS["digits"](SourceOptions())


def test_noise_replaces_a_share_of_the_training_labels_by_other_classes() -> None:
    changed = noisy(BUNDLE)
    wrong = changed.train.labels != BUNDLE.train.labels
    assert abs(wrong.mean() - NOISE) < 0.04
    assert set(changed.train.labels) == set(range(10))
    assert np.bincount(changed.train.labels[wrong], minlength=10).min() > 20  # no class is spared
    assert changed.test is BUNDLE.test
    assert (noisy(BUNDLE).train.labels == changed.train.labels).all()


def test_a_long_tail_thins_classes_out_in_order() -> None:
    changed = long_tailed(BUNDLE)
    before, after = (np.bincount(bundle.train.labels, minlength=10) for bundle in (BUNDLE, changed))
    shares = after / before
    assert shares[0] == 1.0
    assert abs(shares[-1] - 1 / IMBALANCE) < 0.01
    assert (np.diff(shares) < 0).all()
    assert changed.test is BUNDLE.test


def test_a_field_draws_the_same_part_of_the_data_for_all_runs() -> None:
    field = field_named("digits", train=100, test=50)
    part, again = drawn(BUNDLE, field), drawn(BUNDLE, field)
    assert (len(part.train), part.test and len(part.test)) == (100, 50)
    assert part.train.fingerprint() == again.train.fingerprint() != BUNDLE.train.fingerprint()
