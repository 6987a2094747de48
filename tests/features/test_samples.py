"""Cached views stand in for their images: same ids and labels, other content."""

import numpy as np
import pytest
import torch

from protocon.data.labels.label_split import make_split
from protocon.data.loading.loader import Loader
from protocon.features.cached_views import CachedViews
from tests.features.tiny import tiny_images

FEATURES = torch.randn(40, 3, 8, generator=torch.Generator().manual_seed(0)).half()


def test_reading_and_subsets_give_the_rows_of_those_samples() -> None:
    samples = CachedViews(tiny_images(), FEATURES)
    index = np.array([5, 3, 39])
    assert torch.equal(samples.read(index), FEATURES[[5, 3, 39]])
    part = samples.subset(np.array([10, 20, 30])).subset(np.array([2, 0]))
    assert list(part.ids) == ["30", "10"]
    assert torch.equal(part.read(np.array([0, 1])), FEATURES[[30, 10]])
    assert torch.equal(part.tensor, FEATURES[[30, 10]])
    assert part.content() != samples.content()
    assert samples.nbytes == 40 * 3 * 8 * 2


def test_statistics_are_those_of_the_clean_view() -> None:
    mean, std = CachedViews(tiny_images(), FEATURES).statistics()
    torch.testing.assert_close(mean, FEATURES[:, 0].float().mean(0))
    torch.testing.assert_close(std, FEATURES[:, 0].float().std(0, correction=0))


def test_the_mean_over_views_is_that_of_the_samples_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocon.features.cached_views._BLOCK", 16)  # several blocks, the last one short
    part = CachedViews(tiny_images(), FEATURES).subset(np.arange(39, -1, -1))
    torch.testing.assert_close(part.mean(), FEATURES.float().mean(1).flip(0))


def test_a_split_of_the_images_serves_a_loader_of_their_features() -> None:
    images = tiny_images()
    split = make_split(images, per_class=2, seed=0)
    loader = Loader(CachedViews(images, FEATURES), split, batch_size=4, mu=2, seed=0, device=torch.device("cpu"))
    seen = set()
    for batch in loader.epoch(0):
        positions = split.unlabelled[batch.index.numpy()]
        assert torch.equal(batch.unlabelled, FEATURES[torch.from_numpy(positions)])
        seen |= set(positions.tolist())
    assert seen == set(split.unlabelled.tolist())
