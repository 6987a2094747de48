"""Compare an exported file's output with the run's before it is written."""

import io
import json
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from protocon.errors import RunError
from protocon.export.formats import torchscript_without_warnings
from protocon.export.portable import describe_run, example_inputs
from protocon.runs.trained import TrainedRun, load_run

TOLERANCE = 1e-4
"""Largest difference of a probability that passes."""

_COUNTS = (1, 2, 7)
"""Batch sizes to try: the file must accept any."""


def largest_difference(run: TrainedRun, file_format: str, content: bytes) -> float | None:
    """Largest difference in any probability from the run's own; None where the library that could tell is missing.

    Args:
        run: the trained network.
        file_format: a name of FORMATS.
        content: the exported file.
    """
    if file_format == "onnx" and find_spec("onnxruntime") is None:
        return None
    answer = {"onnx": _ask_onnx, "torchscript": _ask_torchscript, "safetensors": _ask_safetensors}[file_format]
    worst = 0.0
    for count in _COUNTS:
        inputs = example_inputs(run, count)
        expected = run.predict_proba(inputs)
        came = answer(content, inputs)
        if came.shape != expected.shape:
            raise RunError(f"the exported file returns shape {tuple(came.shape)} for {count} inputs; it is not written")
        worst = max(worst, float((came - expected).abs().max()))
    if not worst <= TOLERANCE:
        raise RunError(
            f"the exported file differs from the run by {worst:.2g} in a probability, more than {TOLERANCE:g}; it is "
            "not written. Try another format, and report this with the encoder's name "
            f"({run.config.network.encoder})"
        )
    if file_format == "onnx":
        _check_metadata(run, content)
    return worst


def _ask_onnx(content: bytes, inputs: Tensor) -> Tensor:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return torch.from_numpy(session.run(None, {name: inputs.numpy()})[0])


def _check_metadata(run: TrainedRun, content: bytes) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    if json.loads(session.get_modelmeta().custom_metadata_map["protocon"]) != describe_run(run):
        raise RunError("the exported file lost its class names; it is not written")


def _ask_torchscript(content: bytes, inputs: Tensor) -> Tensor:
    with torchscript_without_warnings(), torch.no_grad():
        answer: Tensor = torch.jit.load(io.BytesIO(content))(inputs)  # type: ignore[no-untyped-call]
    return answer


def _ask_safetensors(content: bytes, inputs: Tensor) -> Tensor:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        file.write_bytes(content)
        return load_run(file).predict_proba(inputs)
