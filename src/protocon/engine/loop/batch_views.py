"""From a step's stored images to the views that its method asks for."""

from collections.abc import Sequence

from torch import Tensor

from protocon.base.draws import fold
from protocon.data.loading.loader import RawBatch
from protocon.engine.setup.view_factory import View, Views
from protocon.methods import Method
from protocon.types import Batch, SupportSet

# Numbers of the views in the draws' keys. Further views of a kind count on; crops leave a thousand for each entry.
WEAK, STRONG, _CROPS = 1, 2, 1000


class BatchViews:
    """Makes the views of a raw batch; a sample's draws depend on its key alone.

    Args:
        method: says which views are needed.
        views: weak and strong ones.
        crops: a view for each entry of the method's `crops`.
    """

    def __init__(self, method: Method, views: Views, crops: Sequence[View]) -> None:
        self._method = method
        self._views = views
        self._crops = tuple(zip(method.crops, crops, strict=True))

    def __call__(self, raw: RawBatch) -> Batch:
        """What the method gets."""
        method, views = self._method, self._views
        none = raw.unlabelled[:0].float()
        unlabelled = method.uses_unlabelled
        return Batch(
            labelled=views.weak(raw.labelled, fold(raw.labelled_keys, WEAK)) if method.uses_labels else none,
            targets=raw.targets,
            labelled_index=raw.labelled_index,
            weak=views.weak(raw.unlabelled, fold(raw.keys, WEAK)) if unlabelled and method.weak_view else none,
            strong=_several(views.strong, raw, STRONG, method.strong_views if unlabelled else 0),
            index=raw.index,
            share=raw.share,
            labelled_share=raw.labelled_share,
            crops=tuple(
                _several(view, raw, _CROPS * (1 + entry), crops.count)
                for entry, (crops, view) in enumerate(self._crops)
            ),
            support=self._support(raw),
        )

    def _support(self, raw: RawBatch) -> SupportSet | None:
        wanted = self._method.support()
        if wanted is None:
            return None
        views = (self._views.weak(raw.support, fold(raw.support_keys, WEAK + n)) for n in range(wanted.views))
        return SupportSet(tuple(views), raw.support_targets, raw.support_index, raw.support_share)


def _several(view: View, raw: RawBatch, first: int, count: int) -> tuple[Tensor, ...]:
    return tuple(view(raw.unlabelled, fold(raw.keys, first + number)) for number in range(count))
