"""The command line: typer commands, each a thin call."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from protocon.config import RunConfig, build_config, recipe_names, recipe_text, to_yaml
from protocon.data.splitfile import save_split
from protocon.errors import ProtoConError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Label-scarce semi-supervised image classification: ProtoCon and its baselines.",
)

Data = Annotated[str | None, typer.Option("--data", help="Name of a data set.")]
Root = Annotated[Path | None, typer.Option("--root", help="Folder or file that holds the data.")]
Labels = Annotated[Path | None, typer.Option("--labels", help="CSV with file,label rows.")]
PerClass = Annotated[int | None, typer.Option("--labels-per-class", min=1, help="Labels drawn of each class.")]
Percent = Annotated[float | None, typer.Option("--labels-percent", help="Share of labels drawn, in percent.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of the split and of everything else.")]
Recipe = Annotated[str | None, typer.Option("--recipe", help="A recipe's name, or a YAML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout; progress goes to stderr.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="Settings as key=value.", show_default=False)]


def main() -> None:
    """Run the command line: exit code 1 for our errors, 2 for wrong usage."""
    try:
        app()
    except ProtoConError as error:
        if "--debug" in sys.argv:
            raise
        Console(stderr=True).print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


def _emit(as_json: bool, content: dict[str, Any], show: Callable[[Console], None]) -> None:
    """Either one JSON object, or what a person reads."""
    if as_json:
        sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")
    else:
        show(Console())


def _config(
    *,
    data: str | None,
    root: Path | None,
    labels: Path | None,
    labels_per_class: int | None,
    labels_percent: float | None,
    method: str | None,
    seed: int | None,
    recipe: str | None,
    overrides: list[str] | None,
) -> RunConfig:
    chosen: dict[str, Any] = {
        "name": data,
        "root": root,
        "labels": labels,
        "labels_per_class": labels_per_class,
        "labels_percent": labels_percent,
    }
    settings: dict[str, Any] = {
        "data": {key: value for key, value in chosen.items() if value is not None},
        "run": {} if seed is None else {"seed": seed},
    }
    if method is not None:
        settings["method_name"] = method
    return build_config(recipe=recipe, settings=settings, overrides=overrides or ())


@app.command()
def train(
    overrides: Overrides = None,
    data: Data = None,
    root: Root = None,
    labels: Labels = None,
    labels_per_class: PerClass = None,
    labels_percent: Percent = None,
    method: Annotated[str | None, typer.Option("--method", help="protocon, or a baseline.")] = None,
    seed: Seed = None,
    recipe: Recipe = None,
    out: Annotated[Path, typer.Option("--out", help="Folder that holds run folders.")] = Path("runs"),
    init: Annotated[
        Path | None, typer.Option("--init", help="Start from the encoder of a run folder or of a weights file.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the run folder.")] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", help="auto: go on with the newest run of this name; or a run folder."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train a classifier from a few labels and many unlabelled images."""
    from protocon.engine.fit import fit, resume_run
    from protocon.engine.runfolder import RunFolder

    console = Console(stderr=True)
    if resume not in (None, "auto"):
        given = (overrides, data, root, labels, labels_per_class, labels_percent, method, seed, recipe, init, name)
        if any(value is not None for value in given):
            raise ProtoConError(
                f"--resume {resume} goes on with that run's own settings, so no others can be given; "
                "leave them out, or leave --resume out to start a new run"
            )
        with _interruptible(console):
            _emit_result(as_json, resume_run(RunFolder(Path(str(resume))), console))
        return
    config = _config(
        data=data,
        root=root,
        labels=labels,
        labels_per_class=labels_per_class,
        labels_percent=labels_percent,
        method=method,
        seed=seed,
        recipe=recipe,
        overrides=overrides,
    )
    if init is not None:
        weights = init / "model.safetensors" if init.is_dir() else init
        network = config.network.model_copy(update={"weights": weights})
        config = config.model_copy(update={"network": network})
    if dry_run:
        _dry_run(config, as_json)
        return
    with _interruptible(console):
        _emit_result(as_json, fit(config, out=out, name=name, resume=resume == "auto", console=console))


@contextmanager
def _interruptible(console: Console, advice: str = "--resume auto goes on from the last checkpoint") -> Iterator[None]:
    """Ctrl-C ends a run with a word on how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(f"interrupted; {advice}", highlight=False)
        raise typer.Exit(130) from None


def _emit_result(as_json: bool, result: dict[str, Any]) -> None:
    from protocon.distributed import rank

    if rank() == 0:
        _emit(as_json, result, lambda console: _show_result(console, result))


def _show_result(console: Console, result: dict[str, Any]) -> None:
    accuracy = result["test_accuracy"]
    if accuracy is not None:
        console.print(
            f"test accuracy {100 * accuracy:.2f} % (averaged weights, mean of the last epochs), "
            f"{result['labelled']} labels, {result['seconds']:.0f} s",
            highlight=False,
        )
    console.print(f"run folder: {result['run']}", highlight=False, soft_wrap=True)


def _dry_run(config: RunConfig, as_json: bool) -> None:
    from protocon.engine.plan import describe_plan

    plan = describe_plan(config)

    def show(console: Console) -> None:
        console.print(plan["config_yaml"].rstrip(), highlight=False, markup=False)
        for title in ("chosen", "sizes", "memory"):
            table = Table(title=title, title_justify="left", show_header=False)
            for key, value in plan[title].items():
                table.add_row(key, str(value))
            console.print(table)

    _emit(as_json, {key: value for key, value in plan.items() if key != "config_yaml"}, show)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder that holds run folders.")] = Path("runs"),
    seed: Seed = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Learn ten digits from twenty labels: the labels alone, then ProtoCon on the same ones."""
    from protocon.engine.fit import fit

    console = Console(stderr=True)
    results = {}
    for method in ("supervised", "protocon"):
        settings = {
            "method_name": method,
            "data": {"name": "digits", "labels_per_class": 2},
            "optim": {"epochs": 50},  # half of what `train` takes, so that slow machines finish in minutes too
            "run": {"seed": seed or 0},
        }
        results[method] = fit(build_config(settings=settings), out=out, console=console)

    def show(screen: Console) -> None:
        table = Table(title="Digits, 20 labels, 400 test images", title_justify="left")
        for heading in ("method", "test accuracy", "seconds", "run folder"):
            table.add_column(heading, overflow="fold")
        for method, result in results.items():
            table.add_row(method, f"{100 * result['test_accuracy']:.1f} %", f"{result['seconds']:.0f}", result["run"])
        screen.print(table)

    _emit(as_json, results, show)


@app.command()
def compare(
    overrides: Overrides = None,
    data: Data = None,
    root: Root = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="a,b,c; default: every method and reference.")
    ] = None,
    labels_per_class: Annotated[str, typer.Option("--labels-per-class", help="Labels of each class.")] = "2,4,8",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: 0, 1, 2, …")] = 5,
    recipe: Recipe = None,
    out: Annotated[Path | None, typer.Option("--out", help="Its folder; default: runs/compare-DATA.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Runs at a time; default: one a core.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train methods on the same labels, over label counts and seeds, and tabulate them.

    A setting holds for every method that has it; METHOD.key=value for one.
    The same command goes on where it was stopped. Exit code 1 if a run failed.
    """
    from protocon.results.grid import compare as run_comparison
    from protocon.results.request import build_request, names_in, numbers_in
    from protocon.results.tables import show

    request = build_request(
        methods=names_in(methods or ""),
        labels_per_class=numbers_in(labels_per_class),
        seeds=seeds,
        data=data,
        root=root,
        recipe=recipe,
        overrides=overrides or (),
    )
    console = Console(stderr=True)
    with _interruptible(console, "the same command goes on where this one stopped"):
        comparison = run_comparison(request, out=out, workers=workers, console=console)
    _emit(as_json, comparison.content(), lambda screen: show(comparison, screen))
    if comparison.failed:
        raise typer.Exit(1)


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Accuracy of a finished run on its test set."""
    from protocon.engine.runs import evaluate_run, load_run

    result = evaluate_run(load_run(run))

    def show(console: Console) -> None:
        console.print(f"test accuracy {100 * result['test_accuracy']:.2f} % on {result['test_images']} images")
        for label, value in result["accuracy_by_class"].items():
            console.print(f"  {label}: {100 * value:.1f} %", markup=False, highlight=False)

    _emit(as_json, {"run": str(run), **result}, show)


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    images: Annotated[list[Path], typer.Argument(help="Image files.")],
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Label image files with a finished run; exit code 1 if any of them could not be read."""
    from protocon.engine.runs import load_run

    rows = load_run(run).predict_files(images)

    def show(console: Console) -> None:
        for row in rows:
            said = row.get("error") or f"{row['label']}  {row['confidence']:.3f}"
            console.print(f"{row['file']}: {said}", markup=False, highlight=False, soft_wrap=True)

    _emit(as_json, {"run": str(run), "predictions": rows}, show)
    if any("error" in row for row in rows):
        raise typer.Exit(1)


@app.command()
def split(
    output: Annotated[Path, typer.Argument(help="JSON file to write.")],
    data: Data = None,
    root: Root = None,
    labels: Labels = None,
    labels_per_class: PerClass = None,
    labels_percent: Percent = None,
    seed: Seed = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Draw which images are labelled and save it, for `train … data.split=FILE`."""
    from protocon.engine.session import choose_split, load_data

    config = _config(
        data=data,
        root=root,
        labels=labels,
        labels_per_class=labels_per_class,
        labels_percent=labels_percent,
        method=None,
        seed=seed,
        recipe=None,
        overrides=None,
    )
    if output.exists():
        raise ProtoConError(f"{output} exists and is not overwritten; choose another name")
    drawn = choose_split(config, load_data(config).train)
    save_split(drawn, output)
    content = {"split": str(output), "labelled": len(drawn.labelled), "unlabelled": len(drawn.unlabelled)}
    _emit(
        as_json,
        content,
        lambda console: console.print(
            f"{output}: {content['labelled']} labelled, {content['unlabelled']} unlabelled", highlight=False
        ),
    )


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the recipes that ship with the package, or show one."""
    if name is not None:
        config = build_config(recipe=name)
        _emit(
            as_json,
            config.model_dump(mode="json"),
            lambda console: console.print(to_yaml(config), highlight=False),
        )
        return
    about = {recipe: recipe_text(recipe).splitlines()[0].lstrip("# ") for recipe in recipe_names()}

    def show(console: Console) -> None:
        for recipe, text in about.items():
            console.print(f"{recipe}: {text}", markup=False, highlight=False)

    _emit(as_json, {"recipes": about}, show)
