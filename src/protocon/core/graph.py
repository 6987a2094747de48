"""CoMatch's contrast between two graphs of a batch: which images share a pseudo-label, and which look alike."""

import torch
from torch import Tensor


def pseudo_label_graph(probs: Tensor, *, threshold: float) -> Tensor:
    """Ŵ^q (CoMatch's Eq. 9): which images should be close; rows sum to 1.

    Two images are joined with weight q·q' where it reaches the threshold; each is joined to itself
    with weight 1.

    Args:
        probs: smoothed pseudo-labels q, (n, C).
        threshold: T.
    """
    edges = probs @ probs.T
    edges = torch.where(edges >= threshold, edges, 0.0)
    itself = torch.eye(len(probs), dtype=torch.bool, device=probs.device)
    edges = edges.masked_fill(itself, 1.0)
    return edges / edges.sum(dim=1, keepdim=True)


def graph_contrastive_loss(first: Tensor, second: Tensor, graph: Tensor, *, temperature: float) -> Tensor:
    """L_ctr (CoMatch's Eq. 10-11): the embedding graph's rows follow the pseudo-label graph's.

    Every edge joins the first strong view of one image with the second of the other, as the published
    code does; the paper's Eq. 10 does so for an image and itself alone.

    Args:
        first: unit-norm projections of one strong view, (n, d).
        second: of the other, (n, d).
        graph: Ŵ^q, (n, n); a target.
        temperature: t.
    """
    logits = first @ second.T / temperature
    return -(graph.detach() * logits.log_softmax(-1)).sum(dim=1).mean()
