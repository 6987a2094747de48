"""FreeMatch's self-adaptive fairness: a batch's predictions against the running ones, per class."""

import torch
import torch.nn.functional as F
from torch import Tensor


def fairness_loss(probs: Tensor, reliable: Tensor, *, marginal: Tensor, histogram: Tensor) -> Tensor:
    """L_f = −H(SumNorm(p̃/h̃), SumNorm(p̄/h̄)) (FreeMatch's Eq. 9 and 11), with the sign as printed.

    p̄ is the mean probability and h̄ the share of predictions of each class, over the reliable rows. A
    class that no reliable row is predicted as has no ratio; its term has no gradient in the published
    code and is left out here. Without any reliable row the loss is 0.

    Args:
        probs: predictions Q of the strong views, (n, C), with gradient.
        reliable: rows that count, (n,).
        marginal: p̃, running mean of predictions, (C,).
        histogram: h̃, running share of each predicted class, (C,).
    """
    classes = probs.shape[1]
    counted = reliable.to(probs.dtype)[:, None]
    hist = (F.one_hot(probs.argmax(dim=-1), classes) * counted).sum(dim=0)
    present = hist > 0
    # Sums serve for means: SumNorm takes the common factor out.
    ratio = torch.where(present, (probs * counted).sum(dim=0) / hist.clamp(min=1.0), 0.0)
    batch = ratio / ratio.sum().clamp(min=1e-12)
    running = marginal / histogram.clamp(min=1e-6)
    running = (running / running.sum()).detach().to(probs.dtype)
    return (running * torch.where(present, batch, 1.0).log()).sum()
