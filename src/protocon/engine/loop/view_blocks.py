"""Views of several steps made at once.

Views of features are a few dozen small operations; called once per step, calling them takes longer than the arithmetic.
Each row's view depends on its own key alone, so that views made for many rows at once are the same to the bit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from protocon.data.loading.loader import RawBatch
from protocon.types import Batch

ROWS = 512
"""Unlabelled rows whose views are made at once: more no longer fit a processor's cache."""


def in_blocks(
    steps: Iterable[RawBatch], make: Callable[[RawBatch], Batch], *, rows: int = ROWS
) -> Iterator[tuple[RawBatch, Batch]]:
    """Each step's raw batch with its views, which are made for about `rows` rows at a time.

    Args:
        steps: raw batches without a support set.
        make: views of a raw batch, row by row; no crops.
        rows: at least this many, if there are as many.
    """
    block: list[RawBatch] = []
    for raw in steps:
        block.append(raw)
        if sum(len(one.index) for one in block) >= rows:
            yield from _with_views(block, make)
            block = []
    yield from _with_views(block, make)


def _with_views(block: list[RawBatch], make: Callable[[RawBatch], Batch]) -> Iterator[tuple[RawBatch, Batch]]:
    if not block:
        return
    whole = make(_joined(block))
    labelled = torch.split(whole.labelled, [len(raw.targets) for raw in block])
    sizes = [len(raw.index) for raw in block]
    weak = torch.split(whole.weak, sizes) if len(whole.weak) else [whole.weak] * len(block)
    strong = [torch.split(view, sizes) for view in whole.strong]
    for number, raw in enumerate(block):
        yield (
            raw,
            Batch(
                labelled=labelled[number],
                targets=raw.targets,
                labelled_index=raw.labelled_index,
                weak=weak[number],
                strong=tuple(view[number] for view in strong),
                index=raw.index,
                share=raw.share,
                labelled_share=raw.labelled_share,
            ),
        )


def _joined(block: list[RawBatch]) -> RawBatch:
    """All steps' rows, one step after the other."""
    if len(block) == 1:
        return block[0]
    joined: dict[str, Any] = {}
    for field in fields(RawBatch):
        parts = [getattr(raw, field.name) for raw in block]
        if isinstance(parts[0], Tensor):
            joined[field.name] = torch.cat(parts)
    return replace(block[0], **joined)
