"""`protocon export`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug


def export(
    run: Annotated[Path, typer.Argument(help="Run folder, or a model.safetensors.")],
    file_format: Annotated[str, typer.Option("--format", help="onnx, safetensors or torchscript.")] = "onnx",
    out: Annotated[Path | None, typer.Option("--out", help="The file; default: in the run folder.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write a run's network to one file that takes bytes of images and gives class probabilities.

    The file is compared with the run before it is written; one that disagrees is refused.
    """
    from protocon.export.export_run import export_run

    result = export_run(run, file_format=file_format, out=out)

    def show(console: Console) -> None:
        shape = " × ".join(map(str, result["shape"]))
        say = [f"{result['file']}: {result['input']} {result['type']} {shape} → {result['output']}"]
        say.append(f"before it: {result['preparation']}")
        if result["verified"]:
            say.append(f"agrees with the run: probabilities differ by at most {result['largest_difference']:.1e}")
        else:
            say.append("not compared with the run: onnxruntime is not installed (pip install 'protocon[export]')")
        for line in say:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    emit(as_json, result, show)
