"""Views of embeddings: noise in units of each feature's spread, and dropout that keeps the mean."""

import pytest
import torch
from scipy.stats import kstest

from protocon.augment import FeatureView
from protocon.errors import ConfigError, DataError
from tests.augment.samples import some_keys


def test_noise_has_each_features_spread() -> None:
    std = torch.tensor([0.5, 2.0, 10.0])
    view = FeatureView(0.1, 0.0, std)(torch.ones(20_000, 3), some_keys(20_000))
    for column in range(3):
        normal = (view[:, column] - 1.0) / (0.1 * std[column])
        assert kstest(normal.numpy(), "norm").pvalue > 1e-4
    assert abs(torch.corrcoef(view.T)[0, 1]) < 0.03


def test_dropout_zeroes_its_share_and_scales_up_the_rest() -> None:
    view = FeatureView(0.0, 0.25)(torch.full((2000, 20), 3.0), some_keys(2000))
    dropped = view == 0.0
    assert dropped.float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert torch.equal(view[~dropped], torch.full_like(view[~dropped], 4.0))
    assert not (dropped[0] == dropped).all()


def test_view_is_a_pure_function_of_row_and_key() -> None:
    features, keys = torch.linspace(-1, 1, 50 * 7).view(50, 7), some_keys(50)
    view = FeatureView(0.3, 0.2, torch.ones(7))
    together = view(features, keys)
    assert torch.equal(together[11:12], view(features[11:12], keys[11:12]))
    assert not torch.equal(together, view(features, some_keys(50, seed=1)))
    assert torch.equal(FeatureView(0.0, 0.0)(features, keys), features)
    assert torch.equal(features, torch.linspace(-1, 1, 50 * 7).view(50, 7))


def test_wrong_settings_and_input_are_refused() -> None:
    with pytest.raises(ConfigError):
        FeatureView(-0.1, 0.0)
    with pytest.raises(ConfigError):
        FeatureView(0.0, 1.0)
    with pytest.raises(ConfigError, match="std"):
        FeatureView(0.1, 0.0)
    with pytest.raises(DataError, match="expected \\(4,\\)"):
        FeatureView(0.1, 0.0, torch.ones(3))(torch.ones(2, 4), some_keys(2))
    with pytest.raises(DataError, match="float32"):
        FeatureView(0.0, 0.5)(torch.ones(2, 4).double(), some_keys(2))
    with pytest.raises(DataError, match="one key"):
        FeatureView(0.0, 0.5)(torch.ones(2, 4), some_keys(3))
