"""Batch normalisation over the rows of all processes, so that a step does not depend on their number.

On CUDA it is torch's SyncBatchNorm; that one refuses the CPU, where this file's own takes its place. Both keep
BatchNorm's names in the state dict: checkpoints of one process and of many are interchangeable.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from protocon.base import distributed


def synchronise_norms(network: nn.Module, device: torch.device) -> nn.Module:
    """Let every BatchNorm of a network see all processes' rows; parameters and buffers stay the same objects."""
    if device.type == "cuda":
        from timm import layers

        # timm's, which knows its own layers that have an activation inside.
        converted: nn.Module = layers.convert_sync_batchnorm(network)  # type: ignore[attr-defined,no-untyped-call]
        return converted
    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, _BatchNorm) and not isinstance(child, SynchronisedBatchNorm):
                setattr(module, name, SynchronisedBatchNorm.of(child))
    return network


@torch.no_grad()
def average_statistics(network: nn.Module) -> None:
    """Replace each BatchNorm's running statistics by their mean over processes, where norms are not synchronised."""
    for module in network.modules():
        if isinstance(module, _BatchNorm) and module.running_mean is not None and module.running_var is not None:
            module.running_mean.copy_(distributed.mean(module.running_mean))
            module.running_var.copy_(distributed.mean(module.running_var))


class SynchronisedBatchNorm(_BatchNorm):
    """BatchNorm of any shape (n, C, …) whose mean and variance are over all processes' rows.

    Processes may hold different numbers of rows. Evaluation mode is BatchNorm's own and does not communicate.
    """

    @classmethod
    def of(cls, norm: _BatchNorm) -> "SynchronisedBatchNorm":
        """The synchronised form of a BatchNorm layer, with the activation that timm's layers have inside."""
        own = cls(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        own._parameters = norm._parameters
        own._buffers = norm._buffers
        own._modules = norm._modules
        own.train(norm.training)
        return own

    def _check_input_dim(self, x: Tensor) -> None:
        if x.dim() < 2:
            raise ValueError(f"expected (n, C, …), got a tensor of shape {tuple(x.shape)}")

    def forward(self, x: Tensor) -> Tensor:
        """Normalised x; in training mode the running statistics move."""
        if not self.training or distributed.world_size() == 1:
            out = super().forward(x)
        else:
            self._check_input_dim(x)
            mean, variance, count = _statistics(x)
            if self.track_running_stats:
                self._follow(mean, variance, count)
            out = _Normalise.apply(x, self.weight, self.bias, mean, variance, count, self.eps)
        for name in ("drop", "act"):  # in this order in timm's BatchNormAct2d
            if name in self._modules:
                out = self._modules[name](out)  # type: ignore[misc]
        return out

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: Tensor) -> None:
        """Move the running statistics; their variance is the unbiased one, as BatchNorm's."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        weight = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        unbiased = variance * (count / (count - 1).clamp(min=1))
        self.running_mean.mul_(1 - weight).add_(mean.to(self.running_mean.dtype), alpha=weight)
        self.running_var.mul_(1 - weight).add_(unbiased.to(self.running_var.dtype), alpha=weight)


def _spread(vector: Tensor, x: Tensor) -> Tensor:
    """(C,) to (1, C, 1, …), to broadcast with x."""
    return vector.view(1, -1, *(1,) * (x.dim() - 2))


def _other_dims(x: Tensor) -> list[int]:
    return [0, *range(2, x.dim())]


def _precise(x: Tensor) -> Tensor:
    """Half-precision numbers as float32; others as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@torch.no_grad()
def _statistics(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and biased variance (C,) over all processes' rows, and how many values each is over (a scalar).

    Each process's mean and squared deviations from it are combined by Chan's formula: sums of squares would cancel.
    """
    own = _precise(x)
    values = own.numel() // own.shape[1]
    mean = own.sum(_other_dims(own)) / max(1, values)
    deviations = (own - _spread(mean, own)).square().sum(_other_dims(own))
    parts = distributed.all_gather(torch.stack([mean, deviations, torch.full_like(mean, values)]))
    means, deviations, counts = parts[:, 0], parts[:, 1], parts[:, 2]
    count = counts[:, 0].sum()
    whole = (means * counts).sum(0) / count
    variance = (deviations + counts * (means - whole).square()).sum(0) / count
    return whole, variance, count


class _Normalise(torch.autograd.Function):
    """(x − mean) / √(variance + ε) · weight + bias, and its gradient through all processes' statistics."""

    @staticmethod
    def forward(
        ctx: "_Context",
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        count: Tensor,
        eps: float,
    ) -> Tensor:
        inverse = (variance + eps).rsqrt()
        ctx.save_for_backward(x, weight, mean, inverse, count)  # type: ignore[arg-type]
        return F.batch_norm(x, mean, variance, weight, bias, training=False, eps=eps)

    @staticmethod
    def backward(
        ctx: "_Context", gradient: Tensor
    ) -> tuple[Tensor, Tensor | None, Tensor | None, None, None, None, None]:
        x, weight, mean, inverse, count = ctx.saved_tensors
        dims = _other_dims(x)
        dy = _precise(gradient)
        normalised = (_precise(x) - _spread(mean, x)) * _spread(inverse, x)
        own = torch.stack([dy.sum(dims), (dy * normalised).sum(dims)])  # the gradients of bias and weight
        total = own.clone()
        dist.all_reduce(total)
        total = total / count
        scale = inverse if weight is None else inverse * weight.to(inverse.dtype)
        dx = (dy - _spread(total[0], x) - normalised * _spread(total[1], x)) * _spread(scale, x)
        own_bias, own_weight = (None, None) if weight is None else own.to(weight.dtype)
        return dx.to(x.dtype), own_weight, own_bias, None, None, None, None


class _Context(torch.autograd.function.FunctionCtx):
    saved_tensors: tuple[Tensor, Tensor | None, Tensor, Tensor, Tensor]
