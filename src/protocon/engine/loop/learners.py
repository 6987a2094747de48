"""The networks in training, each with its optimiser, and the momentum copies that follow them."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from pydantic import ValidationError
from torch import Tensor, nn
from torch.optim import Optimizer

from protocon.base import distributed
from protocon.engine.loop.checkpoint import Checkpoint, optimizer_tensors, restore_optimizer
from protocon.engine.loop.optimizers import build_optimizer
from protocon.engine.setup.fabric import Fabric
from protocon.errors import ConfigError
from protocon.methods.base import AVERAGED, Forward, Method
from protocon.networks.ema import MomentumCopy, Statistics, ramped_decay
from protocon.networks.syncnorm import average_statistics, synchronise_norms
from protocon.runs.trained import load_run
from protocon.settings.resolved_config import ResolvedConfig, ResolvedOptim
from protocon.types import Progress, Update


@dataclass(frozen=True)
class Learner:
    """A network in training."""

    network: nn.Module
    """As Fabric wrapped it."""
    optimizer: Optimizer
    settings: ResolvedOptim
    """Its own, with what the method changes."""
    decays: tuple[bool, ...]
    """Whether each group of weights has weight decay; biases and normalisation have none."""

    @property
    def bare(self) -> nn.Module:
        """The network without its wrappers."""
        return unwrap(self.network)


class Learners:
    """All networks of a run, built as the method and the settings say.

    Args:
        method: names networks and copies, and their rates.
        network: the one that the settings describe.
        config: of the run, without `auto`.
        fabric: for the device; wraps each network for distribution.
    """

    def __init__(self, method: Method, network: nn.Module, config: ResolvedConfig, fabric: Fabric) -> None:
        self._method = method
        self._fabric = fabric
        self._ema = config.optim.ema
        built = method.build_networks(network)
        self.learners = {name: _learner(method, name, module, config, fabric) for name, module in built.items()}
        # Copied after the set-up, which may change the weights' precision.
        statistics: Statistics = "averaged" if method.settings.teacher == "eman" else "copied"
        self._followed = {AVERAGED: method.main} | {name: copy.of for name, copy in method.copies().items()}
        kinds = {AVERAGED: statistics} | {name: copy.statistics for name, copy in method.copies().items()}
        self._check_names(method)
        self.copies = {
            name: MomentumCopy(self.learners[of].bare, statistics=kinds[name]) for name, of in self._followed.items()
        }
        self.forwards: dict[str, Forward] = {name: learner.network for name, learner in self.learners.items()}
        self.forwards |= {name: copy.module for name, copy in self.copies.items()}
        self.forwards |= {name: self._teacher(path) for name, path in method.teachers().items()}
        self._updated: set[str] = set()

    def _teacher(self, path: Path) -> Forward:
        """The network of a finished run: it is not trained, and is not a part of checkpoints."""
        like = next(self.main.bare.parameters())
        return load_run(path).network.to(like.device, like.dtype).requires_grad_(False)

    def _check_names(self, method: Method) -> None:
        """A method's mistake in names is told before training."""
        known, copies = set(self.learners), set(self._followed)
        name = type(method).__name__
        if twice := known & copies or ({AVERAGED} & set(method.copies())):
            raise ConfigError(f"{name} uses the name {min(twice)} twice; networks and copies need names of their own")
        for what, wanted, among in (
            ("main", method.main, known),
            *((f"the copy {copy}", of, known) for copy, of in self._followed.items()),
            ("evaluated", method.evaluated, known | copies),
            ("teacher", method.teacher(), known | copies),
        ):
            if wanted not in among:
                raise ConfigError(f"{name}: {what} names {wanted!r}, but there is only {', '.join(sorted(among))}")

    @property
    def main(self) -> Learner:
        """The network that the run is about."""
        return self.learners[self._method.main]

    @property
    def evaluated(self) -> nn.Module:
        """The bare network that predicts and is saved."""
        name = self._method.evaluated
        found = self.copies[name].module if name in self.copies else self.learners[name].bare
        return self._method.model(found)

    def train(self) -> None:
        """Put all networks in training mode; copies stay in theirs."""
        for learner in self.learners.values():
            learner.network.train()

    def without_exchange(self) -> AbstractContextManager[object]:
        """Within it, backward passes leave gradients in each process."""
        stack = ExitStack()
        if distributed.world_size() > 1:
            for learner in self.learners.values():
                stack.enter_context(self._fabric.no_backward_sync(learner.network))  # type: ignore[arg-type]
        return stack

    def begin(self, update: Update) -> None:
        """Forget the gradients that an update does not add to."""
        self._learner(update).optimizer.zero_grad()

    def backward(self, update: Update, *, parts: int) -> None:
        """Add the gradients of one of so many parts."""
        self._fabric.backward(update.loss / parts)

    def apply(self, update: Update, progress: Progress) -> None:
        """Take the optimiser's step."""
        learner = self._learner(update)
        fixed = _leave_fixed(learner.bare, update.fixed)
        if update.max_norm is not None:
            self._fabric.clip_gradients(learner.network, learner.optimizer, max_norm=update.max_norm)
        if update.max_norm_of_each is not None:
            _clip_each(learner.bare, update.max_norm_of_each)
        decay = self._method.weight_decay(update.network, learner.settings.weight_decay, progress)
        for group, decays in zip(learner.optimizer.param_groups, learner.decays, strict=True):
            group["lr"] = group["rate"] * self.learning_rate(update.network, progress)
            if decays:
                group["weight_decay"] = decay
        learner.optimizer.step()
        _start_momentum(learner.optimizer, fixed)
        with torch.no_grad():
            self._method.constrain(update.network, learner.bare)
        self._updated.add(update.network)

    def _learner(self, update: Update) -> Learner:
        if update.network not in self.learners:
            raise ConfigError(
                f"{type(self._method).__name__} updates {update.network!r}, but its networks are "
                f"{', '.join(self.learners)}"
            )
        return self.learners[update.network]

    def follow(self, progress: Progress) -> None:
        """Let the copies of the networks that this step updated follow them."""
        decays = self._method.copies()
        for name, copy in self.copies.items():
            of = self._followed[name]
            if of in self._updated:
                decay = ramped_decay(self._ema, progress.step) if name == AVERAGED else decays[name].decay(progress)
                copy.update(self.learners[of].bare, decay)
        self._updated.clear()

    def learning_rate(self, name: str, progress: Progress) -> float:
        """Of a network, in the step that comes next."""
        return self._method.learning_rate(name, float(self.learners[name].settings.lr), progress)

    def average_statistics(self) -> None:
        """Make normalisation statistics the same in all processes, where norms are not synchronised."""
        for learner in self.learners.values():
            average_statistics(learner.network)
        for copy in self.copies.values():
            average_statistics(copy)

    def state(self) -> dict[str, dict[str, Tensor]]:
        """Every tensor of networks, copies and optimisers, by part of a checkpoint."""
        state = {_part("network", name): learner.bare.state_dict() for name, learner in self.learners.items()}
        state |= {_copy_part(name): copy.module.state_dict() for name, copy in self.copies.items()}
        for name, learner in self.learners.items():
            state[_part("optimizer", name)] = optimizer_tensors(learner.optimizer)
        return state

    def load(self, checkpoint: Checkpoint) -> None:
        """Put back what `state` gave."""
        for name, learner in self.learners.items():
            learner.bare.load_state_dict(checkpoint.part(_part("network", name)))
            restore_optimizer(learner.optimizer, checkpoint.part(_part("optimizer", name)))
        for name, copy in self.copies.items():
            copy.module.load_state_dict(checkpoint.part(_copy_part(name)))


def _leave_fixed(network: nn.Module, fixed: tuple[str, ...]) -> list[nn.Parameter]:
    """Without a gradient an optimiser skips a weight; returns those."""
    if not fixed:
        return []
    left = [weight for name, weight in network.named_parameters() if name.startswith(fixed)]
    for weight in left:
        weight.grad = None
    return left


def _start_momentum(optimizer: Optimizer, fixed: list[nn.Parameter]) -> None:
    """Give weights that were left out a momentum of zero: torch's fused SGD wants one of all weights, or of none."""
    if "momentum" not in optimizer.param_groups[0] or not optimizer.param_groups[0]["momentum"]:
        return
    for weight in fixed:
        if optimizer.state[weight].get("momentum_buffer") is None:
            optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight)


def _clip_each(network: nn.Module, max_norm: float) -> None:
    for weight in network.parameters():
        if weight.grad is not None:
            weight.grad.mul_((max_norm / (weight.grad.norm() + 1e-6)).clamp(max=1.0))


def _part(kind: str, name: str) -> str:
    """Where a network's tensors are in a checkpoint; the usual single network needs no name."""
    return kind if name == "network" else f"{kind}:{name}"


def _copy_part(name: str) -> str:
    return name if name == AVERAGED else f"copy:{name}"


def holds_weights(part: str) -> bool:
    """Whether this part of a checkpoint is the weights of a network or of a copy."""
    return part.partition(":")[0] in ("network", AVERAGED, "copy")


def _learner(method: Method, name: str, network: nn.Module, config: ResolvedConfig, fabric: Fabric) -> Learner:
    network = network.to(fabric.device)
    if distributed.world_size() > 1 and config.run.sync_batchnorm:
        network = synchronise_norms(network, fabric.device)
    settings = _settings(method, name, config.optim)
    optimizer = build_optimizer(network, settings, method.rates(name))
    # The compiled network shares its weights with the bare one.
    ready = cast(nn.Module, torch.compile(network)) if config.run.compile else network
    wrapped, wrapped_optimizer = fabric.setup(ready, optimizer)
    decays = tuple(group["weight_decay"] > 0 for group in optimizer.param_groups)
    return Learner(wrapped, wrapped_optimizer, settings, decays)


def _settings(method: Method, name: str, config: ResolvedOptim) -> ResolvedOptim:
    changes: Mapping[str, object] = method.optim(name)
    if not changes:
        return config
    try:
        return ResolvedOptim.model_validate(config.model_dump() | dict(changes))
    except ValidationError as error:
        raise ConfigError(f"{type(method).__name__}: wrong optim settings for network {name}: {error}") from error


def unwrap(network: nn.Module) -> nn.Module:
    """The bare network inside Fabric's, DDP's and the compiler's wrappers."""
    for wrapper in ("_forward_module", "module", "_orig_mod"):
        network = getattr(network, wrapper, network)
    return network
