"""A view of a cached sample is one of its views, drawn by its key alone."""

import pytest
import torch

from protocon.augment.features import FeatureView
from protocon.base.draws import fold
from protocon.errors import DataError
from protocon.features.picked_view import PickedView, clean_view

SAMPLES = torch.arange(5.0)[None, :, None].expand(3000, 5, 2).half()  # view v holds the number v
KEYS = fold(3, torch.arange(3000))
PLAIN = FeatureView(noise=0.0, dropout=0.0)


def test_each_of_the_columns_is_drawn_as_often_and_no_other() -> None:
    drawn = PickedView((1, 2, 4), PLAIN)(SAMPLES, KEYS)[:, 0]
    shares = torch.bincount(drawn.long(), minlength=5) / 3000
    assert shares[0] == shares[3] == 0
    assert (shares[[1, 2, 4]] - 1 / 3).abs().max() < 0.04


def test_a_draw_depends_on_the_key_and_not_on_the_batch() -> None:
    view = PickedView((0, 1, 2, 3, 4), FeatureView(noise=0.5, dropout=0.5, std=torch.ones(2)))
    whole = view(SAMPLES, KEYS)
    assert torch.equal(view(SAMPLES[700:900], KEYS[700:900]), whole[700:900])
    assert not torch.equal(view(SAMPLES, fold(KEYS, 1)), whole)


def test_noise_and_dropout_come_on_top() -> None:
    perturbed = PickedView((2,), FeatureView(noise=0.5, dropout=0.25, std=torch.ones(2)))(SAMPLES, KEYS)
    assert perturbed.dtype == torch.float32
    assert abs(float((perturbed == 0).float().mean()) - 0.25) < 0.03
    kept = perturbed[perturbed != 0] * 0.75
    assert abs(float(kept.mean()) - 2) < 0.05
    assert abs(float(kept.std()) - 0.5) < 0.05


def test_the_clean_view_is_the_first() -> None:
    assert torch.equal(clean_view(SAMPLES), torch.zeros(3000, 2))


def test_too_few_views_are_an_error() -> None:
    with pytest.raises(DataError, match="views"):
        PickedView((0, 7), PLAIN)(SAMPLES, KEYS)
