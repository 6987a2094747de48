"""Every loss term of the paper (Eq. 2, 10-12), and the instance discrimination it is compared with.

All are means over all given rows: a masked row counts as zero, and the others do not count more.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def supervised_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """L_x (Eq. 11): cross-entropy of logits (B, C) with classes (B,)."""
    return F.cross_entropy(logits, targets)


def unlabelled_loss(logits_strong: Tensor, target_probs: Tensor, reliable: Tensor) -> Tensor:
    """L_u (Eq. 10): cross-entropy of the strong view with the refined soft label, where reliable.

    Args:
        logits_strong: (n, C).
        target_probs: p̂^w, (n, C).
        reliable: η, (n,): flags, or SoftMatch's weights.
    """
    each = -(target_probs.detach() * logits_strong.log_softmax(-1)).sum(-1)
    return (each * reliable).mean()


def prototypical_loss(
    embeddings_strong: Tensor,
    prototypes: Tensor,
    labels: Tensor,
    *,
    temperature: float,
    mask: Tensor | None = None,
) -> Tensor:
    """L_p (Eq. 2): pulls a projection to its class's prototype and away from the others.

    Args:
        embeddings_strong: q^s, (n, d).
        prototypes: (C, d).
        labels: hard classes (n,) int64, or soft ones (n, C).
        temperature: T.
        mask: rows that count, (n,); None for all, as printed.
    """
    logits = embeddings_strong @ prototypes.to(embeddings_strong.dtype).T / temperature
    each = F.cross_entropy(logits, labels, reduction="none")
    return each.mean() if mask is None else (each * mask).mean()


def consistency_loss(
    embeddings_weak: Tensor,
    embeddings_strong: Tensor,
    reliable: Tensor,
    *,
    temperature: float,
    sharpening: float = 5.0,
    center: Tensor | None = None,
) -> Tensor:
    """L_c (Eq. 12): both views of an image below the threshold agree on soft classes over d dimensions.

    The target is sharpened more than the source, softmax(q^w / (T/5)), as the paper's text says; the
    printed q^w / 5T would flatten it.

    Args:
        embeddings_weak: q^w, (n, d); a target, no gradient flows into it.
        embeddings_strong: q^s, (n, d).
        reliable: η, (n,); the loss is on the other rows.
        temperature: T.
        sharpening: how much sharper the target is.
        center: running mean (d,) taken off the target first, as DINO does; None for the paper's form.
    """
    target = embeddings_weak.detach()
    if center is not None:
        target = target - center
    target = (target * (sharpening / temperature)).softmax(-1)
    each = -(target * (embeddings_strong / temperature).log_softmax(-1)).sum(-1)
    return (each * ~reliable.bool()).mean()


def instance_discrimination_loss(first: Tensor, second: Tensor, *, temperature: float) -> Tensor:
    """NT-Xent of SimCLR: each image is its own class among the batch's 2n views.

    The paper tried it in place of L_c, and it collapsed.

    Args:
        first: unit-norm projections of one view, (n, d).
        second: of the other view, (n, d).
        temperature: T.
    """
    views = torch.cat([first, second])
    n = len(first)
    logits = views @ views.T / temperature
    # A view is no negative of itself.
    logits = logits.masked_fill(torch.eye(2 * n, dtype=torch.bool, device=views.device), float("-inf"))
    partner = torch.arange(2 * n, device=views.device).roll(n)
    return F.cross_entropy(logits, partner)
