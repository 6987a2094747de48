"""Principal components: the directions of most variance, scaled to a mean variance of 1, the same for every view."""

import numpy as np
import torch

from protocon.features.cached_views import CachedViews
from protocon.features.reduce import principal_components, reduced
from tests.features.tiny import tiny_images


def correlated(views: int = 2) -> CachedViews:
    """400 samples of 12 features that three hidden numbers decide, with a little noise, on different scales."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(400, views, 3)) * [3.0, 2.0, 1.0]
    features = hidden @ rng.normal(size=(3, 12)) + 0.05 * rng.normal(size=(400, views, 12))
    features = features * np.logspace(-1, 1, 12) + 7.0
    return CachedViews(tiny_images(400, side=4), torch.as_tensor(features, dtype=torch.float32))


def test_components_are_numpys_svd_of_standardised_features() -> None:
    samples = correlated()
    clean = samples.tensor[:, 0].double().numpy()
    standard = (clean - clean.mean(0)) / clean.std(0)
    _, singular, directions = np.linalg.svd(standard, full_matrices=False)
    expected = standard @ directions[:4].T / np.sqrt((singular[:4] ** 2 / 400).mean())
    found = principal_components(samples, 4)(samples.tensor[:, 0]).numpy()
    for column in range(4):  # the sign of an eigenvector is anybody's
        difference = min(np.abs(found[:, column] - sign * expected[:, column]).max() for sign in (1, -1))
        assert difference < 1e-4
    assert abs(float((found**2).mean()) - 1) < 1e-4


def test_three_numbers_behind_all_need_three_components() -> None:
    samples = correlated()
    spread = principal_components(samples, 12)(samples.tensor[:, 0]).var(0, correction=0)
    assert float(spread[:3].sum() / spread.sum()) > 0.99
    assert (spread[:-1] >= spread[1:] - 1e-4).all()  # the largest first


def test_every_view_is_mapped_alike_and_keeps_its_precision() -> None:
    samples = correlated()
    half = samples.with_features(samples.tensor.half())
    reduction = principal_components(half, 5)
    small = reduced(half, reduction)
    assert small.shape == (2, 5)
    assert small.tensor.dtype == torch.float16
    assert list(small.ids) == list(samples.ids)
    for view in range(2):
        expected = reduction(half.tensor[:, view].float()).half()
        assert torch.equal(small.tensor[:, view], expected)


def test_a_feature_that_never_varies_does_no_harm() -> None:
    samples = correlated()
    features = samples.tensor.clone()
    features[..., 3] = 2.0
    found = principal_components(samples.with_features(features), 4)(features[:, 0])
    assert torch.isfinite(found).all()
    assert found.std() > 0.5
