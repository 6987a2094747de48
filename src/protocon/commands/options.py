"""The options that commands share: one table from an option to its setting.

A command that takes data, a network or training settings asks for them by their groups and gets one `Chosen`:

    @takes(DATA, NETWORK, TRAINING)                   # or: @takes(DATA, without=("--seed",))
    def pick(chosen: ChosenData, count: Count = 20, as_json: AsJson = False, debug: Debug = False) -> None:
        inputs = chosen.resolve()                     # recognises a folder that was named on its own
        config = inputs.config()                      # recipe, then options, then key=value, validated

The parameter `chosen` becomes a positional argument (a folder and key=value settings) and the options of the groups, in
its place in the signature. Parameters before and after it are the command's own, as typer has them.

To add an option, add its line to a group: every command that takes the group has it. To add a command, write its file
and add it to the list in `cli.py`.

Modules of commands import nothing large at the top (no torch, no settings, no data sources): all of them are imported
for `protocon --help`, which answers at once. Import what the command needs inside its function.
"""

import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from protocon.commands.completion import data_sets, methods, precisions, recipes
from protocon.commands.data_argument import DataArgument, find_inputs
from protocon.errors import ConfigError
from protocon.runs import layout
from protocon.runs.model_head import model_facts

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.", rich_help_panel="Output"),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.", rich_help_panel="Output")]


@dataclass(frozen=True)
class Option:
    """One option of the command line and the setting that it sets."""

    flag: str
    """As typer takes it: `--seed`, or `--frozen/--fine-tune`."""
    setting: str
    """`section.key`, `method_name`, or `recipe`, where all the other settings start from."""
    kind: type
    help: str
    minimum: int | None = None
    completion: Callable[[str], list[Any]] | None = None
    convert: Callable[[Any], Any] | None = None
    """From what was typed to the setting's value, where these differ."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Every spelling."""
        return tuple(self.flag.split("/"))

    @property
    def name(self) -> str:
        """Its parameter in Python."""
        return self.flags[0].removeprefix("--").replace("-", "_")

    def shown(self, value: Any) -> str:
        """As it was typed."""
        if isinstance(value, bool):
            return self.flags[0] if value else self.flags[-1]
        return f"{self.flags[0]} {value}"

    def parameter(self, panel: str) -> inspect.Parameter:
        """What typer reads."""
        information = typer.Option(
            self.flag,
            min=self.minimum,
            help=self.help,
            rich_help_panel=panel,
            show_default=False,
            autocompletion=self.completion,
        )
        annotation = Annotated[self.kind | None, information]  # type: ignore[name-defined]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


@dataclass(frozen=True)
class OptionGroup:
    """Options under one heading of `--help`."""

    title: str
    options: tuple[Option, ...]


def _weights_of(run: Path) -> Path:
    return run / layout.MODEL if run.is_dir() else run


DATA = OptionGroup(
    "Data",
    (
        Option("--data", "data.name", str, "Name of a data set, or hf:NAME for one of Hugging Face.", None, data_sets),
        Option("--root", "data.root", Path, "Folder or file that holds the data."),
        Option("--labels", "data.labels", Path, "CSV file with rows of file,label."),
        Option("--labels-per-class", "data.labels_per_class", int, "Draw this many labels per class.", 1),
        Option("--labels-percent", "data.labels_percent", float, "Draw this percentage of the labels."),
        Option("--image-size", "data.image_size", int, "Side of the images in pixels.", 1),
        Option("--seed", "run.seed", int, "Seed of the drawn labels and of everything else.", 0),
        Option("--recipe", "recipe", str, "Settings to start from: a recipe's name, or a YAML file.", None, recipes),
    ),
)
NETWORK = OptionGroup(
    "Network",
    (
        Option(
            "--encoder", "network.encoder", str, "Name of the encoder: dinov2-small, lite2, wrn-28-2, or any of timm."
        ),
        Option("--weights", "network.weights", Path, "File with the encoder's weights."),
        Option(
            "--init",
            "network.weights",
            Path,
            "Start from the encoder of a run folder or of a weights file.",
            convert=_weights_of,
        ),
        Option(
            "--frozen/--fine-tune",
            "network.frozen",
            bool,
            "Keep the weights of a pretrained encoder as they are (the default for images of your own, with ImageNet's "
            "weights), or train them too (from the installed ones where none are named).",
        ),
        Option(
            "--from-scratch",
            "network.frozen",
            bool,
            "Train the whole network from random weights, without a pretrained encoder.",
            convert=operator.not_,
        ),
    ),
)
TRAINING = OptionGroup(
    "Training",
    (
        Option("--method", "method_name", str, "protocon, or a baseline.", None, methods),
        Option("--epochs", "optim.epochs", int, "Passes over the unlabelled images.", 1),
        Option(
            "--time-budget",
            "optim.time_budget",
            str,
            "Train for as long as this allows, instead of --epochs: 90s, 20m, 2h.",
        ),
        Option("--compile/--no-compile", "run.compile", bool, "Compile the network: a slow start, shorter steps."),
        Option("--precision", "run.precision", str, "32-true, bf16-mixed, 16-mixed or 64-true.", None, precisions),
    ),
)
GROUPS = (DATA, NETWORK, TRAINING)

_ARGUMENTS = inspect.Parameter(
    "arguments",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FOLDER|KEY=VALUE",
            help="A folder (or zip, npz) of your own data, and settings as key=value.",
            show_default=False,
        ),
    ],
)
_EXCLUSIVE = (
    ("--epochs", "--time-budget", "how long to train"),
    ("--init", "--weights", "what the encoder starts from"),
    ("--init", "--from-scratch", "what the encoder starts from"),
    ("--weights", "--from-scratch", "what the encoder starts from"),
    ("--frozen", "--from-scratch", "what the encoder starts from"),
)


@dataclass(frozen=True)
class ChosenData:
    """What was typed of the shared options and arguments."""

    arguments: tuple[str, ...] = ()
    """A folder and `key=value` settings, not yet told apart."""
    options: Mapping[Option, Any] = field(default_factory=dict)
    """Values of the options that were given."""

    @property
    def given(self) -> list[str]:
        """The options that were given, as they were typed."""
        return [option.shown(value) for option, value in self.options.items()]

    def resolve(self, *, needs_labels: bool = True) -> DataArgument:
        """The settings that the options stand for, and where the data is; by default data without labels is refused."""
        flags = {option.flags[0]: option.shown(value) for option, value in self.options.items()}
        for first, second, what in _EXCLUSIVE:
            if first in flags and second in flags:
                raise ConfigError(f"{flags[first]} and {flags[second]} both say {what}; give one of them")
        settings: dict[str, Any] = {}
        for option, value in self.options.items():
            section, _, key = option.setting.rpartition(".")
            place = settings.setdefault(section, {}) if section else settings
            place[key] = option.convert(value) if option.convert else value
        _follow_run(settings)
        recipe = settings.pop("recipe", None)
        if flags.get("--frozen") == "--fine-tune" and recipe is None:
            _weights_to_tune(settings, self.arguments)
        return find_inputs(self.arguments, settings=settings, recipe=recipe, needs_labels=needs_labels)


def _follow_run(settings: dict[str, Any]) -> None:
    """Where the encoder of a run is taken over, its name is known; where it stays as it is, its image size too."""
    network = settings.get("network", {})
    facts = model_facts(Path(network["weights"])) if network.get("weights") else {}
    own, shape = facts.get("config", {}).get("network", {}), facts.get("shape", [])
    if not own or own.get("frozen"):
        return
    network.setdefault("encoder", own.get("encoder", "auto"))
    if network.get("frozen") and len(shape) == 3:
        settings.setdefault("data", {}).setdefault("image_size", shape[-1])


def _weights_to_tune(settings: dict[str, Any], arguments: tuple[str, ...]) -> None:
    """What `--fine-tune` starts from where no weights are named: an installed package's; an error where there are none.

    Args:
        settings: what the options say; the weights are added.
        arguments: may name encoder or weights too, as key=value.
    """
    network = settings["network"]
    typed = {key.removeprefix("network."): value for key, sign, value in (a.partition("=") for a in arguments) if sign}
    if network.get("weights") is not None or {"weights", "pretrained"} & set(typed):
        return
    from protocon.data.registry import OWN
    from protocon.networks import packaged
    from protocon.networks.named import NAMED

    encoder = typed.get("encoder", network.get("encoder", "auto"))
    short = NAMED.get(encoder)
    if short is not None and not short.packaged:
        return  # timm fetches its weights
    own = settings.get("data", {}).get("name") in (None, *OWN)
    found = packaged.installed(encoder if short is None else short.model) if own else None
    if found is None:
        which = "" if encoder == "auto" else f" for --encoder {encoder}"
        raise ConfigError(
            f"--fine-tune trains weights further, but there are none to start from{which}. For images of your own "
            f"install an encoder ({packaged.INSTALL}); or give a file or a run (--weights FILE, --init RUN); or let "
            "timm fetch weights (--encoder resnet18 network.pretrained=true); or train from random weights: "
            "--from-scratch"
        )
    network |= {"encoder": found.encoder, "weights": found.weights()}
    settings.setdefault("data", {}).setdefault("image_size", found.side)


def takes(*groups: OptionGroup, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of these groups, in place of its parameter `chosen`.

    Args:
        groups: of this module.
        without: flags of options that make no sense for the command, such as `--seed`.
    """
    options = {
        option: option.parameter(group.title)
        for group in groups
        for option in group.options
        if not set(option.flags) & set(without)
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(arguments: list[str] | None = None, **given: Any) -> None:
            values = {option: given.pop(option.name) for option in options}
            chosen = {option: value for option, value in values.items() if value is not None}
            command(chosen=ChosenData(tuple(arguments or ()), chosen), **given)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == "chosen":
                parameters += [_ARGUMENTS, *options.values()]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate
