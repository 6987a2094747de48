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
        crops: for each entry of the method's `crops`, the view of each crop.
    """

    def __init__(self, method: Method, views: Views, crops: Sequence[Sequence[View]]) -> None:
        self._method = method
        self._views = views
        self._crops = tuple(crops)

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
            strong=_several([views.strong] * (method.strong_views if unlabelled else 0), raw, STRONG),
            index=raw.index,
            share=raw.share,
            labelled_share=raw.labelled_share,
            crops=tuple(_several(crops, raw, _CROPS * (1 + entry)) for entry, crops in enumerate(self._crops)),
            support=self._support(raw),
        )

    def _support(self, raw: RawBatch) -> SupportSet | None:
        wanted = self._method.support()
        if wanted is None:
            return None
        view = self._crops[0][0] if wanted.cropped else self._views.weak
        views = (view(raw.support, fold(raw.support_keys, WEAK + n)) for n in range(wanted.views))
        return SupportSet(tuple(views), raw.support_targets, raw.support_index, raw.support_share)


def _several(views: Sequence[View], raw: RawBatch, first: int) -> tuple[Tensor, ...]:
    return tuple(view(raw.unlabelled, fold(raw.keys, first + number)) for number, view in enumerate(views))
