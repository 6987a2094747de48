"""Fabric for one process, or for the processes that torchrun started."""

import inspect
import os
from datetime import timedelta
from typing import Any

from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.utilities.exceptions import MisconfigurationException
from torch.nn.parallel import DistributedDataParallel

from protocon.errors import ConfigError
from protocon.settings.config import RunConfig


def build_fabric(config: RunConfig) -> Fabric:
    """Devices and precision as configured; DDP where torchrun set a world size over one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    try:
        fabric = Fabric(
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


def _ddp(timeout_minutes: float) -> DDPStrategy:
    # Buffers are normalisation statistics, which synchronised norms already share. The option's name depends on torch.
    known = inspect.signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {name: False}
    return DDPStrategy(timeout=timedelta(minutes=timeout_minutes), **options)
