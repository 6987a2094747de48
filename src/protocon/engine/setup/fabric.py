"""Fabric for one process, or for the processes that torchrun started.

Lightning's Fabric takes seconds to import, and has nothing to do for one process on a CPU in full precision: there
`OneProcess` takes its place.
"""

import inspect
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from protocon.errors import ConfigError
from protocon.settings.config import RunConfig

if TYPE_CHECKING:
    from lightning_fabric import Fabric as LightningFabric
    from lightning_fabric.strategies.ddp import DDPStrategy

Fabric: TypeAlias = "LightningFabric | OneProcess"
"""What a run is told to compute with."""

_T = TypeVar("_T")


class OneProcess:
    """What a run asks of Fabric, for one process on the CPU in full precision: there is nobody to share with."""

    device = torch.device("cpu")

    def broadcast(self, value: _T, src: int = 0) -> _T:  # noqa: ARG002
        """The value itself."""
        return value

    def setup(self, network: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        """Both, as they are."""
        return network, optimizer

    def backward(self, loss: Tensor) -> None:
        """Compute gradients."""
        loss.backward()  # type: ignore[no-untyped-call]

    def clip_gradients(self, network: nn.Module, optimizer: Optimizer, *, max_norm: float) -> Tensor:  # noqa: ARG002
        """Shorten the gradient to this length; one that is not finite is an error.

        Args:
            network: with gradients.
            optimizer: of the network, as Fabric's own method takes it.
            max_norm: largest length.
        """
        return nn.utils.clip_grad_norm_(network.parameters(), max_norm, error_if_nonfinite=True)

    def no_backward_sync(self, network: nn.Module) -> AbstractContextManager[None]:  # noqa: ARG002
        """Gradients are always left in this process."""
        return nullcontext()


def build_fabric(config: RunConfig) -> Fabric:
    """Devices and precision as configured; DDP where torchrun set a world size over one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if world == 1 and config.run.precision == "32-true" and _means_cpu(config.run.accelerator):
        return OneProcess()
    from lightning_fabric import Fabric as LightningFabric
    from lightning_fabric.utilities.exceptions import MisconfigurationException

    try:
        fabric = LightningFabric(
            accelerator=config.run.accelerator,
            devices=local,
            num_nodes=max(1, world // local),
            strategy=_ddp(config.run.timeout_minutes) if world > 1 else "auto",
            precision=config.run.precision,  # type: ignore[arg-type]
        )
    except (ValueError, RuntimeError, MisconfigurationException) as error:
        raise ConfigError(
            f"run.accelerator={config.run.accelerator}, run.precision={config.run.precision}"
            f"{f', {local} processes on this machine' if world > 1 else ''}: {error}"
        ) from error
    fabric.launch()
    return fabric


def _means_cpu(accelerator: str) -> bool:
    """Whether Fabric would compute on the CPU."""
    if accelerator != "auto":
        return accelerator == "cpu"
    return not (torch.cuda.is_available() or torch.backends.mps.is_available() or find_spec("torch_xla"))


def _ddp(timeout_minutes: float) -> "DDPStrategy":
    from lightning_fabric.strategies.ddp import DDPStrategy
    from torch.nn.parallel import DistributedDataParallel

    # Buffers are normalisation statistics, which synchronised norms already share. The option's name depends on torch.
    known = inspect.signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {name: False}
    return DDPStrategy(timeout=timedelta(minutes=timeout_minutes), **options)


def precision_state(fabric: Fabric) -> dict[str, Any]:
    """How half precision scales its loss, for a checkpoint; empty but for 16-mixed."""
    return {} if isinstance(fabric, OneProcess) else dict(fabric.strategy.precision.state_dict())


def load_precision(fabric: Fabric, state: Mapping[str, Any]) -> None:
    """Put back what `precision_state` gave."""
    if state and not isinstance(fabric, OneProcess):
        fabric.strategy.precision.load_state_dict(dict(state))
