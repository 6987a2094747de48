"""What a comparison was asked to do: methods × label counts × seeds, each method with its settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from protocon.base.yaml_text import to_text
from protocon.compare.variants import base_of, read_variant
from protocon.errors import ConfigError, RunError
from protocon.methods import METHODS
from protocon.references import REFERENCES
from protocon.settings.config import RunConfig, build_config, current_key, differences, known_keys, validate
from protocon.settings.recipe import merge, parse_yaml, read_recipe

_CARRIER = "supervised"
"""References have no settings of their own; their data settings travel in a config of this method."""
_OWNED = ("data.labels_per_class", "data.labels_percent", "data.split", "run.seed")
"""Methods that predict classes."""
_SHARED = (
    "threshold",
    "lambda_u",
    "class_prior",
    "alignment_window",
    "alignment_momentum",
    "teacher",
    "joint_batchnorm",
)
"""Settings that mean the same in every method that has them, so that those of a recipe apply to all.
`alpha` and `temperature` do not: each paper has its own."""


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    method: str
    """A method, a reference, or a variant such as `protocon+alpha=0.5`."""
    labels: int
    """Labels per class."""
    seed: int

    @property
    def name(self) -> str:
        """Name of its folder and log."""
        return f"{self.method}-{self.labels}pc-seed{self.seed}"


@dataclass(frozen=True)
class Request:
    """A whole grid. Seeds are 0 … seeds − 1."""

    configs: dict[str, RunConfig]
    """Settings by method or variant; a reference's hold its data alone."""
    labels_per_class: tuple[int, ...]
    seeds: int

    @property
    def data(self) -> str:
        """Name of the data set."""
        return next(iter(self.configs.values())).data.name

    def cells(self) -> Iterator[Cell]:
        """All cells, seed by seed: whatever is finished early can already be compared."""
        for seed in range(self.seeds):
            for labels in self.labels_per_class:
                for method in self.configs:
                    yield Cell(method, labels, seed)

    def config(self, cell: Cell) -> RunConfig:
        """Settings of one cell."""
        config = self.configs[cell.method]
        data = config.data.model_copy(update={"labels_per_class": cell.labels})
        run = config.run.model_copy(update={"seed": cell.seed})
        return config.model_copy(update={"data": data, "run": run})


def build_request(
    *,
    methods: Sequence[str] = (),
    labels_per_class: Sequence[int] = (2, 4, 8),
    seeds: int = 5,
    settings: Mapping[str, Any] | None = None,
    recipe: str | None = None,
    overrides: Sequence[str] = (),
) -> Request:
    """Validate a request.

    Args:
        methods: names of METHODS and REFERENCES, or variants such as `protocon+alpha=0.5`; none for all of both.
        labels_per_class: label counts.
        seeds: how many; they are 0, 1, 2, …
        settings: nested settings, section by section, which apply to all methods.
        recipe: to start from. Of its method's settings, those that mean the same everywhere (threshold, class prior,
            …) reach all; the others that method alone.
        overrides: `key=value`. A key of data, views, network, optim or run applies to all. A method's own key
            applies to every method that has it; `METHOD.key=value` to that one and its variants.
    """
    variants = [read_variant(text) for text in tuple(methods) or (*_classifiers(), *REFERENCES)]
    names = tuple(variant.name for variant in variants)
    _check_axes(names, labels_per_class, seeds)
    _check_each_is_used(overrides, names)
    # A recipe's own choice of labels is dropped: the grid sets it.
    axes = {"data": {"labels_per_class": 1, "labels_percent": None, "split": None}, "run": {"seed": 0}}
    common = merge(axes, settings or {})
    given = read_recipe(recipe) if recipe is not None else {}
    configs = {}
    for name, variant in zip(names, variants, strict=True):
        chosen = [used for text in overrides if (used := _for_method(text, name)) is not None]
        chosen += [f"method.{change}" for change in variant.changes]
        method = {"method_name": _carrier(name), "method": _shared(given.get("method") or {}, name)}
        configs[name] = _aligned_alike(build_config(recipe=recipe, settings=common | method, overrides=chosen))
        _check_owned(configs[name])
    return Request(configs, tuple(labels_per_class), seeds)


def _shared(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a recipe says of its own method that applies to this one too."""
    base = base_of(name)
    fields = METHODS[base].Config.model_fields if base in METHODS else {}
    return {key: settings[key] for key in _SHARED if key in settings and key in fields}


def _aligned_alike(config: RunConfig) -> RunConfig:
    """Distribution alignment is a part that several methods share, so it is the same in all: the published one.

    Where `train` draws labels by class, it takes ProtoCon's dual one, which would then be compared with the others'
    running mean. `alignment=dual` gives it to all.
    """
    if getattr(config.method, "alignment", None) != "auto":
        return config
    return config.model_copy(update={"method": config.method.model_copy(update={"alignment": "mean"})})


def names_in(text: str) -> list[str]:
    """The names in `a,b,c`."""
    return [part.strip() for part in text.split(",") if part.strip()]


def numbers_in(text: str) -> list[int]:
    """The numbers in `2,4,8`."""
    try:
        return [int(part) for part in names_in(text)]
    except ValueError:
        raise ConfigError(f"{text!r} came; expected whole numbers with commas between, such as 2,4,8") from None


def _classifiers() -> list[str]:
    return [name for name, method in METHODS.items() if method.uses_labels]


def _carrier(name: str) -> str:
    return _CARRIER if name in REFERENCES else base_of(name)


def _check_axes(names: Sequence[str], labels_per_class: Sequence[int], seeds: int) -> None:
    for name in names:
        if (base := base_of(name)) in METHODS and not METHODS[base].uses_labels:
            raise ConfigError(
                f"{base} learns without labels, so its accuracy cannot be compared. Pre-train with it (protocon "
                f"pretrain --method {base}), and compare methods that start from its encoder (--init)"
            )
    for what, values in (("method", names), ("number of labels", labels_per_class)):
        if len(set(values)) != len(values):
            raise ConfigError(f"a {what} is given twice: {', '.join(map(str, values))}")
    if not labels_per_class or min(labels_per_class) < 1 or seeds < 1:
        raise ConfigError(
            f"labels_per_class {list(labels_per_class)} and seeds {seeds} came; "
            "expected at least one number of labels, and all of them 1 or more"
        )


def _check_each_is_used(overrides: Sequence[str], names: Sequence[str]) -> None:
    for text in overrides:
        owner = text.partition("=")[0].strip().partition(".")[0]
        if owner in (*METHODS, *REFERENCES) and owner not in map(base_of, names):
            raise ConfigError(f"{text!r} is for {owner}, which is not compared; leave it out, or add the method")
        if all(_for_method(text, name) is None for name in names):
            build_config(settings={"method_name": _carrier(names[0])}, overrides=[text])  # says what is wrong with it
            raise ConfigError(f"{text!r} is a setting of no compared method; leave it out")


def _for_method(text: str, name: str) -> str | None:
    """The override as one method takes it; None if it does not apply to that method."""
    key, separator, value = text.partition("=")
    key = current_key(key.strip())
    section, dot, field = key.rpartition(".")
    if section in METHODS:
        return f"method.{field}{separator}{value}" if section == base_of(name) else None
    fields = known_keys(_carrier(name))
    if name in REFERENCES:
        fields["method"] = []
    known = field in fields.get(section, []) if dot else any(field in names for names in fields.values())
    return text if known else None


def _check_owned(config: RunConfig) -> None:
    if config.optim.time_budget is not None:
        raise ConfigError(
            f"optim.time_budget {config.optim.time_budget:g} came, but methods are compared over the same number of "
            "steps, and a budget gives a quick method more of them; use optim.epochs"
        )
    data = config.data
    if (data.labels_per_class, data.labels_percent, data.split, config.run.seed) != (1, None, None, 0):
        raise ConfigError(f"{', '.join(_OWNED)} are set by the comparison itself; use --labels-per-class and --seeds")


def request_to_yaml(request: Request) -> str:
    """The request as text that `request_from_yaml` reads back."""
    dumps = {name: config.model_dump(mode="json") for name, config in request.configs.items()}
    common = {key: value for key, value in next(iter(dumps.values())).items() if not key.startswith("method")}
    content = {
        "labels_per_class": list(request.labels_per_class),
        "seeds": request.seeds,
        "methods": {name: {} if name in REFERENCES else dump["method"] for name, dump in dumps.items()},
        **common,
    }
    return to_text(content)


def request_from_yaml(text: str, origin: str) -> Request:
    """A request from its file."""
    content = parse_yaml(text, origin)
    try:
        labels, seeds = tuple(int(count) for count in content.pop("labels_per_class")), int(content.pop("seeds"))
        methods = dict(content.pop("methods"))
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{origin} does not describe a comparison ({error!r}); choose another folder") from error
    configs = {
        name: validate({**content, "method_name": _carrier(name), "method": settings})
        for name, settings in methods.items()
    }
    return Request(configs, labels, seeds)


def conflicts(old: Request, new: Request) -> list[str]:
    """What the new request changes or leaves out, one line each; additions are no conflict."""
    lines: dict[str, None] = {}  # each line once: a common setting differs in every method
    left_out = {
        "method": old.configs.keys() - new.configs.keys(),
        "labels_per_class": set(map(str, old.labels_per_class)) - set(map(str, new.labels_per_class)),
        "seed": {str(seed) for seed in range(new.seeds, old.seeds)},
    }
    for what, values in left_out.items():
        lines |= {f"{what} {value}: left out": None for value in sorted(values)}
    for name in (name for name in old.configs if name in new.configs):
        for line in differences(old.configs[name], new.configs[name]):
            lines[f"{name}.{line.removeprefix('method.')}" if line.startswith("method.") else line] = None
    return list(lines)


def additions(old: Request, new: Request) -> int:
    """How many cells the new request adds."""
    return len(set(new.cells()) - set(old.cells()))
