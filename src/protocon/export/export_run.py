"""A run as one file of another format, verified before it is written."""

from pathlib import Path
from typing import Any

from protocon.base.atomic import write_bytes
from protocon.errors import ConfigError, RunError
from protocon.export.formats import FORMATS
from protocon.export.portable import describe_run
from protocon.export.verify import largest_difference
from protocon.runs.trained import load_run


def export_run(run: str | Path, *, file_format: str = "onnx", out: str | Path | None = None) -> dict[str, Any]:
    """Write the trained network of a run to one file that includes its pre-processing, and return a summary.

    Args:
        run: run folder, or a model.safetensors.
        file_format: onnx, safetensors or torchscript.
        out: the file; by default `model.onnx` (…) in the run folder. Never overwritten.

    Examples:
        With the run of the example of `fit`:

        >>> from protocon import export_run
        >>> done = export_run("runs/digits", file_format="safetensors", out="digits.safetensors")
        >>> done["verified"], done["file"]
        (True, 'digits.safetensors')
    """
    if file_format not in FORMATS:
        raise ConfigError(
            f"unknown format {file_format!r}; expected one of {', '.join(FORMATS)} for the network, or folders, "
            "huggingface, label-studio, fiftyone for accepted labels"
        )
    make, suffix = FORMATS[file_format]
    trained = load_run(run)
    file = Path(out) if out is not None else _default_file(Path(run), suffix)
    if file.exists():
        raise RunError(f"{file} exists already; give another name with --out, or remove it")
    if not file.parent.is_dir():
        raise RunError(f"the folder {file.parent} does not exist; create it, or give another name with --out")
    content = make(trained)
    difference = largest_difference(trained, file_format, content)
    write_bytes(file, content)
    return {
        "run": str(run),
        "format": file_format,
        "file": str(file),
        "bytes": len(content),
        "verified": difference is not None,
        "largest_difference": difference,
        **describe_run(trained),
    }


def _default_file(run: Path, suffix: str) -> Path:
    if suffix == ".safetensors":  # the run folder has its own under that name
        return run / "exported.safetensors" if run.is_dir() else run.with_name("exported.safetensors")
    return run / f"model{suffix}" if run.is_dir() else run.with_suffix(suffix)
