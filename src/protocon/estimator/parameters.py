"""From a classifier's parameters to the engine's settings."""

import json
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from protocon.errors import ConfigError
from protocon.estimator.labels import Labels
from protocon.methods import METHODS
from protocon.settings.config import RunConfig, build_config, known_keys

PLACES = {
    "alpha": "method.alpha",
    "threshold": "method.threshold",
    "neighbours": "method.neighbours",
    "epochs": "optim.epochs",
    "time_budget": "optim.time_budget",
    "batch_size": "optim.batch_size",
    "lr": "optim.lr",
    "encoder": "network.encoder",
    "image_size": "data.image_size",
}
"""Named parameters, and the setting that each one sets."""

_DATA_SETTINGS = ("image_size", "include_labelled", "storage", "grey", "workers")
"""The settings of the section `data` that make sense where X and y are the data."""


def config_of(parameters: Mapping[str, Any], labels: Labels) -> RunConfig:
    """Settings of a fit.

    Args:
        parameters: of the classifier.
        labels: if all are known, their frequencies are those of the classes.
    """
    method = parameters["method"]
    if method not in METHODS:
        raise ConfigError(f"unknown method {method!r}; expected one of {', '.join(sorted(METHODS))}")
    if not METHODS[method].uses_labels:
        raise ConfigError(f"method {method!r} learns without labels, so it cannot predict classes; use another")
    known, count = labels.known, len(labels.codes)
    defaults: dict[str, Any] = {"name": "arrays", "include_labelled": known > count - known}
    settings: dict[str, Any] = {"method_name": method, "data": defaults}
    if known == count and "class_prior" in known_keys(method)["method"]:
        settings["method"] = {"class_prior": "labels"}
    given = [(PLACES[name], parameters[name]) for name in PLACES if parameters[name] is not None]
    given += list(_flattened(parameters["settings"]))
    given.append(("run.seed", seed_of(parameters["random_state"])))
    return build_config(settings=settings, overrides=[f"{key}={_as_text(key, value)}" for key, value in given])


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn calls random_state: a number, a RandomState (one draw of it), or None for 0."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.RandomState | np.random.Generator):
        draw = random_state.randint if isinstance(random_state, np.random.RandomState) else random_state.integers
        return int(draw(2**31 - 1))
    if not isinstance(random_state, numbers.Integral) or isinstance(random_state, bool) or int(random_state) < 0:
        raise ConfigError(f"random_state is {random_state!r}; expected a non-negative integer, a RandomState or None")
    return int(random_state)


def _flattened(settings: Any) -> list[tuple[str, Any]]:
    """`{"mu": 4, "views.flip": False, "optim": {"momentum": 0.8}}` as pairs of key and value."""
    if settings is None:
        return []
    if not isinstance(settings, Mapping):
        raise ConfigError(f"settings is {settings!r}; expected a dict such as {{'mu': 4, 'views.flip': False}}")
    pairs: list[tuple[str, Any]] = []
    for key, value in settings.items():
        inner = value.items() if isinstance(value, Mapping) else ((None, value),)
        pairs += [(str(key) if name is None else f"{key}.{name}", content) for name, content in inner]
    for key, _ in pairs:
        section, _, name = key.rpartition(".")
        if section == "data" and name not in _DATA_SETTINGS:
            raise ConfigError(f"the setting {key} does nothing here, since X and y are the data. Remove it")
    return pairs


def _as_text(key: str, value: Any) -> str:
    """A value as the command line takes it: JSON is YAML."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        return json.dumps(value, default=str)
    except ValueError as error:
        raise ConfigError(f"the value of {key} cannot be used as a setting: {value!r}") from error
