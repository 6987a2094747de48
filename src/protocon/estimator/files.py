"""A fitted classifier as one .safetensors file, and back."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from protocon.base.atomic import write_bytes
from protocon.errors import RunError
from protocon.estimator.outputs import with_spread
from protocon.estimator.sample_kinds import FeatureSpread
from protocon.runs.layout import MODEL
from protocon.runs.model_file import model_bytes, read_model
from protocon.runs.trained import load_run

if TYPE_CHECKING:
    from protocon.estimator.classifier import ProtoConClassifier

Classifier = TypeVar("Classifier", bound="ProtoConClassifier")


def save_classifier(classifier: "ProtoConClassifier", path: Path) -> None:
    """The network with its settings, as `protocon train` writes it, and what else the classifier needs."""
    run = classifier.run_
    parameters = classifier.get_params(deep=False)
    parameters["random_state"] = run.config.run.seed  # a RandomState is a stream, which a file cannot hold
    classes = classifier.classes_
    own = {
        "parameters": parameters,
        "classes": classes.tolist(),
        "dtype": classes.dtype.str,
        "kind": classifier._kind,
        "scale": classifier._scale,
        "n_iter": classifier.n_iter_,
        "n_features_in": classifier.n_features_in_,
        "feature_names_in": [str(name) for name in getattr(classifier, "feature_names_in_", ())],
    }
    try:
        content = model_bytes(
            run.network,
            config=run.config,
            class_names=run.class_names,
            shape=run.shape,
            facts={"estimator": own},
            tensors={name: torch.from_numpy(array) for name, array in _arrays(classifier).items()},
            plain=_plain,
        )
    except TypeError as error:
        raise RunError(f"the classifier's parameters cannot be written to a file: {error}") from error
    write_bytes(path, content)


def _arrays(classifier: "ProtoConClassifier") -> dict[str, np.ndarray]:
    arrays = {"label_distributions": np.ascontiguousarray(classifier.label_distributions_)}
    if classifier._kind == "features":
        arrays |= {"mean": classifier._network.mean.numpy().copy(), "std": classifier._network.std.numpy().copy()}
    return arrays


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def load_classifier(kind: type[Classifier], path: Path) -> Classifier:
    """A classifier from its file; or from a run folder, whose class names become the classes."""
    run = load_run(path)
    _, _, known, arrays = read_model(path / MODEL if path.is_dir() else path)
    facts = known.get("estimator", {})
    classifier = kind(
        **facts.get("parameters", {"method": run.config.method_name, "random_state": run.config.run.seed})
    )
    classifier.run_ = run
    features = len(run.shape) == 1
    classifier._kind = facts.get("kind", "features" if features else "files")
    classifier._scale = float(facts.get("scale", 1.0))
    classifier._network = run.network
    if features:
        classifier._network = with_spread(run.network, FeatureSpread(np.zeros(run.shape[0]), np.ones(run.shape[0])))
        if "mean" in arrays:
            classifier._network.mean, classifier._network.std = arrays["mean"], arrays["std"]
    classifier.classes_ = _classes(facts, run.class_names)
    classifier.n_features_in_ = int(facts.get("n_features_in", np.prod(run.shape)))
    if facts.get("feature_names_in"):
        classifier.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)
    if "label_distributions" in arrays:
        classifier.n_iter_ = int(facts["n_iter"])
        classifier.label_distributions_ = arrays["label_distributions"].numpy()
        classifier.transduction_ = classifier.classes_[classifier.label_distributions_.argmax(1)]
    return classifier


def _classes(facts: dict[str, Any], names: tuple[str, ...]) -> np.ndarray:
    if "classes" not in facts:
        return np.array(names)
    dtype = str(facts["dtype"])
    if not re.fullmatch(r"[<>|=]?[biufOU]\d*", dtype):
        raise RunError(f"classes of type {dtype!r}; expected numbers or text")
    return np.array(facts["classes"], dtype=object if dtype.endswith("O") else dtype)
