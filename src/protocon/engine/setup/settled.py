"""A run whose settings leave nothing open, before anything of it is computed."""

from dataclasses import dataclass

from protocon.data.imageset import DataBundle
from protocon.data.labels.label_split import Split
from protocon.settings.auto import Resolved
from protocon.settings.resolved_config import ResolvedConfig


@dataclass(frozen=True)
class Settled:
    """Settings, data and labels."""

    resolved: Resolved
    bundle: DataBundle
    split: Split

    @property
    def config(self) -> ResolvedConfig:
        """The config without `auto`."""
        return self.resolved.config
