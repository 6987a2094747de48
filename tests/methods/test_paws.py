"""PAWS: its prediction, targets and regulariser by hand, and its stages."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from protocon.augment.simclr import SimCLRView
from protocon.base.draws import fold
from protocon.core.soft_neighbours import sharpen, smoothed_labels, soft_neighbours
from protocon.engine.loop.batch_views import WEAK
from protocon.engine.setup.crop_views import build_crops
from protocon.methods import Problem
from protocon.methods.paws import PAWS, PAWSConfig
from protocon.types import Batch, Outputs, Progress, SupportSet
from tests.distributed.cases import write_data
from tests.methods.harness import gaussian
from tests.methods.test_toys import trainer_of, weights

CLASSES, DIM, ROWS = 3, 5, 4
PROBLEM = Problem(classes=CLASSES, unlabelled=9, labelled_targets=torch.arange(6) % 3, projection_dim=DIM)


def unit(key: int, rows: int) -> Tensor:
    return F.normalize(gaussian(key, rows, DIM).double(), dim=-1)


def by_hand(row: np.ndarray, support: np.ndarray, targets: list[int], smoothing: float, tau: float) -> np.ndarray:
    """Eq. 1: a sum over the support set."""
    scores = [math.exp(float(row @ other) / tau) for other in support]
    probs = np.zeros(CLASSES)
    for score, target in zip(scores, targets, strict=True):
        label = np.full(CLASSES, smoothing / CLASSES)
        label[target] += 1 - smoothing
        probs += score / sum(scores) * label
    return probs


def sharp(probs: np.ndarray, temperature: float) -> np.ndarray:
    powered = np.array([float(p) ** (1 / temperature) for p in probs])
    return np.asarray(powered / powered.sum())


def network(x: Tensor) -> Outputs:
    return Outputs(x[:, :CLASSES], F.normalize(x, dim=-1))


def test_the_loss_and_the_regulariser_are_the_papers() -> None:
    method = PAWS(PAWSConfig(small_crops=2, temperature=0.2, support_per_class=2), PROBLEM)
    crops = [gaussian(10 + n, ROWS, DIM).double() for n in range(4)]
    views, targets = (gaussian(20, 6, DIM).double(), gaussian(21, 6, DIM).double()), torch.arange(6) % 3
    none = torch.empty(0)
    support = SupportSet(views, targets, torch.arange(6))
    batch = Batch(none, none, none, none, (), torch.arange(ROWS), crops=(tuple(crops[:2]), tuple(crops[2:])),
                  support=support)  # fmt: skip
    passes: list[int] = []

    def counted(x: Tensor) -> Outputs:
        passes.append(len(x))
        return network(x)

    loss, me_max, first = method.assignments(counted, batch)
    assert passes == [2 * 6 + 2 * ROWS, 2 * ROWS]  # the support set is normalised with the large crops

    rows = np.concatenate([F.normalize(view, dim=-1).numpy() for view in views])
    known = targets.tolist() * 2
    probs = [[by_hand(row, rows, known, 0.1, 0.2) for row in F.normalize(crop, dim=-1).numpy()] for crop in crops]
    np.testing.assert_allclose(first.numpy(), probs[0], rtol=1e-6)
    one, two = ([sharp(p, 0.25) for p in probs[n]] for n in (0, 1))
    both = [(a + b) / 2 for a, b in zip(one, two, strict=True)]
    terms = [
        -sum(t * math.log(p) for t, p in zip(target, row, strict=True))
        for wanted, said in zip([two, one, both, both], probs, strict=True)
        for target, row in zip(wanted, said, strict=True)
    ]
    assert float(loss) == pytest.approx(float(np.mean(terms)), rel=1e-6)
    mean = np.mean([sharp(p, 0.25) for view in probs for p in view], axis=0)
    assert float(me_max) == pytest.approx(float(sum(m * math.log(m) for m in mean)), rel=1e-6)


def test_parts() -> None:
    labels = smoothed_labels(torch.tensor([0, 2]), classes=3, smoothing=0.3)
    torch.testing.assert_close(labels, torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]))
    torch.testing.assert_close(sharpen(torch.tensor([[0.5, 0.25, 0.25]]), 0.5), torch.tensor([[4 / 6, 1 / 6, 1 / 6]]))
    near = soft_neighbours(unit(1, 3), unit(1, 3), torch.eye(3).double(), temperature=0.01)
    assert near.argmax(-1).tolist() == [0, 1, 2]


def test_no_gradient_flows_through_targets() -> None:
    """Where the anchors already say what the targets do but for the sharpening, the gradient is the anchors' alone."""
    method = PAWS(PAWSConfig(small_crops=0, me_max=0), PROBLEM)
    crop = gaussian(1, ROWS, DIM).double()
    first, second = crop.clone().requires_grad_(), crop.clone().requires_grad_()
    none = torch.empty(0)
    support = SupportSet((gaussian(2, 6, DIM).double(),), torch.arange(6) % 3, torch.arange(6))
    batch = Batch(none, none, none, none, (), torch.arange(ROWS), crops=((first, second),), support=support)
    loss, _, _ = method.assignments(network, batch)
    loss.backward()  # type: ignore[no-untyped-call]
    alone = crop.clone().requires_grad_()
    rows, labels = F.normalize(support.views[0], dim=-1), smoothed_labels(support.targets, classes=3, smoothing=0.1)
    near = soft_neighbours(F.normalize(alone, dim=-1), rows, labels, temperature=0.1)
    (-(sharpen(near, 0.25).detach() * near.log()).sum(-1).mean() / 2).backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(first.grad, alone.grad)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def test_support_set_and_crops_have_simclrs_colours_whatever_strong_views_are(data: Path) -> None:
    trainer = trainer_of(data, "paws", "views.strong=randaugment", "support_per_class=3", "colours=0.25", images=True)
    method, shape = trainer.session.method, (1, 16, 16)
    crops = build_crops(trainer.session.config, method, trainer.session.views, shape)
    seen = [view for entry in crops for view in entry if isinstance(view, SimCLRView)]
    assert [(view.strength, view.size) for view in seen] == [(0.25, 16), (0.25, 16), (0.25, 9), (0.25, 9)]
    raw = next(iter(trainer.loader.epoch(0)))
    support = trainer.make_batch(raw).support
    assert support is not None
    for number, view in enumerate(support.views):
        expected = crops[0][0](raw.support, fold(raw.support_keys, WEAK + number))
        torch.testing.assert_close(view, expected)
        assert not torch.allclose(view, trainer.session.views.weak(raw.support, fold(raw.support_keys, WEAK + number)))


def test_the_classifier_does_not_move_the_encoder_until_fine_tuning(data: Path) -> None:
    trainer = trainer_of(data, "paws", "finetune=0.3", "finetune_lr=0.5", "support_per_class=3")
    method = trainer.session.method
    batch = trainer.make_batch(next(iter(trainer.loader.epoch(0))))
    assert batch.support is not None
    assert batch.support.targets.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    start = weights(trainer, "network")
    moved = []
    for step, updates in ((0, 2), (20, 1)):  # of 21
        progress = Progress(step // 7, step, 3, 21)
        taken = 0
        for update in method.updates(trainer.learners.forwards, batch, progress):
            trainer.learners.begin(update)
            trainer.learners.backward(update, parts=1)
            trainer.learners.apply(update, progress)
            now = weights(trainer, "network")
            moved.append({name.partition(".")[0] for name in now if not torch.equal(now[name], start[name])})
            start, taken = now, taken + 1
        assert taken == updates
    assert moved == [{"encoder", "projector"}, {"classifier"}, {"encoder", "classifier"}]
    assert trainer.learners.learning_rate("network", Progress(2, 20, 3, 21)) == pytest.approx(0.1)
