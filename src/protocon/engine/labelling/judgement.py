"""What a trained run believes of every image: classifier, cluster, prototype and their refined label."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from protocon.data.imageset import ImageSet
from protocon.engine.labelling.triage import NONE, Judgement, Opinion
from protocon.engine.setup.session import Session
from protocon.types import Outputs

_CHUNK_NUMBERS = 2**26
"""Probabilities held at once: a million images of a thousand classes would take four gigabytes and more."""


@torch.no_grad()
def judge(session: Session, predict: Callable[[ImageSet], Outputs]) -> Judgement:
    """Opinions on the whole training set, chunk by chunk.

    The classifier's opinion is that of the network that `predict` uses, on the clean image; the cluster's is that of
    the cluster an unlabelled image was in when training last saw it; the prototype's is the nearest class prototype to
    the clean image's projection.

    Args:
        session: the run.
        predict: outputs of a set of images, in its order; all processes call it together.
    """
    images = session.bundle.train
    size = len(images)
    place = np.full(size, NONE, dtype=np.int64)  # position in the unlabelled set
    place[session.split.unlabelled] = np.arange(len(session.split.unlabelled))
    given = np.full(size, NONE, dtype=np.int32)
    given[session.split.labelled] = session.split.labels
    truth = images.labels.astype(np.int32)
    truth[session.split.labelled] = NONE
    found = {name: _blank(size) for name in ("refined", "classifier", "cluster", "prototype")}
    chunks = -(-size * len(images.class_names) // _CHUNK_NUMBERS)
    for rows in np.array_split(np.arange(size), chunks):
        outputs = predict(images.subset(rows) if chunks > 1 else images)
        for name, (members, scores) in _opinions(session, outputs, place[rows]).items():
            best = scores.max(-1)
            found[name].label[rows[members]] = best.indices.cpu().numpy()
            found[name].confidence[rows[members]] = best.values.float().cpu().numpy()
    labelled = given != NONE
    found["refined"].label[labelled] = given[labelled]
    found["refined"].confidence[labelled] = 0.0
    return Judgement(**found, given=given, truth=truth)


def _blank(size: int) -> Opinion:
    return Opinion(np.full(size, NONE, dtype=np.int32), np.zeros(size, dtype=np.float32))


def _opinions(session: Session, outputs: Outputs, place: np.ndarray) -> dict[str, tuple[np.ndarray, Tensor]]:
    """By source: which rows it speaks of, and its score of each class, (n, C).

    Args:
        session: the run.
        outputs: of a chunk of images.
        place: their positions in the unlabelled set, (n,), `NONE` for those that are not in it.
    """
    method = session.method
    device = next((b.device for b in method.buffers()), torch.device("cpu"))
    probs = outputs.logits.to(device).softmax(-1)
    seen = np.flatnonzero(place != NONE)
    everyone = np.arange(len(place))
    rows = torch.from_numpy(seen).to(device)
    said = method.opinions(probs[rows], torch.from_numpy(place[seen]).to(device)) if len(seen) else {}
    opinions = {name: (seen, scores) for name, scores in said.items()} | {"classifier": (everyone, probs)}
    nearness = method.prototype_scores(outputs.embeddings.to(device))
    return opinions if nearness is None else opinions | {"prototype": (everyone, nearness)}
