"""What a network says of each step's views, as float64 arrays: the reference's side of a run."""

from dataclasses import dataclass

import numpy as np
import torch

from tests.core.inputs import numpy64
from tests.methods.harness import Run, make_batch
from tests.reference import Floats, Ints, align, cross_entropy, one_hot, softmax


@dataclass(frozen=True)
class Seen:
    """Outputs of one step's labelled, weak and strong views."""

    labelled_logits: Floats
    labelled_embeddings: Floats
    targets: Ints
    labelled_index: Ints
    index: Ints
    logits: Floats
    probs: Floats
    embeddings: Floats
    strong_logits: list[Floats]
    strong_embeddings: list[Floats]


def see(run: Run) -> Seen:
    """What the network says of the next step's views."""
    batch = make_batch(run.step, strong_views=run.method.strong_views)
    with torch.no_grad():
        labelled, weak = run.network(batch.labelled), run.network(batch.weak)
        strong = [run.network(view) for view in batch.strong]
    logits = numpy64(weak.logits)
    return Seen(
        labelled_logits=numpy64(labelled.logits),
        labelled_embeddings=numpy64(labelled.embeddings),
        targets=batch.targets.numpy(),
        labelled_index=batch.labelled_index.numpy(),
        index=batch.index.numpy(),
        logits=logits,
        probs=np.array([softmax(row) for row in logits]),
        embeddings=numpy64(weak.embeddings),
        strong_logits=[numpy64(view.logits) for view in strong],
        strong_embeddings=[numpy64(view.embeddings) for view in strong],
    )


def watch(run: Run, steps: int) -> tuple[list[Seen], Seen]:
    """Train; what was seen in each step, and what the next one will see."""
    past = []
    for _ in range(steps):
        past.append(see(run))
        run.advance()
    return past, see(run)


def supervised(seen: Seen) -> float:
    """L_x."""
    classes = seen.labelled_logits.shape[1]
    losses = [
        cross_entropy(one_hot(int(y), classes), row) for y, row in zip(seen.targets, seen.labelled_logits, strict=True)
    ]
    return float(np.mean(losses))


def unlabelled(targets: Floats, weights: Floats, logits: Floats) -> float:
    """L_u: mean over all rows of weight · H(target, softmax(logits))."""
    return float(np.mean([w * cross_entropy(t, row) for t, w, row in zip(targets, weights, logits, strict=True)]))


def hard(probs: Floats) -> Floats:
    """Each row's largest entry as a one-hot row."""
    return np.array([one_hot(int(np.argmax(row)), len(row)) for row in probs])


def aligned(probs: Floats, before: list[Floats], window: int = 32) -> Floats:
    """Distribution alignment by the mean of the last batches' means; uniform before the first."""
    classes = probs.shape[1]
    means = [batch.mean(axis=0) for batch in before[-window:]]
    return align(probs, np.mean(means, axis=0) if means else np.full(classes, 1 / classes), None)
