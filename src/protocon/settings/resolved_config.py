"""Settings that leave nothing open: the same sections as in `config.py`, in whose types there is no `auto`.

What comes after the settings are resolved takes these types: a type checker knows that nothing is left to choose.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from protocon.settings.config import DataConfig, NetworkConfig, OptimConfig, RunConfig, RunSettings, ViewsConfig

_UNUSED: dict[str, dict[str, Any]] = {
    "data": {"image_size": None, "fit": "crop"},
    "views": {
        "weak": "shift",
        "strong": "randaugment",
        "flip": False,
        "engine": "torch",
        "crop_scale": 0.2,
        "cached_weak": 0,
        "cached_strong": 0,
        "cached_mirror": False,
    },
    "network": {
        "pooled_blocks": 0,
        "second_look": 0.0,
        "colour_shares": False,
        "space": "roots",
        "feature_engine": "torch",
        "components": 256,
        "hidden": 0,
    },
}
"""Values of settings that a run makes no use of, so that nothing chose them: those of pixels where the data are
embeddings, those of frozen encoders where the encoder is trained."""


class ResolvedData(DataConfig):
    """What to learn from. How to read its files (`storage`, `bad_files`) is decided anew by whoever reads them."""

    image_size: int | None
    fit: Literal["crop", "squash"]
    workers: int


class ResolvedViews(ViewsConfig):
    """How images are augmented."""

    weak: Literal["shift", "crop"]
    strong: Literal["randaugment", "simclr"]
    flip: bool
    engine: Literal["torch", "numba"]
    crop_scale: Annotated[float, Field(gt=0, le=1)]
    cached_weak: Annotated[int, Field(ge=0)]
    cached_strong: Annotated[int, Field(ge=0)]
    cached_mirror: bool


class ResolvedNetwork(NetworkConfig):
    """Encoder and heads."""

    pooled_blocks: Annotated[int, Field(ge=0)]
    second_look: Annotated[float, Field(ge=0, le=1)]
    colour_shares: bool
    space: Literal["roots", "standard"]
    feature_engine: Literal["torch", "onnxruntime"]
    components: Annotated[int, Field(ge=1)]
    hidden: Annotated[int, Field(ge=0)]
    projection_dim: int


class ResolvedOptim(OptimConfig):
    """Optimiser and length of training."""

    batch_size: Annotated[int, Field(ge=1)]
    epochs: Annotated[int, Field(ge=1)]
    lr: Annotated[float, Field(gt=0)]


class ResolvedRunSettings(RunSettings):
    """Where and how to run."""

    cross_check: int


class ResolvedConfig(RunConfig):
    """All settings of a run, each with its value; `resolve_auto` makes one."""

    data: ResolvedData
    views: ResolvedViews
    network: ResolvedNetwork
    optim: ResolvedOptim
    run: ResolvedRunSettings


def resolved_config(config: RunConfig) -> ResolvedConfig:
    """The settings as ones that leave nothing open; those that the run makes no use of get a value that says so."""
    values: dict[str, Any] = {"method_name": config.method_name, "method": config.method}
    for section in ("data", "views", "network", "optim", "run"):
        given, unused = dict(getattr(config, section)), _UNUSED.get(section, {})
        values[section] = {key: unused.get(key, value) if value == "auto" else value for key, value in given.items()}
    return ResolvedConfig.model_validate(values)
