"""Codes that spread over all prototypes: Sinkhorn and Knopp's iteration, over the rows of all processes."""

import torch
from torch import Tensor

from protocon.base import distributed


@torch.no_grad()
def sinkhorn(scores: Tensor, *, epsilon: float, rounds: int) -> Tensor:
    """Soft assignments (n, K), each row adding up to 1, whose columns have about equal sums (SwAV, Eq. 3 and A.1).

    Args:
        scores: of this process's rows with the prototypes, (n, K).
        epsilon: ε; the smaller, the harder the assignments.
        rounds: of normalising columns, then rows.
    """
    scaled = scores / epsilon
    codes = (scaled - distributed.all_gather(scaled.max()).max()).exp()
    for _ in range(rounds):
        codes = codes / _over_processes(codes.sum(0)).clamp(min=torch.finfo(codes.dtype).tiny)
        codes = codes / codes.sum(1, keepdim=True).clamp(min=torch.finfo(codes.dtype).tiny)
    return codes


def _over_processes(own: Tensor) -> Tensor:
    """The sum of all processes' tensors."""
    return distributed.mean(own) * distributed.world_size()
