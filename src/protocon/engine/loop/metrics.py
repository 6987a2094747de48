"""Evaluation: every image counted once, on clean images, without gradient."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from protocon.base import distributed
from protocon.data.imageset import ImageSet
from protocon.data.loading.eval_batches import evaluation_batches
from protocon.types import Outputs

CleanView = Callable[[Tensor], Tensor]


@torch.no_grad()
def predict_set(
    network: nn.Module,
    images: ImageSet,
    *,
    view: CleanView,
    batch_size: int,
    device: torch.device,
    workers: int = 0,
) -> Outputs:
    """Logits and embeddings of a whole set, in its order; processes share the work and all get the whole.

    Args:
        network: is put in evaluation mode and back.
        images: the set.
        view: bytes as stored → what the network takes.
        batch_size: images at a time.
        device: of the network.
        workers: processes that decode streamed images.
    """
    was_training = network.training
    network.eval()
    shared = len(images) >= distributed.world_size()  # else some process would have nothing to say
    batches = evaluation_batches(
        images,
        batch_size=batch_size,
        device=device,
        rank=distributed.rank() if shared else 0,
        world_size=distributed.world_size() if shared else 1,
        workers=workers,
    )
    parts: list[Outputs] = [network(view(batch.images)) for batch in batches]
    network.train(was_training)
    own = {
        "logits": torch.cat([part.logits.float() for part in parts]),
        "embeddings": torch.cat([part.embeddings.float() for part in parts]),
    }
    whole = distributed.gather_rows(own) if shared else own
    return Outputs(**{name: rows.cpu() for name, rows in whole.items()})


def accuracy(logits: Tensor, labels: Tensor) -> float:
    """Share of images with a known label (not −1) whose largest logit is at it."""
    known = labels >= 0
    return float((logits.argmax(-1)[known] == labels[known]).double().mean())


def confusion(logits: Tensor, labels: Tensor) -> list[tuple[int, int, int]]:
    """(true class, predicted class, images) wherever there are any; images without a label (−1) are left out.

    Sparse: a thousand classes have a million pairs, most of them empty.
    """
    known = labels >= 0
    classes = logits.shape[1]
    cells = labels[known] * classes + logits.argmax(-1)[known]
    pairs, counts = np.unique(cells.cpu().numpy(), return_counts=True)
    return [(cell // classes, cell % classes, n) for cell, n in zip(pairs.tolist(), counts.tolist(), strict=True)]
