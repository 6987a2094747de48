"""Options that several commands share, and the config they make."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from protocon.errors import ConfigError
from protocon.settings.config import RunConfig, build_config

Data = Annotated[str | None, typer.Option("--data", help="Name of a data set, or hf:NAME for one of Hugging Face.")]
Root = Annotated[Path | None, typer.Option("--root", help="Folder or file that holds the data.")]
Labels = Annotated[Path | None, typer.Option("--labels", help="CSV with file,label rows.")]
PerClass = Annotated[int | None, typer.Option("--labels-per-class", min=1, help="Labels drawn of each class.")]
Percent = Annotated[float | None, typer.Option("--labels-percent", help="Share of labels drawn, in percent.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the split and of everything else.")]
Recipe = Annotated[str | None, typer.Option("--recipe", help="A recipe's name, or a YAML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(help="A folder (or zip, npz) of one's own data, and settings as key=value.", show_default=False),
]
EncoderName = Annotated[str | None, typer.Option("--encoder", help="wrn-28-2, or any timm name.")]
Weights = Annotated[Path | None, typer.Option("--weights", help="File with the encoder's weights.")]
Frozen = Annotated[
    bool | None,
    typer.Option(
        "--frozen/--fine-tune",
        help="Leave the encoder's weights as they are (by default ImageNet's, for photographs), or train them too.",
    ),
]
ImageSize = Annotated[int | None, typer.Option("--image-size", min=1, help="Side of the images in pixels.")]
Epochs = Annotated[int | None, typer.Option("--epochs", min=1, help="Passes over the unlabelled images.")]
TimeBudget = Annotated[
    str | None, typer.Option("--time-budget", help="Train as long as fits: 90s, 20m, 2h. Instead of --epochs.")
]

Compile = Annotated[
    bool | None, typer.Option("--compile", help="Compile the network: a slow start, shorter steps.", show_default=False)
]
Precision = Annotated[str | None, typer.Option("--precision", help="32-true, bf16-mixed, 16-mixed or 64-true.")]


def config_from(
    *,
    data: str | None,
    root: Path | None,
    labels: Path | None,
    labels_per_class: int | None,
    labels_percent: float | None,
    method: str | None,
    seed: int | None,
    recipe: str | None,
    overrides: Sequence[str] | None,
    encoder: str | None = None,
    weights: Path | None = None,
    frozen: bool | None = None,
    image_size: int | None = None,
    epochs: int | None = None,
    time_budget: str | None = None,
    compile_network: bool | None = None,
    precision: str | None = None,
) -> RunConfig:
    """The config that a command's options and `key=value` texts ask for."""
    if time_budget is not None and epochs is not None:
        raise ConfigError("--epochs and --time-budget both say how long to train; leave one out")
    chosen: dict[str, Any] = {
        "name": data,
        "root": root,
        "labels": labels,
        "labels_per_class": labels_per_class,
        "labels_percent": labels_percent,
        "image_size": image_size,
    }
    settings: dict[str, Any] = {
        "data": _given(chosen),
        "network": _given({"encoder": encoder, "weights": weights, "frozen": frozen}),
        "optim": _given({"epochs": epochs, "time_budget": time_budget}),
        "run": _given({"seed": seed, "compile": compile_network, "precision": precision}),
    }
    if method is not None:
        settings["method_name"] = method
    return build_config(recipe=recipe, settings=settings, overrides=overrides or ())


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}
