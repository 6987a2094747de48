"""`protocon export`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug

_LABELS = ("folders", "huggingface", "label-studio", "fiftyone")


def export(
    run: Annotated[Path, typer.Argument(help="Run folder, or a model.safetensors.")],
    file_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="The network: onnx, safetensors, torchscript. Accepted labels with their images: folders (one per "
            "class), huggingface, label-studio, fiftyone.",
        ),
    ] = "onnx",
    out: Annotated[Path | None, typer.Option("--out", help="The file or folder; default: in the run folder.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write a run's network, or its accepted labels, for other programs.

    A network becomes one file that takes bytes of images and gives class probabilities; it is compared with the run
    before it is written, and one that disagrees is refused.
    """
    if file_format in _LABELS:
        _export_labels(run, file_format, out, as_json)
        return
    from protocon.export.export_run import export_run

    result = export_run(run, file_format=file_format, out=out)

    def show(console: Console) -> None:
        shape = " × ".join(map(str, result["shape"]))
        lines = [f"{result['file']}: {result['input']} {result['type']} {shape} → {result['output']}"]
        lines.append(f"before it: {result['preparation']}")
        if result["verified"]:
            lines.append(f"agrees with the run: probabilities differ by at most {result['largest_difference']:.1e}")
        else:
            lines.append("not compared with the run: onnxruntime is not installed (pip install 'protocon[export]')")
        for line in lines:
            say(console, line)

    emit(as_json, result, show)


def label_studio_steps(folder: str, root: str) -> list[str]:
    """What to do in Label Studio so that it shows tasks and images.

    Args:
        folder: the export.
        root: the folder of the images.
    """
    served = f"LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={shlex.quote(str(Path(root).parent))}"
    return [
        "Label Studio reads the images from disk. Start it with:",
        f"  LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true {served} label-studio",
        f"Make a project with the labelling interface {folder}/labels.xml. In its settings, under Cloud Storage, add a "
        f"source storage of local files with the path {root} (it need not be synchronised). "
        f"Then import {folder}/tasks.json",
    ]


def _export_labels(run: Path, file_format: str, out: Path | None, as_json: bool) -> None:
    from protocon.export.label_formats import export_labels

    result = export_labels(run, file_format=file_format, out=out)

    def show(console: Console) -> None:
        made = result["images"] - result["given"]
        unchecked = f"{result['unchecked']:,} sure but unchecked and " if result["unchecked"] else ""
        lines = [
            f"{result['folder']}: {result['images']:,} images, {result['given']:,} with your labels and {made:,} with "
            f"accepted ones; {unchecked}{result['left_out'] - result['unchecked']:,} to look at are left out"
        ]
        if file_format == "label-studio":
            lines += label_studio_steps(result["folder"], result["root"])
        for line in lines:
            say(console, line)

    emit(as_json, result, show)
