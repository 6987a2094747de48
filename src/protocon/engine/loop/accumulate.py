"""A step computed in several parts, one after the other, where a whole one does not fit the memory.

Parts are to a step what processes are: each holds a slice of the rows, and the mean of their losses is that of the
whole. So gradients add up to those of one pass, with two exceptions: BatchNorm sees a part at a time, and losses that
compare the images of a batch with each other (CoMatch's, FreeMatch's fairness, instance discrimination) compare within
a part.
"""

from dataclasses import replace

import torch
from torch import Tensor

from protocon.data.loading.loader import RawBatch
from protocon.types import Step


def parts_of(raw: RawBatch, count: int) -> list[RawBatch]:
    """Cut a batch into `count` slices of nearly equal length; the last ones may lack rows of a kind no slice has."""
    if count == 1:
        return [raw]
    return [_slice(raw, number, count) for number in range(count)]


def _slice(raw: RawBatch, number: int, count: int) -> RawBatch:
    labelled = _bounds(len(raw.targets), number, count)
    unlabelled = _bounds(len(raw.index), number, count)
    return replace(
        raw,
        labelled=raw.labelled[labelled],
        targets=raw.targets[labelled],
        labelled_index=raw.labelled_index[labelled],
        labelled_keys=raw.labelled_keys[labelled],
        unlabelled=raw.unlabelled[unlabelled],
        index=raw.index[unlabelled],
        keys=raw.keys[unlabelled],
        share=raw.share * _share(unlabelled, len(raw.index), count),
        labelled_share=raw.labelled_share * _share(labelled, len(raw.targets), count),
    )


def _bounds(rows: int, number: int, count: int) -> slice:
    return slice(rows * number // count, rows * (number + 1) // count)


def _share(part: slice, rows: int, count: int) -> float:
    """Rows of a part ÷ mean rows of a part."""
    return (part.stop - part.start) * count / rows if rows else 1.0


def joined(steps: list[Step]) -> Step:
    """The parts' steps as one: means of losses and terms, rows one after the other."""
    if len(steps) == 1:
        return steps[0]
    losses = [step.loss.detach() for step in steps if step.loss is not None]
    return Step(
        torch.stack(losses).mean() if losses else None,
        {name: _mean([step.terms[name] for step in steps]) for name in steps[0].terms},
        {name: torch.cat([step.rows[name] for step in steps]) for name in steps[0].rows},
    )


def _mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean(0)
