"""What a run would do: settings without `auto`, sizes, steps and memory, before anything is trained."""

from typing import Any

from protocon.config import RunConfig, to_yaml
from protocon.engine.session import prepare

_BACKWARD_FACTOR = 2.5
"""Activations kept for the backward pass, relative to one forward's outputs: a rough figure."""


def describe_plan(config: RunConfig) -> dict[str, Any]:
    """The resolved config, the method's sizes, steps, and an estimate of memory in MiB."""
    session = prepare(config)
    resolved = session.resolved
    parameters = sum(p.numel() for p in session.network.parameters())
    state = sum(b.numel() * b.element_size() for b in session.method.buffers())
    train = session.bundle.train
    stored = train.nbytes if train.in_memory else 0
    batch = int(resolved.config.optim.batch_size) * (1 + resolved.config.optim.mu)
    activations = activation_bytes(session.network, train.shape) * batch
    memory = {
        "images held": stored,
        "weights, average, gradients, momentum": 4 * 4 * parameters,
        "method's banks and tables": state,
        "activations of a step (estimate)": activations,
    }
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


def activation_bytes(network: Any, shape: tuple[int, ...]) -> int:
    """Bytes of all layer outputs for one input, measured with a forward pass of one."""
    import torch

    total = 0

    def count(_module: Any, _inputs: Any, output: Any) -> None:
        nonlocal total
        if isinstance(output, torch.Tensor):
            total += output.numel() * output.element_size()

    hooks = [m.register_forward_hook(count) for m in network.modules() if not list(m.children())]
    was_training = network.training
    network.eval()
    with torch.no_grad():
        network(torch.zeros(1, *shape))
    network.train(was_training)
    for hook in hooks:
        hook.remove()
    return int(total * _BACKWARD_FACTOR)
