"""Outputs of a network for a whole set: every image once, on its clean view, without gradient."""

import torch
from torch import nn

from protocon.augment.clean import CleanView
from protocon.base import distributed
from protocon.data.imageset import ImageSet
from protocon.data.loading.eval_batches import evaluation_batches
from protocon.types import Outputs


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
