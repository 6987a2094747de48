"""A training loop of a few milliseconds: small networks on feature vectors, every draw a function of its key.

It is what the trainer does, without files, views or devices: step, backward, optimiser, commit, end_epoch.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.base.draws import integers, normal, permutation
from protocon.methods import METHODS, Method, Problem, Samples
from protocon.methods.base import Forward
from protocon.methods.needs import Facts
from protocon.types import Batch, Outputs, Progress, Step

CLASSES, FEATURES, DIM = 4, 8, 6
SAMPLES, LABELLED = 40, 12
ROWS, LABELLED_ROWS = 10, 5
STEPS_PER_EPOCH = SAMPLES // ROWS
TOTAL_STEPS = 5 * STEPS_PER_EPOCH
FACTS = Facts(SAMPLES, CLASSES)
"""What methods resolve their settings from."""


def gaussian(key: int, rows: int, columns: int = FEATURES) -> Tensor:
    """Standard normal numbers (rows, columns) that belong to a key."""
    return normal(torch.arange(rows) + 1_000 * key, 0, columns)


class TinyNetwork(nn.Module):
    """A linear encoder with a classifier and a unit-norm projector, with batch statistics if asked."""

    def __init__(self, key: int = 1, *, batchnorm: bool = False) -> None:
        super().__init__()
        self.encoder = nn.Linear(FEATURES, FEATURES)
        self.norm: nn.Module = nn.BatchNorm1d(FEATURES) if batchnorm else nn.Identity()
        self.classifier = nn.Linear(FEATURES, CLASSES)
        self.projector = nn.Linear(FEATURES, DIM)
        with torch.no_grad():
            for layer in (self.encoder, self.classifier, self.projector):
                for number, weight in enumerate(layer.parameters()):
                    drawn = gaussian(100 * key + 2 * len(weight) + number, weight.numel(), 1)
                    weight.copy_(drawn.view_as(weight) / FEATURES**0.5)

    def forward(self, x: Tensor) -> Outputs:
        hidden = torch.tanh(self.norm(self.encoder(x)))
        return Outputs(4.0 * self.classifier(hidden), F.normalize(self.projector(hidden), dim=-1))


def problem() -> Problem:
    """Sizes of the toy problem; its labelled set holds every class three times."""
    return Problem(
        classes=CLASSES,
        unlabelled=SAMPLES,
        labelled_targets=torch.arange(LABELLED) % CLASSES,
        projection_dim=DIM,
    )


def is_plain(method: type[Method]) -> bool:
    """Whether a method learns from labels with one network, one update per step and the usual views.

    The others have tests of their own (`test_pretraining.py`, `test_mpl.py`, `test_paws.py`, `test_finetune.py`).
    """
    return method.uses_labels and method.updates is Method.updates and method.support is Method.support


def build(name: str, **settings: Any) -> Method:
    """A method of METHODS by its name, with these settings."""
    method = METHODS[name]
    built = method(method.Config(**settings).settled(FACTS, {}), problem())
    if built.uses_samples:
        built.prepare(samples())
    return built


def samples() -> Samples:
    """The whole set: labelled images first."""
    centres, targets = 0.8 * gaussian(7, CLASSES), problem().labelled_targets
    labelled = centres[targets] + gaussian(9, LABELLED)
    unlabelled = centres[torch.arange(SAMPLES) % CLASSES] + gaussian(8, SAMPLES)
    return Samples(
        views=torch.cat([labelled, unlabelled])[:, None],
        labelled=torch.arange(LABELLED),
        targets=targets,
        unlabelled=LABELLED + torch.arange(SAMPLES),
    )


def progress(step: int) -> Progress:
    """Where training is after `step` steps."""
    return Progress(step // STEPS_PER_EPOCH, step, TOTAL_STEPS // STEPS_PER_EPOCH, TOTAL_STEPS)


def make_batch(step: int, *, strong_views: int = 1) -> Batch:
    """The views of a step: clusters around four class centres, noise by view and step.

    Labelled images repeat within a batch, as they do where labels are scarce.
    """
    centres = 0.8 * gaussian(7, CLASSES)
    epoch, part = divmod(step, STEPS_PER_EPOCH)
    order = torch.from_numpy(permutation(SAMPLES, 3, epoch))
    index = order[part * ROWS : (part + 1) * ROWS]
    images = (centres[torch.arange(SAMPLES) % CLASSES] + gaussian(8, SAMPLES))[index]
    labelled_index = integers(torch.tensor([step]), 5, LABELLED, LABELLED_ROWS)[0]
    targets = problem().labelled_targets[labelled_index]
    noise = 20 + 10 * step
    return Batch(
        labelled=centres[targets] + gaussian(noise, LABELLED_ROWS),
        targets=targets,
        labelled_index=labelled_index,
        weak=images + 0.1 * gaussian(noise + 1, ROWS),
        strong=tuple(images + 0.7 * gaussian(noise + 2 + view, ROWS) for view in range(strong_views)),
        index=index,
    )


@dataclass
class Run:
    """A method and its network in training."""

    method: Method
    network: nn.Module = field(default_factory=TinyNetwork)
    teacher: Forward | None = None
    """None: the network itself."""
    lr: float = 0.1
    step: int = 0

    def look(self, *, share: float = 1.0, labelled_share: float = 1.0) -> Step:
        """What the next step would be; changes nothing of the method."""
        batch = make_batch(self.step, strong_views=self.method.strong_views)
        return self.method.step(
            self.network,
            self.network if self.teacher is None else self.teacher,
            replace(batch, share=share, labelled_share=labelled_share),
            progress(self.step),
        )

    def advance(self, steps: int = 1) -> list[Step]:
        """Train; plain SGD, so that weights and buffers are all the state there is."""
        taken = []
        for _ in range(steps):
            result = self.look()
            if result.loss is not None:
                self.network.zero_grad()
                torch.autograd.backward(result.loss)
                with torch.no_grad():
                    for weight in self.network.parameters():
                        if weight.grad is not None:
                            weight.sub_(self.lr * weight.grad)
            with torch.no_grad():
                self.method.commit(result.rows, progress(self.step))
                if (self.step + 1) % STEPS_PER_EPOCH == 0:
                    self.method.end_epoch(progress(self.step))
            self.step += 1
            taken.append(result)
        return taken


def loss_of(step: Step) -> float:
    """The loss as a number; NaN where a step has none."""
    return float("nan") if step.loss is None else float(step.loss.detach())


def terms_of(steps: list[Step], name: str) -> list[float]:
    """One logged term over several steps."""
    return [float(step.terms[name]) for step in steps]
