"""A run of the engine that leaves no files behind."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from rich.console import Console

from protocon.data.imageset import UNKNOWN, DataBundle
from protocon.engine.loop.display import Display
from protocon.engine.loop.trainer import Trainer, build_trainer, train_in_memory
from protocon.engine.planning.budget import within_budget
from protocon.engine.setup.encode import encode
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.mirrors import ask_about_mirrors
from protocon.engine.setup.session import Session, build, settle
from protocon.networks.network import Network
from protocon.runs.trained import TrainedRun
from protocon.settings.config import RunConfig


@dataclass(frozen=True)
class Fitted:
    """What training in memory gives."""

    run: TrainedRun
    distributions: np.ndarray
    """Class probabilities of every training sample, float64 (n, C): its label, or the refined pseudo-label."""
    epochs: int


def train_on(config: RunConfig, bundle: DataBundle, console: Console) -> Fitted:
    """Train as the command line does, without checkpoints, logs or a run folder.

    Features of a frozen encoder are kept in the cache that the commands use too.

    Args:
        config: settings, `auto` allowed.
        bundle: the data.
        console: where progress goes.
    """
    started = time.monotonic()
    config = config.model_copy(update={"run": config.run.model_copy(update={"cross_check": 0})})
    with _torch_left_alone():
        fabric = build_fabric(config)
        settled = within_budget(config, settle(config, bundle), fabric, console, started=started)
        answer = ask_about_mirrors(config, settled, console, fabric.device)
        inputs = encode(answer.settled, console, fabric.device, encoder=answer.encoder)
        session = build(answer.settled, inputs)
        trainer = build_trainer(session, fabric)
        resolved = session.resolved
        display = Display(
            console,
            title=f"{bundle.train.name} · {config.method_name}",
            total_epochs=resolved.total_epochs,
            steps_per_epoch=resolved.steps_per_epoch,
        )
        with display:
            train_in_memory(trainer, display)
        averaged = trainer.evaluated
        distributions = _distributions(trainer)
        network = cast(Network, session.complete(averaged).cpu().eval().requires_grad_(False))
        train = bundle.train
        return Fitted(
            TrainedRun(network, session.config, train.class_names, train.shape),
            distributions,
            session.resolved.total_epochs,
        )


def _distributions(trainer: Trainer) -> np.ndarray:
    """Refined class probabilities of the unlabelled samples, and certainty at the label of the labelled ones."""
    session: Session = trainer.session
    train, unlabelled = session.bundle.train, session.split.unlabelled
    outputs = trainer.predict(trainer.evaluated, train.subset(unlabelled))
    device = trainer.fabric.device
    with torch.no_grad():
        probs = outputs.logits.softmax(-1).to(device)
        believed = session.method.opinions(probs, torch.arange(len(unlabelled), device=device))["refined"].cpu()
    result = np.zeros((len(train), len(train.class_names)))
    result[unlabelled] = believed.double().numpy()
    result[unlabelled] /= result[unlabelled].sum(1, keepdims=True)
    known = np.flatnonzero(train.labels != UNKNOWN)
    result[known] = np.eye(result.shape[1])[train.labels[known]]
    return result


@contextmanager
def _torch_left_alone() -> Iterator[None]:
    """Training seeds torch's generator and asks for deterministic algorithms; the caller gets both back."""
    enabled, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    # A module that changes its own class, which type checkers cannot follow.
    deterministic: Any = torch.utils.deterministic
    fill = deterministic.fill_uninitialized_memory
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            yield
    finally:
        torch.set_deterministic_debug_mode(0 if not enabled else 1 if warn_only else 2)
        deterministic.fill_uninitialized_memory = fill
