"""Views made for several steps at once are those of each step, to the bit."""

import torch

from protocon.augment.features import FeatureView
from protocon.data.imageset import FeatureArray
from protocon.data.labels.label_split import make_split
from protocon.data.loading.loader import Loader
from protocon.engine.loop.batch_views import BatchViews
from protocon.engine.loop.view_blocks import in_blocks
from protocon.engine.setup.view_factory import Views
from protocon.methods import METHODS, Problem


def test_blocks_change_no_bit() -> None:
    labels = torch.arange(90) % 3
    images = FeatureArray(torch.randn(90, 7), labels.numpy(), ("a", "b", "c"))
    split = make_split(images, per_class=2)
    loader = Loader(images, split, batch_size=4, mu=3, seed=0, device=torch.device("cpu"))
    method_class = METHODS["fixmatch"]
    problem = Problem(3, len(split.unlabelled), torch.from_numpy(split.labels.copy()), projection_dim=4)
    views = Views(
        FeatureView(noise=0.1, dropout=0.0, std=torch.ones(7)),
        FeatureView(noise=0.3, dropout=0.2, std=torch.ones(7)),
        lambda x: x,
    )
    make = BatchViews(method_class(method_class.Config(), problem), views, ())
    asked: list[int] = []

    def counted(raw: object) -> object:
        asked.append(1)
        return make(raw)  # type: ignore[arg-type]

    found = list(in_blocks(loader.epoch(3), counted, rows=30))  # type: ignore[arg-type]
    expected = [make(raw) for raw in loader.epoch(3)]
    assert len(asked) < len(expected) == len(found) == loader.steps_per_epoch
    for (raw, one), other in zip(found, expected, strict=True):
        assert torch.equal(raw.index, other.index)
        for name in ("labelled", "targets", "labelled_index", "weak", "index"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
        assert torch.equal(one.strong[0], other.strong[0])
        assert (one.share, one.labelled_share) == (other.share, other.labelled_share)
