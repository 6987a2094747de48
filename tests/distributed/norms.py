"""Norm layers with inputs and gradients, computed whole or as one process's slice."""

import copy

import torch
from timm.layers.norm_act import BatchNormAct2d
from torch import Tensor, nn

from protocon.base.draws import normal
from protocon.networks.syncnorm import SynchronisedBatchNorm, synchronise_norms

ROWS = 7
CUT = 2
"""The first process has rows 0 … CUT − 1, the second the rest."""


def layers() -> dict[str, tuple[nn.Module, Tensor, Tensor]]:
    """A layer, its input and the gradient of its output, by name; float64 where that is the default."""
    channels = 3

    def drawn(slot: int, *shape: int) -> Tensor:
        count = int(torch.tensor(shape).prod()) // shape[0]
        return normal(torch.arange(shape[0]), slot, count).view(shape).to(torch.get_default_dtype())

    made: dict[str, nn.Module] = {
        "flat": nn.BatchNorm1d(channels),
        "images": nn.BatchNorm2d(channels, momentum=0.3),
        "cumulative": nn.BatchNorm1d(channels, momentum=None),
        "plain": nn.BatchNorm2d(channels, affine=False, track_running_stats=False),
        "volumes": nn.BatchNorm3d(channels),
        "activation": BatchNormAct2d(channels),
    }
    shapes = {"flat": (ROWS, 3), "cumulative": (ROWS, 3), "volumes": (ROWS, 3, 2, 2, 2)}
    cases = {}
    for slot, (name, layer) in enumerate(made.items()):
        shape = shapes.get(name, (ROWS, channels, 4, 2))
        for number, weight in enumerate(layer.parameters()):
            with torch.no_grad():
                weight.add_(drawn(50 + number, channels, 1)[:, 0])
        # Far from zero, where sums of squares would cancel; and other in each process's rows.
        shift = torch.linspace(0, 5, ROWS).view(-1, *(1,) * (len(shape) - 1))
        cases[name] = (layer, 30 + shift + drawn(2 * slot, *shape), drawn(2 * slot + 1, *shape))
    return cases


def run(layer: nn.Module, x: Tensor, gradient: Tensor) -> dict[str, Tensor]:
    """Two training steps forward and back (statistics move twice), and the state after them."""
    leaf = x.clone().requires_grad_()
    layer(leaf.detach() * 0.5)
    out = layer(leaf)
    torch.autograd.backward(out, gradient)
    grads = {f"gradient of {name}": weight.grad for name, weight in layer.named_parameters() if weight.grad is not None}
    layer.eval()
    found = {"out": out.detach(), "gradient": leaf.grad, "evaluated": layer(x).detach()}
    return {name: value for name, value in found.items() if value is not None} | grads | dict(layer.state_dict())


def as_slice(layer: nn.Module, x: Tensor, gradient: Tensor, *, rank: int) -> dict[str, Tensor]:
    """The same through a synchronised norm, of one process's rows."""
    synchronised = synchronise_norms(nn.Sequential(copy.deepcopy(layer)), torch.device("cpu"))[0]  # type: ignore[index]
    if not isinstance(synchronised, SynchronisedBatchNorm):
        raise TypeError(type(synchronised))
    rows = slice(0, CUT) if rank == 0 else slice(CUT, None)
    return run(synchronised, x[rows], gradient[rows])
