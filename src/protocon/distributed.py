"""Collectives that are the identity in one process: rows of all ranks, in rank order."""

import torch
import torch.distributed as dist
from torch import Tensor


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
    if world_size() == 1:
        return rows
    return {name: _gather(tensor) for name, tensor in rows.items()}


def _gather(tensor: Tensor) -> Tensor:
    lengths = [torch.zeros(1, dtype=torch.int64, device=tensor.device) for _ in range(world_size())]
    dist.all_gather(lengths, torch.tensor([len(tensor)], device=tensor.device))
    longest = int(max(lengths))
    wire = tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor
    padded = wire.new_zeros((longest, *wire.shape[1:]))
    padded[: len(tensor)] = wire
    parts = [torch.empty_like(padded) for _ in range(world_size())]
    dist.all_gather(parts, padded)
    whole = torch.cat([part[: int(n)] for part, n in zip(parts, lengths, strict=True)])
    return whole.to(tensor.dtype)


class _GatherWithGradient(torch.autograd.Function):
    """Forward: all ranks' rows. Backward: this rank's share of the gradient, summed over ranks."""

    @staticmethod
    def forward(ctx: "_Context", tensor: Tensor) -> Tensor:
        whole = _gather(tensor)
        starts = _gather(torch.tensor([len(tensor)], device=tensor.device)).cumsum(0) - len(tensor)
        ctx.start, ctx.rows = int(starts[rank()]), len(tensor)
        return whole

    @staticmethod
    def backward(ctx: "_Context", gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient[ctx.start : ctx.start + ctx.rows]


class _Context(torch.autograd.function.FunctionCtx):
    start: int
    rows: int


def gather_with_gradient(tensor: Tensor) -> Tensor:
    """All ranks' rows, for losses that compare every image with every other."""
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
