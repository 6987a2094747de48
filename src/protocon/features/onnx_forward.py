"""An encoder's forward pass through onnxruntime: the same features on a CPU in little more than half the time.

The encoder is written down as an ONNX model (`onnx_lite`), or exported by torch if it is another one, and compared with
itself before it is used. Where anything is missing or differs, PyTorch computes the features.
"""

import tempfile
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from protocon.features.fold import fold_norms
from protocon.features.onnx_lite import lite_onnx

ENGINE = "onnxruntime"
_TOLERANCE = 1e-4
"""Largest difference from PyTorch relative to the largest feature; rounding is a tenth of it."""


def available() -> bool:
    """Whether the packages that this needs are installed; imports none of them."""
    return all(find_spec(name) is not None for name in ("onnx", "onnxruntime"))


class OnnxForward:
    """Images (n, C, H, W) float32 → features (n, D) float32, on one thread; any number of threads may call it.

    One thread per call makes the result independent of the number of cores.

    Args:
        content: the exported model.
    """

    def __init__(self, content: bytes) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def __call__(self, images: Tensor) -> Tensor:
        """Features of a batch."""
        found: np.ndarray = self._session.run(None, {"x": images.contiguous().numpy()})[0]
        return torch.from_numpy(found)


def onnx_forward(module: nn.Module, example: Tensor) -> Callable[[Tensor], Tensor] | None:
    """The module through onnxruntime, or None where that is not possible or gives other features.

    Args:
        module: in evaluation mode, on the CPU.
        example: a batch that it takes.
    """
    if not available():
        return None
    shape = tuple(example.shape[1:])
    written = _as_good(module, example, lambda: lite_onnx(module, shape))
    return written or _as_good(module, example, lambda: _exported(fold_norms(module, example), example))


def _as_good(module: nn.Module, example: Tensor, make: Callable[[], bytes | None]) -> OnnxForward | None:
    """The model that `make` gives through onnxruntime, if there is one and it gives the module's features."""
    try:
        content = make()
        if content is None:
            return None
        forward = OnnxForward(content)
        found = forward(example)
    except Exception:  # the exporter and the runtime have errors of many kinds, and PyTorch can do the work instead
        return None
    with torch.inference_mode():
        expected = module(example).float()
    close = (expected - found).abs().max() <= _TOLERANCE * expected.abs().max()
    return forward if bool(close) else None


def _exported(module: nn.Module, example: Tensor) -> bytes:
    """The module as an ONNX file, by the older exporter: it takes a second where the newer one takes ten."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # the exporter's own, about its own parts
        file = Path(folder) / "encoder.onnx"
        torch.onnx.export(
            module,
            (example.contiguous(),),
            file,
            dynamo=False,
            input_names=["x"],
            output_names=["features"],
            dynamic_axes={"x": {0: "n"}, "features": {0: "n"}},
        )
        return file.read_bytes()
