"""scikit-learn's digits."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import ConfigError


def test_digits_have_a_fixed_stratified_test_set() -> None:
    bundle = DATASETS["digits"](SourceOptions())
    assert bundle.test is not None
    assert (len(bundle.train), len(bundle.test)) == (1397, 400)
    assert np.bincount(bundle.test.labels).tolist() == [40] * 10
    assert set(bundle.train.ids).isdisjoint(bundle.test.ids)
    assert len(set(bundle.train.ids) | set(bundle.test.ids)) == 1797
    for label in range(10):  # the documented rule, spelt out
        members = [i for i, target in enumerate(load_digits().target) if target == label]
        chosen = [members[j * len(members) // 40] for j in range(40)]
        assert {int(name) for name in bundle.test.ids} & set(members) == set(chosen)
    assert not bundle.hints.flip


def test_digits_are_scaled_to_bytes() -> None:
    train = DATASETS["digits"](SourceOptions()).train
    original = load_digits().images[int(train.ids[5])]
    np.testing.assert_array_equal(train.read(np.array([5]))[0, 0], np.rint(original * 255 / 16))
    assert int(train.read(np.arange(1397)).max()) == 255


def test_digits_are_resized_once_and_keep_their_fingerprint() -> None:
    small, large = DATASETS["digits"](SourceOptions()), DATASETS["digits"](SourceOptions(image_size=16))
    assert (small.train.shape, large.train.shape) == ((1, 8, 8), (1, 16, 16))
    assert small.train.fingerprint() == large.train.fingerprint()


def test_an_option_that_would_do_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="'digits' does not use the option domain"):
        DATASETS["digits"](SourceOptions(domain="clipart"))
