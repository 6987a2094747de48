"""Runs that differ in their labels alone, trained side by side: one pass for all of them.

Heads on cached features are so small that calling them takes longer than their arithmetic. Weights of all runs are
stacked, and so are their batches. Runs with as many labels see the same positions with the same noise, which is drawn
once for all of them. Each run ends as it would by itself, up to rounding.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from protocon.base.draws import fold
from protocon.base.threads import SMALL, one_thread
from protocon.data.loading.schedule import Plan
from protocon.engine.loop.batch_views import STRONG, WEAK
from protocon.engine.loop.optimizers import optimizer_of
from protocon.engine.loop.view_blocks import ROWS
from protocon.engine.setup.session import Session
from protocon.engine.setup.whole_set import whole_set
from protocon.features.picked_view import PickedDraws, PickedView
from protocon.methods import Method
from protocon.methods.needs import FixedTargets
from protocon.networks.ema import ramped_decay
from protocon.networks.stacked_heads import StackedHeads, heads_only
from protocon.types import Progress

_BY_ELEMENT = ("sgd", "adamw")
"""Optimisers that treat each weight by itself, so that it does not matter which are stacked."""
_MAX_DRAWN = 2**25
"""Numbers that an epoch draws, at most: they are held at once."""
_MAX_SPREAD = 2**22
"""Flags, or features of half precision, that are held as numbers of full precision, at most: once instead of in every
step, for more memory."""
_PLAIN = ("commit", "end_epoch", "updates", "build_networks", "copies", "support", "model", "optim")
"""What a method that can be stacked leaves as it is."""


def can_stack(session: Session) -> bool:
    """Whether runs like this one can be trained side by side: heads on cached views, and a method without a memory."""
    method, config = session.method, session.config
    return (
        method.fixed_targets() is not None
        and method.strong_views == 1
        and all(getattr(type(method), name) is getattr(Method, name) for name in _PLAIN)
        and not method.crops
        and isinstance(session.views.weak, PickedView)
        and isinstance(session.views.strong, PickedView)
        and config.optim.optimizer in _BY_ELEMENT
        and config.run.precision == "32-true"
        and heads_only(session.network)
        and len(session.samples) * session.samples.shape[-1] <= _MAX_DRAWN
    )


@dataclass(frozen=True)
class _Draws:
    """What an epoch draws, the same for all runs: keys depend on positions alone."""

    labelled: PickedDraws
    """Of every place in the epoch's stream of labels."""
    strong: PickedDraws
    """Of every position in the unlabelled set."""


@dataclass(frozen=True)
class _Lists:
    """Images and soft labels of each run's labelled or unlabelled set, one run below the other.

    Runs with fewer images than others are filled up with rows that are never asked for.
    """

    images: Tensor
    """Positions in the whole set, (G, m)."""
    targets: Tensor
    """(G, m, C)."""

    @staticmethod
    def stacked(images: Sequence[Tensor], targets: Sequence[Tensor]) -> "_Lists":
        return _Lists(*(nn.utils.rnn.pad_sequence(list(rows), batch_first=True) for rows in (images, targets)))

    def at(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Images (G, n) and targets (G, n, C) at these places (G, n) of each run's own list."""
        return self.images.gather(1, places), self.targets[torch.arange(len(places))[:, None], places]


def prepare_methods(sessions: Sequence[Session], device: torch.device) -> None:
    """Make the methods ready: what they find before the first step, all at once.

    Args:
        sessions: with the same settings and features, each without some of the same labels.
        device: to compute on.
    """
    for session in sessions:
        session.method.to(device)
    if sessions[0].method.wants_samples():
        runs = [whole_set(session) for session in sessions]
        type(sessions[0].method).prepare_together([session.method for session in sessions], runs)


class SideBySide:
    """Runs before, during and after their training. Every process that trains them computes the same.

    Args:
        sessions: after `prepare_methods`, before their first step; `can_stack`. All need as many steps.
        device: to compute on.
    """

    def __init__(self, sessions: Sequence[Session], device: torch.device) -> None:
        first = sessions[0]
        self._sessions, self._device, self._optim = sessions, device, first.config.optim
        self._samples = first.samples.read(np.arange(len(first.samples))).to(device)
        if self._samples.numel() <= _MAX_SPREAD:
            self._samples = self._samples.float()
        classes = torch.eye(len(first.bundle.train.class_names), device=device)
        self._labelled = _Lists.stacked(
            [torch.from_numpy(session.split.labelled).to(device) for session in sessions],
            [classes[torch.from_numpy(session.split.labels).to(device)] for session in sessions],
        )
        learnt = [_learnt(session.method) for session in sessions]
        self._weight = learnt[0].weight
        self._unlabelled = _Lists.stacked(
            [torch.from_numpy(session.split.unlabelled).to(device) for session in sessions],
            [fixed.probs.float() for fixed in learnt],
        )
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
        size = self._optim.batch_size * (1 + self._optim.mu) * self._samples.shape[-1]
        with one_thread(size <= SMALL):  # as the trainer does it
            self._train_epoch(epoch)

    def _train_epoch(self, epoch: int) -> None:
        total, draws = self.epochs * self.steps_per_epoch, self._draws(epoch)
        orders = {plan: plan.order(epoch) for plan in set(self._plans)}
        for number in range(self.steps_per_epoch):
            steps = {plan: plan.positions(epoch, number, order) for plan, order in orders.items()}
            self._learn([steps[plan] for plan in self._plans], draws, number)
            self._apply(Progress(epoch, self._step, self.epochs, total))
            self._step += 1

    def _draws(self, epoch: int) -> _Draws:
        session, plan = self._sessions[0], max(self._plans, key=lambda plan: plan.unlabelled)
        weak, strong = session.views.weak, session.views.strong
        if not isinstance(weak, PickedView) or not isinstance(strong, PickedView):
            raise TypeError("views that are not of features; ask can_stack first")
        keys = plan.keys(epoch, torch.arange(plan.unlabelled)).to(self._device)
        return _Draws(
            self._drawn(weak, fold(plan.labelled_keys(epoch).to(self._device), WEAK)),
            self._drawn(strong, fold(keys, STRONG)),
        )

    def _drawn(self, view: PickedView, keys: Tensor) -> PickedDraws:
        """Draws of all keys, a few at a time: what is drawn stays in the processor's cache meanwhile."""
        width = self._samples.shape[-1]
        drawn = PickedDraws.joined([view.draw(part, width) for part in torch.split(keys, ROWS)])
        kept = drawn.perturb.kept
        if kept is None or kept.numel() > _MAX_SPREAD:
            return drawn
        # Flags are turned into numbers whenever they are multiplied: here once for all runs.
        return replace(drawn, perturb=replace(drawn.perturb, kept=kept.float()))

    def _learn(self, steps: list[tuple[Tensor, Tensor]], draws: _Draws, number: int) -> None:
        """Gradients of the runs' losses: each reaches its own weights alone."""
        samples, device, size = self._samples, self._device, self._optim.batch_size
        at = torch.stack([places for places, _ in steps]).to(device)
        counts = torch.tensor([len(index) for _, index in steps], device=device)
        # Runs may differ by a row: the shorter ones see an image once more, which counts for nothing.
        index = nn.utils.rnn.pad_sequence([index for _, index in steps], batch_first=True).to(device)
        present = torch.arange(index.shape[1], device=device) < counts[:, None]
        labelled, own = self._labelled.at(at)
        unlabelled, soft = self._unlabelled.at(index)
        views = (
            draws.labelled.rows(slice(number * size, (number + 1) * size)).apply(samples, labelled),
            draws.strong.rows(index).apply(samples, unlabelled),
        )
        weights = torch.full(at.shape, 1.0 / size, device=device), self._weight * present / counts[:, None]
        self._heads.learn(torch.cat(views, 1), torch.cat([own, soft], 1), torch.cat(weights, 1))

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


def _learnt(method: Method) -> FixedTargets:
    fixed = method.fixed_targets()
    if fixed is None:
        raise TypeError("a method whose targets change; ask can_stack first")
    return fixed


def same_steps(sessions: Sequence[Session]) -> list[list[int]]:
    """Positions of the sessions that need as many steps: each list can be trained side by side."""
    found: dict[int, list[int]] = {}
    for number, session in enumerate(sessions):
        found.setdefault(session.total_steps, []).append(number)
    return list(found.values())
