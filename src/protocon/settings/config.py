"""Every setting of a run, one validated model per section; a wrong key names the right one."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SerializeAsAny, ValidationError, model_validator

from protocon.base.duration import parse_duration
from protocon.base.yaml_text import to_text
from protocon.data.registry import DATASETS
from protocon.errors import ConfigError, unknown_name
from protocon.methods import METHODS, MethodConfig
from protocon.networks import packaged
from protocon.networks.named import NAMED
from protocon.settings.default_encoder import ADVICE, DECIDING, implied_settings, is_open, takes_encoder
from protocon.settings.recipe import PlainLoader, merge, read_recipe

Auto = Literal["auto"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataConfig(_Section):
    """What to learn from."""

    name: str = "digits"
    """Data source, a name of `DATASETS`."""
    root: Path | None = None
    """Folder or file with the data."""
    labels: Path | None = None
    """File with `file,label` rows, or labels of an array."""
    labels_per_class: int | None = Field(default=None, ge=1)
    """Draw this many labels of each class; the rest is treated as unlabelled."""
    labels_percent: float | None = Field(default=None, gt=0, le=100)
    """Draw this percentage of the labels, at least one of each class."""
    split: Path | None = None
    """A split file made earlier, instead of drawing one."""
    include_labelled: bool = False
    """Keep the labelled images in the unlabelled set too."""
    domain: str | None = None
    """Which domain of DomainNet."""
    test_fraction: float | None = Field(default=None, gt=0, lt=1)
    """Share of the labelled images to hold out for testing where the data has no test set."""
    image_size: int | Auto | None = "auto"
    """Side of the images that the network sees; null for embeddings, which have none."""
    fit: Literal["auto", "crop", "squash"] = "auto"
    """How images become square: the centre is cut out, or the whole is squashed. auto: squashed for a frozen encoder,
    which then sees what lies at the edges; cropped for one that is trained, as usual."""
    storage: Literal["auto", "memory", "stream"] = "auto"
    """Keep all images on the device as bytes, or decode them again in every epoch."""
    grey: bool = False
    """Decode image files to one channel."""
    bad_files: Literal["auto", "error", "skip"] = "auto"
    """An image file that cannot be decoded stops the run before training, or is left out and reported. auto: left out
    of your own images, an error in a named benchmark."""
    workers: int | Auto = "auto"
    """Processes that decode streamed images."""

    @property
    def size_asked(self) -> int | None:
        """Side of the images where one is asked for."""
        return None if self.image_size == "auto" else self.image_size


class ViewsConfig(_Section):
    """How images are augmented."""

    weak: Literal["auto", "shift", "crop"] = "auto"
    """Reflected shift, or random resized crop (large images); both with flips."""
    strong: Literal["auto", "randaugment", "simclr"] = "auto"
    """RandAugment with cutout, or SimCLR's colours, blur and crops."""
    flip: bool | Auto = "auto"
    """Mirror images. Auto depends on the data set (digits are not mirrored). For your own images on a frozen encoder
    the labels decide: where mirroring clearly changes them, as for arrows and text, nothing is mirrored. A network that
    is trained from scratch cannot ask them: set false there for images with a left and a right."""
    engine: Literal["auto", "torch", "numba"] = "auto"
    """What computes views on a CPU: torch, or compiled kernels (`pip install protocon[fast]`), which are several times
    faster for large images."""
    crop_scale: Annotated[float, Field(gt=0, le=1)] | Auto = "auto"
    """Smallest share of the image's area that a weak crop keeps; auto is 0.2, and 0.5 for a frozen encoder, which
    cannot adapt to details."""
    translate: float = Field(default=0.125, ge=0, lt=0.5)
    """Largest shift as a share of the side."""
    operations: int = Field(default=2, ge=0)
    """RandAugment: operations per image."""
    operation_probability: float = Field(default=0.5, ge=0, le=1)
    """RandAugment: how often a drawn operation is applied."""
    cutout: float = Field(default=0.5, ge=0, le=1)
    """Side of the cutout square as a share of the image's."""
    simclr_strength: float = Field(default=1.0, ge=0)
    """Colour strength of SimCLR views."""
    weak_noise: float = Field(default=0.05, ge=0)
    """Embeddings: standard deviation of the weak view's noise, in standard deviations of a feature."""
    strong_noise: float = Field(default=0.3, ge=0)
    """Embeddings: the same for the strong view."""
    weak_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Embeddings: share of features that the weak view drops."""
    strong_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Embeddings: the same for the strong view."""
    cached_weak: Annotated[int, Field(ge=0)] | Auto = "auto"
    """Frozen encoder: shifted or cropped views of every image that are cached besides the clean one; auto depends on
    the number of images. Strong views are drawn from these and the next, with noise and dropout on top; the weak view
    is the clean one with noise."""
    cached_strong: Annotated[int, Field(ge=0)] | Auto = "auto"
    """Frozen encoder: the same for views with `strong` operations."""
    cached_mirror: bool | Auto = "auto"
    """Frozen encoder: compute and keep the mirrored image too, where `flip` allows it; auto: for methods that look at
    all features before training."""


class NetworkConfig(_Section):
    """Encoder and heads."""

    encoder: str = "auto"
    """`wrn-28-2`, any timm name, or for embeddings `none` or `mlp-512`."""
    pretrained: bool = False
    """Ask timm for pretrained weights."""
    weights: Path | None = None
    """Local file with encoder weights, or `package:NAME` for those of an installed package."""
    weights_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    """Digest of that file, recorded when a run starts; a resumed run refuses any other file."""
    frozen: bool = False
    """Keep the encoder's weights unchanged: features of several views of every image are computed once and kept on
    disk, and only the heads train. Minutes instead of hours; needs pretrained weights. `build_config` sets it for
    images of one's own where such weights are installed and nothing is said of the network."""
    pooled_blocks: Annotated[int, Field(ge=0)] | Auto = "auto"
    """Frozen EfficientNet: how many of its last blocks stand beside its features, mean-pooled. They know textures and
    shapes that the last layer has dropped, and cost nothing; auto is 4 with the installed weights, else 0."""
    second_look: Annotated[float, Field(ge=0, le=1)] | Auto = "auto"
    """Frozen EfficientNet-Lite: look at every image a second time, with norms that take the image's own statistics in
    part, up to this share in the last block; 0 is one look. auto is 0.6 with the installed weights, else 0."""
    colour_shares: bool | Auto = "auto"
    """Frozen encoder: put beside its features which colours an image has, and where. They overlook colour, and classes
    of one's own often differ in it; auto is true with the installed weights and images in colour, else false."""
    space: Literal["auto", "roots", "standard"] = "auto"
    """Frozen encoder: the space of its features. Signed roots at unit length; or standardised, as in version 0.1."""
    feature_engine: Literal["auto", "torch", "onnxruntime"] = "auto"
    """Frozen encoder: who computes its features on a CPU; auto is onnxruntime where it is installed."""
    components: Annotated[int, Field(ge=1)] | Auto = "auto"
    """Frozen encoder: principal components of its features that the heads learn from; all where it has fewer. auto is
    a sixteenth of the number of images, between 32 and 256."""
    hidden: Annotated[int, Field(ge=0)] | Auto = "auto"
    """Frozen encoder: width of a trained layer between its features and the heads; 0 leaves it out."""
    projection_dim: int | Auto = "auto"
    """d: 64 for small images, 128 for large ones."""
    projector_norm: bool = True
    """BatchNorm between the projector's two layers: without it projections start in a narrow cone, and clusters are
    of no use in the first epochs."""
    norm_momentum: float = Field(default=0.1, gt=0, le=1)
    """BatchNorm's momentum in wide ResNets; FixMatch's very long runs use 0.001."""


class OptimConfig(_Section):
    """Optimiser and length of training."""

    batch_size: Annotated[int, Field(ge=1)] | Auto = "auto"
    """B: labelled images per step, over all processes."""
    mu: int = Field(default=7, ge=1)
    """μ: unlabelled images per labelled one in a step."""
    epochs: Annotated[int, Field(ge=1)] | Auto = "auto"
    """Passes over the unlabelled set."""
    total_steps: int | None = Field(default=None, ge=1)
    """Optimiser steps instead of epochs (rounded up to whole passes)."""
    time_budget: Annotated[float, BeforeValidator(parse_duration), Field(gt=0)] | None = None
    """Seconds, or text such as 90s, 20m or 2h. Where epochs is auto, a few steps are timed before training, and
    training runs for as many epochs as fit."""
    optimizer: Literal["sgd", "adamw", "lars"] = "sgd"
    """SGD with momentum, as in the paper; AdamW; or LARS for large batches. Each wants a learning rate of its own:
    auto is SGD's."""
    lr: Annotated[float, Field(gt=0)] | Auto = "auto"
    """Learning rate. The paper's is 0.03; auto doubles it where there are only a few thousand steps."""
    lars_trust: float = Field(default=0.001, gt=0)
    """LARS: a layer's step as a share of the length of its weights, per unit of learning rate."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of SGD and LARS, and β₁ of AdamW."""
    nesterov: bool = True
    """Nesterov's form of the momentum."""
    weight_decay: float = Field(default=5e-4, ge=0)
    """Weight decay; not applied to biases and normalisation."""
    ema: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the averaged weights, after a ramp."""
    accumulate: int = Field(default=1, ge=1)
    """Number of parts in which a step is computed, to save memory; gradients add up to those of one pass."""


class RunSettings(_Section):
    """Where and how to run."""

    seed: int = Field(default=0, ge=0)
    """Decides every random draw: labels, views, order of the images, initial weights."""
    accelerator: str = "auto"
    """cpu, cuda, mps or auto."""
    precision: str = "32-true"
    """Numerical precision, by Lightning Fabric's name: 32-true, bf16-mixed, 16-mixed, 64-true."""
    compile: bool = False
    """Compile the network with torch.compile: a minute or more before the first step, then faster steps."""
    eval_every: int = Field(default=1, ge=1)
    """Epochs between evaluations; the last ten are always evaluated."""
    eval_batch_size: int = Field(default=512, ge=1)
    """Images per batch in evaluation and prediction."""
    checkpoint_every: int = Field(default=1, ge=1)
    """Epochs between checkpoints; the last epoch always has one."""
    checkpoint_minutes: float | None = Field(default=10.0, gt=0)
    """Within an epoch, write a checkpoint after this many minutes without one; null for never."""
    tensorboard: bool = True
    """Write TensorBoard logs into the run folder."""
    loggers: tuple[Literal["mlflow", "wandb"], ...] = ()
    """Other programs that get the numbers of each epoch: mlflow, wandb. Each needs its package."""
    report: bool = True
    """Draw report.html at the end; `protocon report` does it later."""
    cross_check: Annotated[int, Field(ge=2, le=20)] | Literal[0] | Auto = "auto"
    """Number of groups into which the given labels are divided; each group is held out from one additional run, to see
    whether it predicts them. 0 is none. auto is 4 on a frozen encoder with your own labels, where a run is cheap, and
    10 for up to 2,000 images."""
    cache: Path | None = None
    """Folder for features of frozen encoders, computed once for all runs; by default the user's cache folder."""
    sync_batchnorm: bool = True
    """With several processes: BatchNorm over the rows of all of them, as one process would."""
    timeout_minutes: float = Field(default=30.0, gt=0)
    """With several processes: how long one waits for another that does not answer before the job ends with an error."""


class RunConfig(_Section):
    """All settings of a run, checked and immutable; `build_config` makes one.

    Examples:
        >>> from protocon import RunConfig
        >>> RunConfig().optim.mu
        7
        >>> RunConfig(method_name="fixmatch").method.threshold
        0.95
    """

    data: DataConfig = DataConfig()
    views: ViewsConfig = ViewsConfig()
    network: NetworkConfig = NetworkConfig()
    method_name: str = "protocon"
    method: SerializeAsAny[MethodConfig] = Field(default_factory=METHODS["protocon"].Config)
    optim: OptimConfig = OptimConfig()
    run: RunSettings = RunSettings()

    @model_validator(mode="before")
    @classmethod
    def _method_settings_by_name(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and not isinstance(values.get("method"), MethodConfig):
            name = values.get("method_name", "protocon")
            if not isinstance(name, str) or name not in METHODS:
                raise ConfigError(unknown_name("method", str(name)[:_SHOWN], METHODS))
            values = {**values, "method": METHODS[name].Config.model_validate(values.get("method") or {})}
        return values


_SHOWN = 200
"""Characters of a wrong value that a message shows."""

ON_FROZEN = "protocon-frozen"
"""The method that a frozen encoder gets where none is asked for: it won on the folders that defaults are chosen on."""

SECTIONS = ("data", "views", "network", "method", "optim", "run")


RENAMED = {"method.least_retention": "method.min_retention"}
"""Settings of earlier versions by their present names: old files, runs and commands still work."""


def current_key(key: str) -> str:
    """The present name of a setting, given as `section.key` or as the bare key."""
    for old, new in RENAMED.items():
        if key in (old, old.partition(".")[2]):
            return new
    return key


def _with_current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings by their present names."""
    changed = dict(values)
    for old, new in RENAMED.items():
        (section, name), present = old.split("."), new.partition(".")[2]
        content = changed.get(section)
        if isinstance(content, Mapping) and name in content:
            if present in content:
                raise ConfigError(f"{old} is now called {new}, and both are given; keep {new}")
            changed[section] = {present if key == name else key: value for key, value in content.items()}
    return changed


def known_keys(method: str) -> dict[str, list[str]]:
    """Field names of each section, with the method's own."""
    models: dict[str, type[BaseModel]] = {
        "data": DataConfig,
        "views": ViewsConfig,
        "network": NetworkConfig,
        "method": METHODS[method].Config,
        "optim": OptimConfig,
        "run": RunSettings,
    }
    return {section: list(model.model_fields) for section, model in models.items()}


def set_override(values: dict[str, Any], text: str) -> None:
    """Put one `key=value` of the command line into nested settings.

    The key is `section.key`, or the bare key where only one section has it.
    """
    key, separator, raw = text.partition("=")
    if not separator:
        raise ConfigError(f"{text!r} is not a setting; expected key=value, such as alpha=0.7")
    method = str(values.get("method_name", "protocon"))
    if method not in METHODS:
        raise ConfigError(unknown_name("method", method, METHODS))
    section, name = _locate(current_key(key.strip()), known_keys(method))
    try:
        value = yaml.load(raw, PlainLoader)  # a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise ConfigError(f"the value of {key!r} cannot be read: {raw[:_SHOWN]!r}") from error
    given = values.get(section)
    values[section] = {**given, name: value} if isinstance(given, Mapping) else {name: value}


def _locate(key: str, fields: dict[str, list[str]]) -> tuple[str, str]:
    dotted = {f"{section}.{name}": (section, name) for section, names in fields.items() for name in names}
    if key in dotted:
        return dotted[key]
    owners = [(section, key) for section, names in fields.items() if key in names]
    if len(owners) == 1:
        return owners[0]
    if owners:
        raise ConfigError(
            f"{key!r} is a setting of several sections; write {' or '.join(f'{s}.{key}' for s, _ in owners)}"
        )
    bare = sorted({name for names in fields.values() for name in names})
    raise ConfigError(unknown_name("setting", key, list(dotted) if "." in key else bare))


def build_config(
    *,
    recipe: str | None = None,
    settings: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
) -> RunConfig:
    """Settings of a run: a recipe, then nested settings, then `key=value` overrides, checked.

    Images of your own get the pretrained encoder, frozen, wherever its weights are installed and nothing else is said
    of the network: `network.frozen=false` trains one from scratch.

    Args:
        recipe: name of a recipe or path of a YAML file.
        settings: nested settings, section by section.
        overrides: `key=value` texts.

    Examples:
        >>> from protocon import build_config
        >>> data = {"name": "digits", "labels_per_class": 2}
        >>> config = build_config(settings={"data": data}, overrides=["alpha=0.7", "optim.lr=0.1"])
        >>> config.method.alpha, config.optim.lr, config.data.labels_per_class
        (0.7, 0.1, 2)
        >>> build_config(overrides=["treshold=0.9"])
        Traceback (most recent call last):
        protocon.errors.ConfigError: unknown setting 'treshold'; did you mean threshold?
    """
    values = _merged(recipe, settings)
    asked = _with_deciding(values, overrides)
    if takes_encoder(asked, recipe):
        values["network"] = {**(values.get("network") or {}), "frozen": True}
        asked["network"] = values["network"]
    named = NAMED.get(str(asked["network"].get("encoder")))
    if named is not None:
        implied = implied_settings(named, asked)
        values["network"] = {**(values.get("network") or {}), **implied}
        asked["network"] = {**asked["network"], **implied}
    if "method_name" not in values and "method" not in values and asked["network"].get("frozen") is True:
        values["method_name"] = ON_FROZEN
    for text in overrides:
        set_override(values, text)
    if named is not None:
        values["network"] = {**values["network"], "encoder": named.model}
    return validate(values)


def encoder_advice(
    *, recipe: str | None = None, settings: Mapping[str, Any] | None = None, overrides: Sequence[str] = ()
) -> str | None:
    """A line for people whose images are trained on from scratch only because no encoder is installed.

    Args:
        recipe: name of a recipe or path of a YAML file.
        settings: nested settings, section by section.
        overrides: `key=value` texts.
    """
    asked = _with_deciding(_merged(recipe, settings), overrides)
    return ADVICE if packaged.installed() is None and is_open(asked, recipe) else None


def _merged(recipe: str | None, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    return merge(_with_current_names(read_recipe(recipe) if recipe else {}), _with_current_names(settings or {}))


def _with_deciding(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Data and network as asked for, with the overrides that decide about the encoder; wrong ones are for later."""
    asked: dict[str, Any] = {"method_name": values.get("method_name", "protocon")}
    for section in ("data", "network"):
        given = values.get(section)
        asked[section] = dict(given) if isinstance(given, Mapping) else {}
    for text in overrides:
        if text.partition("=")[0].strip() in DECIDING:
            with suppress(ConfigError):
                set_override(asked, text)
    return asked


def validate(values: Mapping[str, Any]) -> RunConfig:
    """A RunConfig from nested settings; errors name the setting, what came and what was expected."""
    values = _with_current_names(values)
    method = str(values.get("method_name", "protocon"))
    if method in METHODS:
        _check_names(values, known_keys(method))
    try:
        config = RunConfig.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "config"
        raise ConfigError(f"{where}: {first['msg']} (came: {repr(first['input'])[:_SHOWN]})") from error
    if config.data.name not in DATASETS:
        raise ConfigError(unknown_name("data set", config.data.name, DATASETS))
    return config


def _check_names(values: Mapping[str, Any], fields: dict[str, list[str]]) -> None:
    for section, content in values.items():
        if section not in (*SECTIONS, "method_name"):
            raise ConfigError(unknown_name("section", str(section), [*SECTIONS, "method_name"]))
        if section == "method_name" or content is None:
            continue
        if not isinstance(content, Mapping):
            if isinstance(content, BaseModel):
                continue
            raise ConfigError(f"section {section} must hold key: value pairs, got {content!r}")
        for key in content:
            if key not in fields[section]:
                raise ConfigError(
                    unknown_name("setting", f"{section}.{key}", [f"{section}.{n}" for n in fields[section]])
                )


def to_yaml(config: RunConfig) -> str:
    """All settings as YAML that `validate` reads back."""
    return to_text(config.model_dump(mode="json"))


def differences(old: RunConfig, new: RunConfig) -> list[str]:
    """Settings that differ, one line each."""
    before, after = flat_settings(old), flat_settings(new)
    return [
        f"{key}: {before.get(key)!r} → {after.get(key)!r}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def flat_settings(config: RunConfig) -> dict[str, Any]:
    """All settings as `section.key`, with values as YAML has them."""
    return _flat(config.model_dump(mode="json"))


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
