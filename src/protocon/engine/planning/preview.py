"""What a run would do: settings without `auto`, sizes, steps and memory, before anything is trained."""

import copy
import time
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from protocon.data.imageset import DataBundle
from protocon.engine.loop.epochs import peak_memory_mib
from protocon.engine.planning.budget import within_budget
from protocon.engine.planning.feature_memory import feature_memory
from protocon.engine.planning.run_time import run_time
from protocon.engine.setup.encode import outline
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import Session, build, settle
from protocon.methods.base import Method
from protocon.runs.run_data import load_data
from protocon.settings.config import RunConfig, to_yaml
from protocon.settings.resolved_config import ResolvedOptim


def describe_plan(config: RunConfig, bundle: DataBundle | None = None, *, timed: bool = True) -> dict[str, Any]:
    """The resolved config, the method's sizes, steps, an estimate of memory in MiB, and how long it would take.

    Args:
        config: settings; with a time budget, a few steps are run to see how many epochs fit into it.
        bundle: the data, if it is loaded already.
        timed: tell how long it would take; that takes a few seconds itself.
    """
    started = time.monotonic()
    settled = settle(config, load_data(config) if bundle is None else bundle)
    fabric = build_fabric(config)
    if config.optim.time_budget is not None:
        settled = within_budget(config, settled, fabric, Console(quiet=True), started=started)
    session = build(settled, outline(settled))
    plan = _plan(session)  # before anything is timed, which takes memory too
    if not timed:
        return plan
    return plan | {"time": run_time(settled, session, fabric, images=_images_of(session))}


def _plan(session: Session) -> dict[str, Any]:
    resolved = session.resolved
    parameters = sum(p.numel() for p in session.network.parameters())
    state = sum(b.numel() * b.element_size() for b in session.method.buffers())
    train = session.bundle.train
    stored = train.nbytes if train.in_memory else 0
    activations = int(activation_bytes(session.network, session.input_shape) * _images_of(session))
    copies = len(session.method.copies()) + 4 * (len(session.method.build_networks(copy.deepcopy(session.network))) - 1)
    libraries = max(0.0, (peak_memory_mib() or 0.0) * 2**20 - stored)
    memory = {
        "program and libraries (measured)": int(libraries),
        "images held": stored,
        "weights, average, gradients, momentum": 4 * (4 + copies) * parameters,
        "method's banks and tables": state,
        "activations of a step (estimate)": activations,
    } | feature_memory(session.config, session.bundle, session.inputs)
    return {
        "config": resolved.config.model_dump(mode="json"),
        "config_yaml": to_yaml(resolved.config),
        "chosen": resolved.reasons,
        "sizes": {
            "classes": len(train.class_names),
            "labelled": len(session.split.labelled),
            "unlabelled": len(session.split.unlabelled),
            "epochs": resolved.total_epochs,
            "steps_per_epoch": resolved.steps_per_epoch,
            "steps": session.total_steps,
            "parameters": parameters,
            **session.method.summary(),
        },
        "memory": {
            name: f"{size / 2**20:.1f} MiB" for name, size in (*memory.items(), ("total", sum(memory.values())))
        },
    }


def images_per_step(method: Method, optim: ResolvedOptim, *, side: int, classes: int) -> float:
    """Images of full size that a step learns from: labelled ones, views of unlabelled ones, crops by their area.

    Weak views, of which nothing is kept for a backward pass, do not count, unless there is no other view.

    Args:
        method: says which views it needs.
        optim: batch sizes.
        side: of the images.
        classes: C, for support sets.
    """
    labelled, unlabelled = optim.batch_size, optim.batch_size * optim.mu
    if not method.crops:
        return labelled + method.uses_unlabelled * max(method.strong_views, int(method.weak_view)) * unlabelled
    views = sum(crops.count * (crops.side(side) / side) ** 2 for crops in method.crops)
    support = method.support()
    rows = 0
    if support is not None:
        rows = support.per_class * support.views * (classes if support.classes is None else support.classes)
    return unlabelled * (views + method.weak_view) + method.uses_labels * labelled + rows


def _images_of(session: Session) -> float:
    """The same for a run."""
    side, classes = session.input_shape[-1], len(session.bundle.train.class_names)
    return images_per_step(session.method, session.config.optim, side=side, classes=classes)


def activation_bytes(network: nn.Module, shape: tuple[int, ...]) -> int:
    """Bytes that one input needs until its backward pass is done, found by a forward pass of one.

    What autograd keeps, each tensor once and without the weights; and the gradients of the largest of them, which are
    there beside it at some time.

    Args:
        network: trained as a whole; its statistics stay as they are.
        shape: of an input.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in (*network.parameters(), *network.buffers())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        held.append(tensor)  # lest its memory be given to another one
        return tensor

    held: list[Tensor] = []
    was_training = network.training
    network.eval()
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(torch.zeros(1, *shape))
    network.train(was_training)
    return sum(kept.values()) + 2 * max(kept.values(), default=0)
