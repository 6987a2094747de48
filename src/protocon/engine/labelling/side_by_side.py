"""Runs that differ in their labels alone, trained side by side: one pass for all of them.

Heads on cached features are so small that calling them takes longer than their arithmetic. Weights of all runs are
stacked, and so are their batches. Runs with as many labels see the same positions with the same noise, which is drawn
once for all of them. Each run ends as it would by itself, up to rounding.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from protocon.base.draws import fold
from protocon.data.loading.schedule import Plan, StepPlan
from protocon.engine.loop.batch_views import STRONG, WEAK
from protocon.engine.loop.optimizers import optimizer_of
from protocon.engine.loop.view_blocks import ROWS
from protocon.engine.setup.session import Session
from protocon.engine.setup.whole_set import whole_set
from protocon.features.picked_view import PickedDraws, PickedView
from protocon.methods import Method
from protocon.networks.ema import ramped_decay
from protocon.networks.stacked_heads import StackedHeads, heads_only
from protocon.types import Batch, Outputs, Progress

_BY_ELEMENT = ("sgd", "adamw")
"""Optimisers that treat each weight by itself, so that it does not matter which are stacked."""
_PLAIN = ("commit", "end_epoch", "updates", "build_networks", "copies", "support", "model", "optim")
"""What a method that can be stacked leaves as it is."""


def can_stack(session: Session) -> bool:
    """Whether runs like this one can be trained side by side: heads on cached views, and a method without a memory."""
    method, config = session.method, session.config
    return (
        type(method).loss_of is not Method.loss_of
        and all(getattr(type(method), name) is getattr(Method, name) for name in _PLAIN)
        and not method.crops
        and isinstance(session.views.weak, PickedView)
        and isinstance(session.views.strong, PickedView)
        and config.optim.optimizer in _BY_ELEMENT
        and config.run.precision == "32-true"
        and heads_only(session.network)
    )


@dataclass(frozen=True)
class _Rows:
    """One run's rows of a step, with what is drawn for them."""

    plan: StepPlan
    labelled: PickedDraws
    strong: tuple[PickedDraws, ...]


class SideBySide:
    """Runs before, during and after their training. Every process that trains them computes the same.

    Args:
        sessions: before their first step, with the same settings and features; `can_stack`. All need as many steps.
        device: to compute on.
    """

    def __init__(self, sessions: Sequence[Session], device: torch.device) -> None:
        first = sessions[0]
        self._sessions, self._device, self._optim = sessions, device, first.config.optim
        for session in sessions:
            session.method.to(device)
            if session.method.wants_samples():
                session.method.prepare(whole_set(session))
        self._samples = first.samples.read(np.arange(len(first.samples))).to(device)
        splits = [session.split for session in sessions]
        self._labelled = [torch.from_numpy(split.labelled).to(device) for split in splits]
        self._targets = [torch.from_numpy(split.labels).to(device) for split in splits]
        self._unlabelled = [torch.from_numpy(split.unlabelled).to(device) for split in splits]
        self._plans = [self._plan(session) for session in sessions]
        self._heads = StackedHeads([session.network.to(device) for session in sessions])
        self._averaged = copy.deepcopy(self._heads).requires_grad_(False)
        self._optimizer = self._build_optimizer()
        self.epochs, self.steps_per_epoch = first.resolved.total_epochs, self._plans[0].steps_per_epoch
        self._step = 0

    def _plan(self, session: Session) -> Plan:
        split, optim = session.split, self._optim
        return Plan(
            labelled=len(split.labelled),
            unlabelled=len(split.unlabelled),
            batch_size=optim.batch_size,
            mu=optim.mu,
            seed=session.config.run.seed,
        )

    def _build_optimizer(self) -> Optimizer:
        """Over stacked weights; biases have no weight decay."""
        return optimizer_of(
            [
                {"params": self._heads.matrices(), "weight_decay": self._optim.weight_decay},
                {"params": self._heads.biases(), "weight_decay": 0.0},
            ],
            self._optim,
        )

    def train_epoch(self, epoch: int) -> None:
        """One pass over the unlabelled images of each run."""
        total = self.epochs * self.steps_per_epoch
        for rows in self._steps(epoch):
            loss = self._loss(rows)
            self._optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self._apply(Progress(epoch, self._step, self.epochs, total))
            self._step += 1

    def _steps(self, epoch: int) -> Iterator[list[_Rows]]:
        """The rows of all runs, step by step; draws of several steps are made at once."""
        size = max(1, ROWS // (self._optim.mu * self._optim.batch_size))
        for first in range(0, self.steps_per_epoch, size):
            numbers = range(first, min(first + size, self.steps_per_epoch))
            drawn = {plan: list(self._drawn(plan, epoch, numbers)) for plan in set(self._plans)}
            for number in range(len(numbers)):
                yield [drawn[plan][number] for plan in self._plans]

    def _drawn(self, plan: Plan, epoch: int, numbers: range) -> Iterator[_Rows]:
        """Rows of some steps for runs with so many labels."""
        session, order = self._sessions[0], plan.order(epoch)
        views, width = session.views, self._samples.shape[-1]
        weak, strong = views.weak, views.strong
        if not isinstance(weak, PickedView) or not isinstance(strong, PickedView):
            raise TypeError("views that are not of features; ask can_stack first")
        steps = [plan.step(epoch, number, order) for number in numbers]
        keys = torch.cat([step.keys for step in steps]).to(self._device)
        labelled_keys = torch.cat([step.labelled_keys for step in steps]).to(self._device)
        labelled = weak.draw(fold(labelled_keys, WEAK), width)
        seen = [strong.draw(fold(keys, STRONG + view), width) for view in range(session.method.strong_views)]
        at = start = 0
        for step in steps:
            own, rows = slice(at, at + len(step.labelled_index)), slice(start, start + len(step.index))
            yield _Rows(step, labelled.rows(own), tuple(one.rows(rows) for one in seen))
            at, start = own.stop, rows.stop

    def _loss(self, rows: list[_Rows]) -> Tensor:
        """Sum of the runs' losses: each reaches its own weights alone."""
        samples, device = self._samples, self._device
        views: list[Tensor] = []
        for run, one in enumerate(rows):
            images = self._unlabelled[run][one.plan.index.to(device)]
            strong = [draws.apply(samples, images) for draws in one.strong]
            own = self._labelled[run][one.plan.labelled_index.to(device)]
            views.append(torch.cat([one.labelled.apply(samples, own), *strong]))
        logits = self._heads(nn.utils.rnn.pad_sequence(views, batch_first=True))  # runs may differ by a row
        losses = []
        for run, (one, session) in enumerate(zip(rows, self._sessions, strict=True)):
            none, at = views[run][:0], one.plan.labelled_index.to(device)
            sizes = [len(at), *[len(one.plan.index)] * len(one.strong)]
            labelled, *seen = (Outputs(part, none) for part in torch.split(logits[run, : len(views[run])], sizes))
            batch = Batch(none, self._targets[run][at], at, none, (), one.plan.index.to(device))
            losses.append(session.method.loss_of(labelled, tuple(seen), batch))
        return torch.stack(losses).sum()

    def _apply(self, progress: Progress) -> None:
        """The optimiser's step, and the averaged weights after it: as `Learners` does it."""
        method, optim = self._sessions[0].method, self._optim
        matrices, biases = self._optimizer.param_groups
        matrices["lr"] = biases["lr"] = method.learning_rate(method.main, optim.lr, progress)
        if optim.weight_decay:
            matrices["weight_decay"] = method.weight_decay(method.main, optim.weight_decay, progress)
        self._optimizer.step()
        own: list[Tensor] = list(self._averaged.parameters())
        kept = ramped_decay(optim.ema, progress.step)
        with torch.no_grad():
            torch._foreach_lerp_(own, [weight.detach() for weight in self._heads.parameters()], 1.0 - kept)

    def networks(self) -> list[nn.Module]:
        """The averaged network of each run."""
        return [
            self._averaged.unstacked(run, copy.deepcopy(session.network).requires_grad_(False)).eval()
            for run, session in enumerate(self._sessions)
        ]


def same_steps(sessions: Sequence[Session]) -> list[list[int]]:
    """Positions of the sessions that need as many steps: each list can be trained side by side."""
    found: dict[int, list[int]] = {}
    for number, session in enumerate(sessions):
        found.setdefault(session.total_steps, []).append(number)
    return list(found.values())
