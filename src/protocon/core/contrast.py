"""Losses that tell an image's other view from the views of other images."""

import torch
import torch.nn.functional as F
from torch import Tensor


def info_nce(query: Tensor, key: Tensor, negatives: Tensor, *, temperature: float) -> Tensor:
    """MoCo's loss: a query finds its key among the negatives (He et al., CVPR 2020, Eq. 1).

    Args:
        query: unit-norm, (n, d).
        key: of the same images, (n, d); a target, no gradient flows into it.
        negatives: inner products of the queries with other images' keys, (n, K); very low where there is none.
        temperature: τ.
    """
    positive = (query * key.detach()).sum(-1, keepdim=True)
    logits = torch.cat([positive, negatives], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64, device=logits.device))


@torch.no_grad()
def share_found(query: Tensor, key: Tensor, negatives: Tensor) -> Tensor:
    """Share of the queries that are nearer to their key than to any negative; a scalar.

    Args:
        query: (n, d).
        key: of the same images, (n, d).
        negatives: inner products with other keys, (n, K).
    """
    positive = (query * key).sum(-1, keepdim=True)
    return (negatives < positive).all(1).to(query.dtype).mean()


@torch.no_grad()
def key_leak(keys: Tensor, again: Tensor) -> Tensor:
    """How far keys move when only the other images of their batch change, ÷ their distance from each other; a scalar.

    0 where a key is a function of its image alone. Where the batch's statistics are in it, a query can be told from the
    queue by its batch, without a look at the image.

    Args:
        keys: unit-norm, normalised with the whole batch (n, d).
        again: of the same views, normalised with another batch (n, d).
    """
    moved = 1.0 - (keys * again).sum(-1).mean()
    apart = 1.0 - keys.mean(0).square().sum()
    return moved / apart.clamp(min=1e-6)
