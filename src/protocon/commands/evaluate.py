"""`protocon evaluate`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from protocon.base.say import say
from protocon.commands.console import emit
from protocon.commands.options import AsJson, Debug
from protocon.runs import layout

_LAST = (
    "This is the model as it was saved, after the last epoch. `train` and `compare` give the mean over the last ten "
    "epochs{}, which depends less on where training happened to end."
)
_OTHER = (
    "`compare` gives another figure: the mean over the last ten epochs, on the test images of its own data, with "
    "labels that it draws itself. Here the saved model looks at the labelled images of this folder. Images that the "
    "run was trained on make the figure too high."
)


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder, or a model.safetensors.")],
    folder: Annotated[
        Path | None,
        typer.Argument(help="Other images whose labels are known: a folder, zip or npz; default: the run's test set."),
    ] = None,
    labels: Annotated[Path | None, typer.Option("--labels", help="Table of labels for that folder.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Accuracy of a finished run on its test set, or on another folder of images with labels."""
    from protocon.errors import ConfigError
    from protocon.runs.run_accuracy import evaluate_folder, evaluate_run
    from protocon.runs.trained import load_run

    if folder is None and labels is not None:
        raise ConfigError(f"--labels {labels} is for another folder; name that folder too: evaluate RUN FOLDER")
    trained = load_run(run)
    result = evaluate_run(trained) if folder is None else evaluate_folder(trained, folder, labels)
    content: dict[str, Any] = {"run": str(run), **result}
    content["why_compare_differs"] = _LAST.format(_mean_of_last(run)) if folder is None else _OTHER
    emit(as_json, content, lambda console: _show(console, content))


def _mean_of_last(run: Path) -> str:
    """The run's own figure, where it has one."""
    try:
        accuracy = json.loads((run / layout.RESULT).read_text(encoding="utf-8"))["test_accuracy"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return "" if accuracy is None else f" (of this run: {100 * accuracy:.2f} %)"


def _show(console: Console, content: dict[str, Any]) -> None:
    from protocon.report.intervals import wilson_interval

    if "accuracy" in content:
        accuracy, images = content["accuracy"], content["images"]
        say(console, content["recognised"])
        low, high = wilson_interval(accuracy, images)
        say(
            console,
            f"{100 * accuracy:.2f} % of {images:,} labelled images are right "
            f"(95 % interval {100 * low:.0f} to {100 * high:.0f} %)",
        )
    else:
        say(console, f"test accuracy {100 * content['test_accuracy']:.2f} % on {content['test_images']} images")
    for label, value in content["accuracy_by_class"].items():
        say(console, f"  {label}: {100 * value:.1f} %")
    if unknown := content.get("unknown_classes"):
        named = ", ".join(f"{name} ({count})" for name, count in unknown.items())
        say(console, f"left out, because the run does not know their class: {named}")
    say(console, content["why_compare_differs"])
