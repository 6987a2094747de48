"""FORMATS: how a run becomes the bytes of a file. A new one is one function and one line here."""

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import torch
from torch.jit._trace import TracerWarning

from protocon.errors import ConfigError
from protocon.export.portable import FEATURES, INPUT, OUTPUT, Portable, describe_run, example_inputs
from protocon.runs.model_file import METADATA, model_bytes
from protocon.runs.trained import TrainedRun

Format = Callable[[TrainedRun], bytes]


def to_safetensors(run: TrainedRun) -> bytes:
    """Weights of the whole network with everything that `load_run` needs, and the description for other programs."""
    return model_bytes(
        run.network,
        config=run.config,
        class_names=run.class_names,
        shape=run.shape,
        facts={"use": describe_run(run)},
    )


def to_onnx(run: TrainedRun) -> bytes:
    """One ONNX file, weights inside, any number of images at a time."""
    missing = [name for name in ("onnx", "onnxscript") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"ONNX needs {' and '.join(missing)}; install them with pip install 'protocon[export]'")
    name = INPUT if len(run.shape) == 3 else FEATURES
    with quiet_exporter():
        program = torch.onnx.export(
            Portable(run),
            (example_inputs(run, 2),),
            dynamo=True,
            input_names=[name],
            output_names=[OUTPUT],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            verbose=False,
        )
    if program is None:
        raise ConfigError("the ONNX exporter gave no model")
    program.model.metadata_props[METADATA] = json.dumps(describe_run(run))
    program.model.producer_name = "protocon"
    content: bytes = program.model_proto.SerializeToString()
    return content


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Without what the ONNX exporter warns and logs of its own parts: nobody can act on it."""
    log = logging.getLogger("onnxscript")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def to_torchscript(run: TrainedRun) -> bytes:
    """A traced module that PyTorch runs without Python."""
    with torchscript_without_warnings(), torch.no_grad():
        traced = torch.jit.trace(Portable(run), example_inputs(run, 2))  # type: ignore[no-untyped-call]
        buffer = io.BytesIO()
        torch.jit.save(traced, buffer, _extra_files={"protocon.json": json.dumps(describe_run(run))})
    return buffer.getvalue()


@contextmanager
def torchscript_without_warnings() -> Iterator[None]:
    """TorchScript is deprecated and warns at every call, but C++ and mobile programs still read it."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, FutureWarning, TracerWarning):
            warnings.simplefilter("ignore", category)
        yield


FORMATS: dict[str, tuple[Format, str]] = {
    "onnx": (to_onnx, ".onnx"),
    "safetensors": (to_safetensors, ".safetensors"),
    "torchscript": (to_torchscript, ".pt"),
}
"""Name → what makes the bytes, and the suffix of the file."""
