"""Meta Pseudo Labels: the sign of its feedback, its gradient by finite differences, and its parts by hand."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.methods import Problem
from protocon.methods.mpl import MPL, MPLConfig
from protocon.types import Batch, Outputs, Progress, Step, Update
from tests.core.inputs import same_state, snapshot
from tests.distributed.cases import write_data
from tests.methods.harness import gaussian
from tests.methods.test_toys import steps, trainer_of, weights
from tests.reference import cross_entropy, softmax

CLASSES, FEATURES, RATE = 3, 4, 0.5
NOW = Progress(epoch=1, step=10, total_epochs=4, total_steps=40)
PROBLEM = Problem(classes=CLASSES, unlabelled=1, labelled_targets=torch.arange(CLASSES), projection_dim=0)


class Linear(nn.Module):
    """A classifier of feature vectors, in float64."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(FEATURES, CLASSES, dtype=torch.float64)
        with torch.no_grad():
            self.classifier.weight.copy_(0.5 * gaussian(key, CLASSES, FEATURES))
            self.classifier.bias.zero_()

    def forward(self, x: Tensor) -> Outputs:
        logits = self.classifier(x)
        return Outputs(logits, logits[:, :0])


def batch_of(unlabelled: Tensor, labelled: Tensor, targets: Tensor) -> Batch:
    rows = torch.arange(len(unlabelled))
    return Batch(labelled, targets, torch.arange(len(targets)), unlabelled, (unlabelled,), rows)


def method_of(**settings: object) -> MPL:
    """Without the other terms of the teacher, so that only the feedback is left."""
    quiet = {"lambda_u": 0, "wait": 0, "finetune": 0, "dropout": 0, "clip": None, "smoothing": 0, **settings}
    return MPL(MPLConfig(**quiet), PROBLEM)  # type: ignore[arg-type]


def run(method: MPL, student: nn.Module, teacher: nn.Module, batch: Batch) -> tuple[list[Update], Step]:
    """Both updates of a step; the student's is taken with plain gradient descent, the teacher's only computed."""
    taken: list[Update] = []
    updates = method.updates({"student": student, "teacher": teacher}, batch, NOW)
    try:
        while True:
            update = next(updates)
            taken.append(update)
            network = student if update.network == "student" else teacher
            network.zero_grad()
            update.loss.backward()  # type: ignore[no-untyped-call]
            if update.network == "student":
                with torch.no_grad():
                    for weight in student.parameters():
                        weight.sub_(RATE * weight.grad)  # type: ignore[operator]
    except StopIteration as end:
        return taken, end.value


def test_a_label_that_helps_is_made_likelier_and_one_that_harms_less_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The unlabelled image is the labelled one: its own class is the label that helps the student."""
    image, truth = gaussian(3, 1, FEATURES).double(), torch.tensor([1])
    for label in range(CLASSES):
        student, teacher = Linear(1), Linear(2)
        nothing = batch_of(image, image, truth)
        monkeypatch.setattr(MPL, "hard_labels", lambda *_, label=label: torch.tensor([label]))
        method = method_of()
        _, step = run(method, student, teacher, nothing)
        own = teacher.classifier.weight.grad.clone()  # type: ignore[union-attr]
        loss_x = F.cross_entropy(teacher(image).logits, truth)
        (alone,) = torch.autograd.grad(loss_x, [teacher.classifier.weight])
        of_feedback = own - alone
        with torch.no_grad():
            before = teacher(image).logits.softmax(-1)[0, label]
            teacher.classifier.weight.sub_(0.1 * of_feedback)
            after = teacher(image).logits.softmax(-1)[0, label]
        helps = label == 1
        assert (float(step.terms["feedback"]) > 0) == helps
        assert (float(after) > float(before)) == helps


def test_the_teachers_gradient_is_that_of_the_students_loss_after_a_real_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Σ_ŷ P(ŷ)·CE(labelled; student after a step on ŷ), differentiated by finite differences of the teacher's weights.

    With the labels enumerated, nothing is left to chance: the mean gradient over ŷ ~ P must be the same.
    """
    image, labelled, targets = gaussian(3, 1, FEATURES).double(), gaussian(4, 5, FEATURES).double(), torch.arange(5) % 3
    batch, teacher = batch_of(image, labelled, targets), Linear(2)
    after = []
    for label in range(CLASSES):
        student = Linear(1)
        loss = F.cross_entropy(student(image).logits, torch.tensor([label]))
        grads = torch.autograd.grad(loss, list(student.parameters()))
        with torch.no_grad():
            for weight, grad in zip(student.parameters(), grads, strict=True):
                weight.sub_(RATE * grad)
            after.append(float(F.cross_entropy(student(labelled).logits, targets)))

    def expected(weight: Tensor) -> float:
        probs = (image @ weight.T).softmax(-1)[0]
        return float((probs * torch.tensor(after)).sum())

    start = teacher.classifier.weight.detach().clone()
    finite = torch.zeros_like(start)
    for place in np.ndindex(*start.shape):
        nudge = torch.zeros_like(start)
        nudge[place] = 1e-5
        finite[place] = (expected(start + nudge) - expected(start - nudge)) / 2e-5

    mean = torch.zeros_like(start)
    probs = teacher(image).logits.softmax(-1)[0].detach()
    for label in range(CLASSES):
        monkeypatch.setattr(MPL, "hard_labels", lambda *_, label=label: torch.tensor([label]))
        (_, update), _ = run(method_of(), Linear(1), teacher, batch)
        own = teacher.classifier.weight.grad.clone()  # type: ignore[union-attr]
        (supervised,) = torch.autograd.grad(
            F.cross_entropy(teacher(labelled).logits, targets), [teacher.classifier.weight]
        )
        assert update.network == "teacher"
        mean += probs[label] * (own - supervised)
    torch.testing.assert_close(mean, finite, rtol=1e-5, atol=1e-9)
    assert float(finite.abs().max()) > 1e-3


def test_the_teachers_terms_by_hand() -> None:
    method = MPL(MPLConfig(smoothing=0.2, temperature=0.5, threshold=0.45, lambda_u=2.0, ramp=0.5, clip=None, dropout=0,
                           labels="argmax"), PROBLEM)  # fmt: skip
    weak, strong = gaussian(5, 6, FEATURES).double(), gaussian(6, 6, FEATURES).double()
    labelled, targets = gaussian(4, 5, FEATURES).double(), torch.arange(5) % 3
    batch = Batch(labelled, targets, torch.arange(5), weak, (strong,), torch.arange(6))
    student, teacher = Linear(1), Linear(2)
    start = copy.deepcopy(student)
    (first, second), step = run(method, student, teacher, batch)

    said = {name: teacher(view).logits.detach().numpy() for name, view in
            (("x", labelled), ("w", weak), ("s", strong))}  # fmt: skip
    label = said["s"].argmax(1)
    assert float(first.loss.detach()) == pytest.approx(
        float(F.cross_entropy(start(strong).logits, torch.from_numpy(label)).detach())
    )
    smooth = [0.8 * np.eye(CLASSES)[t] + 0.2 / CLASSES for t in targets.tolist()]
    loss_x = np.mean([cross_entropy(target, row) for target, row in zip(smooth, said["x"], strict=True)])
    sure = [softmax(row).max() >= 0.45 for row in said["w"]]
    assert 0 < sum(sure) < 6
    loss_u = np.mean([
        ok * cross_entropy(softmax(w / 0.5), s) for ok, w, s in zip(sure, said["w"], said["s"], strict=True)
    ])  # fmt: skip
    ends = [F.cross_entropy(one(labelled).logits, targets).detach() for one in (start, student)]
    feedback = float(ends[0] - ends[1])
    meta = feedback * np.mean([cross_entropy(np.eye(CLASSES)[c], row) for c, row in zip(label, said["s"], strict=True)])
    ramped = 2.0 * NOW.step / (0.5 * NOW.total_steps)
    assert float(second.loss.detach()) == pytest.approx(loss_x + ramped * loss_u + meta)
    assert float(step.terms["feedback"]) == pytest.approx(feedback)


def test_labels_are_drawn_from_the_prediction_and_belong_to_image_and_step() -> None:
    method, rows = method_of(), 20_000
    logits = torch.tensor([[0.0, 1.0, 2.0]]).expand(rows, 3)
    empty = torch.empty(0)
    batch = Batch(empty, empty, empty, empty, (), torch.arange(rows))
    label = method.hard_labels(logits, batch, NOW)
    shares = torch.bincount(label, minlength=3) / rows
    torch.testing.assert_close(shares, logits[0].softmax(-1), atol=0.015, rtol=0)
    assert torch.equal(label, method.hard_labels(logits, batch, NOW))
    later = Progress(1, 11, 4, 40)
    assert not torch.equal(label, method.hard_labels(logits, batch, later))
    assert method_of(labels="argmax").hard_labels(logits, batch, NOW).tolist() == [2] * rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def test_both_rates_warm_up_the_students_after_its_wait() -> None:
    method = method_of(wait=0.1, warmup=0.2)
    plain = method_of()
    for network, start in (("student", 10), ("teacher", 0)):
        now = [Progress(0, start + step, 1, 100) for step in (0, 5, 10, 20, 40)]
        shares = [method.learning_rate(network, 2.0, at) / plain.learning_rate(network, 2.0, at) for at in now]
        assert shares == pytest.approx([0.0, 0.25, 0.5, 1.0, 1.0])
    assert method.learning_rate("student", 2.0, Progress(0, 9, 1, 100)) == 0.0


def test_the_student_waits_is_taught_and_is_fine_tuned_on_labels_alone(data: Path) -> None:
    trainer = trainer_of(data, "mpl", "wait=0.1", "finetune=0.2", "finetune_lr=0.5")  # of 21 steps
    method = trainer.session.method
    rates = [trainer.learners.learning_rate("student", Progress(0, step, 3, 21)) for step in (0, 2, 3, 10, 17, 20)]
    assert rates[:2] == [0.0, 0.0]
    assert rates[2] > rates[3] > 0
    assert rates[4] == rates[5] == pytest.approx(0.1)
    before = weights(trainer, "network:student"), weights(trainer, "network:teacher")
    list(steps(trainer, 1))
    assert same_state(before[0], weights(trainer, "network:student"))
    assert not same_state(before[1], weights(trainer, "network:teacher"))
    batch = trainer.make_batch(next(iter(trainer.loader.epoch(0))))
    state = snapshot(method)
    last = [u.network for u in method.updates(trainer.learners.forwards, batch, Progress(2, 20, 3, 21))]
    assert last == ["student"]
    assert same_state(state, snapshot(method))
