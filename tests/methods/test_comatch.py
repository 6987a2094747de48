"""CoMatch against its equations, and what its memory and graphs do."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protocon.core.graph import graph_contrastive_loss, pseudo_label_graph
from protocon.core.queue import FeatureQueue
from tests.core.inputs import distributions, floats, numpy64, quick, seeds, unit_rows
from tests.methods import reference_methods as reference
from tests.methods.harness import CLASSES, Run, build, loss_of
from tests.methods.watching import Seen, aligned, supervised, unlabelled, watch
from tests.reference import Floats, one_hot

ALPHA, TEMPERATURE = 0.7, 0.2


def bank_after(past: list[Seen], size: int) -> list[tuple[Floats, Floats]]:
    bank: list[tuple[Floats, Floats]] = []
    for number, seen in enumerate(past):
        believed = aligned(seen.probs, [earlier.probs for earlier in past[:number]])
        bank += list(zip(seen.embeddings, believed, strict=True))
        bank += [(z, one_hot(int(y), CLASSES)) for z, y in zip(seen.labelled_embeddings, seen.targets, strict=True)]
    return bank[-size:]


@pytest.mark.parametrize("size", [37, 15, 500])  # wraps round, one batch, never full
def test_a_step_is_the_papers_after_some_training(size: int) -> None:
    method = build("comatch", alpha=ALPHA, queue_size=size, threshold=0.6, graph_threshold=0.4)
    run = Run(method)
    past, seen = watch(run, 7)
    bank = bank_after(past, size)
    own = aligned(seen.probs, [earlier.probs for earlier in past])
    q = np.array(
        [
            reference.comatch_smooth(p, z, bank, alpha=ALPHA, temperature=TEMPERATURE)
            for p, z in zip(own, seen.embeddings, strict=True)
        ]
    )
    reliable = (q.max(axis=1) >= 0.6).astype(np.float64)
    assert 0 < reliable.mean() < 1
    loss_u = unlabelled(q, reliable, seen.strong_logits[0])
    contrast = reference.comatch_contrast(
        seen.strong_embeddings[0], seen.strong_embeddings[1], reference.comatch_graph(q, 0.4), TEMPERATURE
    )
    step = run.look()
    assert float(step.terms["loss_u"]) == pytest.approx(loss_u, abs=1e-5)
    assert float(step.terms["loss_ctr"]) == pytest.approx(contrast, abs=1e-5)
    assert loss_of(step) == pytest.approx(supervised(seen) + loss_u + contrast, abs=1e-5)
    assert step.rows["refined"].tolist() == q.argmax(axis=1).tolist()


@quick
@given(seed=seeds, n=st.integers(1, 6), threshold=st.sampled_from([0.0, 0.3, 0.8, 1.0]))
def test_graphs_match_reference(seed: int, n: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)
    q, first, second = distributions(rng, n, 3), unit_rows(rng, n, 4), unit_rows(rng, n, 4)
    graph = pseudo_label_graph(floats(q, torch.float64), threshold=threshold)
    np.testing.assert_allclose(numpy64(graph), reference.comatch_graph(q, threshold), atol=1e-9)
    loss = graph_contrastive_loss(
        floats(first, torch.float64), floats(second, torch.float64), graph, temperature=TEMPERATURE
    )
    expected = reference.comatch_contrast(first, second, numpy64(graph), TEMPERATURE)
    assert float(loss) == pytest.approx(expected, abs=1e-9)


@quick
@given(seed=seeds, size=st.integers(1, 7), batches=st.lists(st.integers(0, 9), max_size=6))
def test_queue_holds_the_last_rows(seed: int, size: int, batches: list[int]) -> None:
    rng = np.random.default_rng(seed)
    queue = FeatureQueue(size, dim=3, classes=2)
    rows: list[tuple[Floats, Floats]] = []
    for n in batches:
        z, p = unit_rows(rng, n, 3) if n else np.zeros((0, 3)), rng.dirichlet([1, 1], size=n)
        queue.add(floats(z), floats(p))
        rows += list(zip(z, p, strict=True))
    held = sorted(map(tuple, torch.cat([queue.embeddings, queue.probs], dim=1).tolist()))
    empty = [tuple([0.0] * 5)] * max(0, size - len(rows))
    expected = [tuple(float(value) for value in np.concatenate(row)) for row in rows[-size:]]
    np.testing.assert_allclose(held, sorted(expected + empty), atol=1e-6)


def test_similar_images_in_the_memory_pull_the_pseudo_label_to_their_class() -> None:
    queue = FeatureQueue(8, dim=2, classes=2)
    unsure, here = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    assert torch.equal(queue.smooth(unsure, here, alpha=0.5, temperature=0.2), unsure)  # empty: silent
    queue.add(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    near = queue.smooth(unsure, here, alpha=0.5, temperature=0.2)
    far = queue.smooth(unsure, -here, alpha=0.5, temperature=0.2)
    assert near[0, 0] > 0.74
    assert far[0, 1] > 0.74


def test_contrast_pulls_images_of_one_pseudo_label_together() -> None:
    q = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    graph = pseudo_label_graph(q, threshold=0.8)
    z = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [0.2, 1.0], [0.5, -1.0]]), dim=-1).requires_grad_()
    torch.autograd.backward(graph_contrastive_loss(z, z, graph, temperature=0.2))
    assert z.grad is not None
    moved = torch.nn.functional.normalize(z.detach() - 0.01 * z.grad, dim=-1)
    before, after = z.detach() @ z.detach().T, moved @ moved.T
    assert after[0, 1] > before[0, 1]
    assert after[0, 2] < before[0, 2]
