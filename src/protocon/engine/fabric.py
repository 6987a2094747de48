"""Fabric for one process, or for the processes that torchrun started."""

import os

from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from protocon.config import RunConfig
from protocon.errors import ConfigError


def build_fabric(config: RunConfig) -> Fabric:
    """Devices and precision as configured; DDP where torchrun set a world size over one."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    try:
        fabric = Fabric(
            accelerator=config.run.accelerator,
            devices=local,
            num_nodes=max(1, world // local),
            # Buffers are normalisation statistics, which SyncBatchNorm already shares.
            strategy=DDPStrategy(broadcast_buffers=False) if world > 1 else "auto",
            precision=config.run.precision,  # type: ignore[arg-type]
        )
    except (ValueError, RuntimeError) as error:
        raise ConfigError(
            f"run.accelerator={config.run.accelerator}, run.precision={config.run.precision}: {error}"
        ) from error
    fabric.launch()
    return fabric
