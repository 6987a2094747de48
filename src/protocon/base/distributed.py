"""Collectives that are the identity in one process: rows of all ranks, in rank order."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from protocon.errors import RunError


def world_size() -> int:
    """Processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def barrier() -> None:
    """Wait for the other processes."""
    if world_size() > 1:
        dist.barrier()


def gather_rows(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Concatenate every tensor's rows over all ranks; ranks may hold different numbers of rows."""
    if world_size() == 1 or not rows:
        return rows
    return dict(zip(rows, _gather(list(rows.values()))[0], strict=True))


def _gather(tensors: Sequence[Tensor]) -> tuple[list[Tensor], list[list[int]]]:
    """All ranks' rows of each tensor, and the number of rows by rank and tensor.

    Two collectives, however many tensors there are: the numbers of rows, then everything packed into bytes.
    """
    device = tensors[0].device
    lengths: list[list[int]] = all_gather(torch.tensor([len(t) for t in tensors], device=device)).tolist()
    widths = [t.element_size() * math.prod(t.shape[1:]) for t in tensors]
    sizes = [[n * width for n, width in zip(counts, widths, strict=True)] for counts in lengths]
    packed = torch.zeros(max(map(sum, sizes)), dtype=torch.uint8, device=device)
    own = [t.detach().contiguous().view(-1).view(torch.uint8) for t in tensors]
    packed[: sum(sizes[rank()])] = torch.cat(own)
    parts = [part[: sum(size)].split(size) for part, size in zip(all_gather(packed), sizes, strict=True)]
    wholes = []
    for number, tensor in enumerate(tensors):
        total = sum(counts[number] for counts in lengths)
        joined = torch.cat([part[number] for part in parts])
        wholes.append(joined.view(tensor.dtype).view(total, *tensor.shape[1:]))
    return wholes, lengths


def all_gather(tensor: Tensor) -> Tensor:
    """A tensor that has the same shape on every rank, from all of them: (ranks, …)."""
    if world_size() == 1:
        return tensor[None]
    parts = [torch.empty_like(tensor) for _ in range(world_size())]
    dist.all_gather(parts, tensor)
    return torch.stack(parts)


class _GatherWithGradient(torch.autograd.Function):
    """Forward: all ranks' rows. Backward: the gradient of this rank's rows, summed over all ranks' losses."""

    @staticmethod
    def forward(ctx: "_Context", tensor: Tensor) -> Tensor:
        (whole,), lengths = _gather([tensor])
        ctx.start = sum(rows for (rows,) in lengths[: rank()])
        ctx.rows = len(tensor)
        return whole

    @staticmethod
    def backward(ctx: "_Context", gradient: Tensor) -> Tensor:
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total[ctx.start : ctx.start + ctx.rows]


class _Context(torch.autograd.function.FunctionCtx):
    start: int
    rows: int


def gather_with_gradient(tensor: Tensor) -> Tensor:
    """All ranks' rows, for losses that compare every image with every other.

    Every rank computes the same loss from them. The gradient of a row is the sum over ranks, so that the mean over
    ranks, which DDP takes of the weights' gradients, is that of one process.
    """
    if world_size() == 1:
        return tensor
    whole: Tensor = _GatherWithGradient.apply(tensor)
    return whole


def mean(values: Tensor) -> Tensor:
    """Mean over processes of a tensor that has the same shape on each."""
    if world_size() == 1:
        return values
    total = values.clone()
    dist.all_reduce(total)
    return total / world_size()


def largest(value: int, device: torch.device) -> int:
    """The largest of all processes' numbers."""
    return value if world_size() == 1 else int(all_gather(torch.tensor(value, device=device)).max())


@contextmanager
def reporting_lost_processes() -> Iterator[None]:
    """Turn the error of a lost process into a message: it has died or no longer answers."""
    try:
        yield
    except RuntimeError as error:
        if world_size() == 1 or not _means_lost(error):
            raise
        raise RunError(
            f"process {rank()} of {world_size()} cannot reach the others: one of them has ended or does not answer "
            f"({str(error).splitlines()[0][:200]}). Its own message says why. The last checkpoint is complete: "
            "--resume auto continues from it, with any number of processes"
        ) from error


def _means_lost(error: RuntimeError) -> bool:
    # Gloo has no error class of its own.
    return isinstance(error, dist.DistError) or "gloo" in str(error).lower()
