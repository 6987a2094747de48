"""What a method may ask of the trainer besides one network and the usual views."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from protocon.data.loading.support import Support
from protocon.errors import ConfigError
from protocon.networks.ema import Statistics
from protocon.types import Progress

__all__ = ["Crops", "FixedTargets", "Momentum", "Support"]


@dataclass(frozen=True)
class Crops:
    """Random resized crops of every unlabelled image, all of one size (multi-crop, as in SwAV and DINO).

    Embeddings have no pixels: there each crop is another view of the kind, with all features.
    """

    kind: Literal["weak", "strong", "coloured"]
    """Crop and flip alone; with what the run's strong views do; or with SimCLR's colours, whatever strong views are."""
    count: int
    """Crops per image."""
    size: float | int = 1.0
    """Side in pixels (an int), or as a share of the image's (a float)."""
    scale: tuple[float, float] = (0.2, 1.0)
    """Lowest and highest share of the image's area that a crop shows."""
    blur: tuple[float, ...] = ()
    """Probability that each of a strong view's crops is blurred, where images are large enough; empty: the view's."""
    strength: float | None = None
    """Of SimCLR's colours; None: the run's `simclr_strength`."""
    solarise: tuple[float, ...] = ()
    """Probability that bright pixels are inverted, for each of a strong view's crops; empty: never."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"{self.count} crops per image: expected 1 or more")
        for name, chances in (("blur", self.blur), ("solarise", self.solarise)):
            if chances and (len(chances) != self.count or not all(0 <= chance <= 1 for chance in chances)):
                raise ConfigError(f"{name} of {self.count} crops: expected as many probabilities, got {chances}")
        if self.size <= 0 or (isinstance(self.size, float) and self.size > 1.0):
            raise ConfigError(f"crops of size {self.size}: expected pixels, or a share of the side in (0, 1]")

    def side(self, image_side: int) -> int:
        """Side in pixels for images of this side."""
        return self.size if isinstance(self.size, int) else max(1, round(self.size * image_side))


@dataclass(frozen=True)
class Momentum:
    """A copy whose weights follow a network's by an exponential mean; the trainer keeps, updates and saves it."""

    decay: Callable[[Progress], float]
    """Share of the copy's weights that a step keeps: a pure function of where training is."""
    of: str = "network"
    """Name of the network that it follows."""
    statistics: Statistics = "copied"
    """Where its normalisation statistics come from."""


@dataclass(frozen=True)
class FixedTargets:
    """Soft labels that training does not change."""

    probs: Tensor
    """Of every unlabelled image, (N, C)."""
    weight: float
    """λ_u, of the loss that they make."""


@dataclass(frozen=True)
class Facts:
    """What a method's `auto` settings follow from."""

    unlabelled: int
    """N."""
    classes: int
    """C."""
    balanced: bool = False
    """Whether the data are a benchmark of which so many labels per class were drawn."""
    frozen: bool = False
    """Whether the encoder stays as it is."""
