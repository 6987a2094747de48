"""ProtoConClassifier: semi-supervised learning in scikit-learn's shape."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from protocon.data.imageset import DataBundle
from protocon.errors import ConfigError, DataError
from protocon.estimator.labels import Labels, read_labels, unlabelled
from protocon.estimator.labels import as_array as label_array
from protocon.estimator.outputs import Said, ask, projection_width, with_spread
from protocon.estimator.parameters import config_of
from protocon.estimator.sample_kinds import (
    FeatureSpread,
    Kind,
    as_array,
    as_levels,
    feature_bundle,
    file_bundle,
    image_bundle,
    kind_of,
    path_store,
    pixel_scale,
)
from protocon.estimator.training import train_on


class ProtoConClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn ships no types
    TransformerMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Learn from a few labels and many unlabelled samples.

    A parameter that is None follows from the data or the method, as in `protocon train`.

    Args:
        method: any of `protocon.METHODS`.
        alpha: weight of the classifier's opinion against the neighbourhood's.
        threshold: confidence from which a pseudo-label is reliable.
        neighbours: samples that share a cluster on average.
        epochs: passes over the unlabelled samples.
        time_budget: seconds, or text such as `20m`: as many epochs as fit, instead of `epochs`. The result then
            depends on the machine's speed.
        batch_size: labelled samples per step.
        lr: learning rate.
        encoder: `mlp-512` or `none` for features; `wrn-28-2` or any timm model for images.
        image_size: side that images are resized to.
        settings: any other setting of the command line, as `{"mu": 4, "views.flip": False}`.
        random_state: seed; None is 0. The same seed gives the same model.
        verbose: show progress on standard error.

    Attributes:
        classes_: the labels, sorted, (C,).
        transduction_: a label for every training sample: its own, or the refined one, (n,).
        label_distributions_: class probabilities behind it, (n, C).
        n_iter_: epochs trained.
        n_features_in_: length of a feature vector, or values of an image.
        run_: the trained network with its settings, as `protocon.load_run` gives it.

    Examples:
        15 labels, 163 samples without one:

        >>> from protocon import ProtoConClassifier
        >>> from sklearn.datasets import load_wine
        >>> X, y = load_wine(return_X_y=True)
        >>> labels = [value if number % 12 == 0 else -1 for number, value in enumerate(y)]
        >>> classifier = ProtoConClassifier(epochs=20).fit(X, labels)
        >>> bool((classifier.transduction_ == y).mean() > 0.8)
        True
    """

    def __init__(
        self,
        method: str = "protocon",
        *,
        alpha: float | None = None,
        threshold: float | None = None,
        neighbours: int | None = None,
        epochs: int | None = None,
        time_budget: float | str | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        encoder: str | None = None,
        image_size: int | None = None,
        settings: dict[str, Any] | None = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.threshold = threshold
        self.neighbours = neighbours
        self.epochs = epochs
        self.time_budget = time_budget
        self.batch_size = batch_size
        self.lr = lr
        self.encoder = encoder
        self.image_size = image_size
        self.settings = settings
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train.

        Args:
            X: features (n, D); images (n, H, W), (n, H, W, C) or (n, C, H, W) of levels 0 to 255 or floats in [0, 1];
                or paths of n image files.
            y: labels (n,), numbers or text; −1, None or NaN for unlabelled. Where fewer samples are unlabelled
                than labelled, the labelled ones serve as unlabelled ones too.
        """
        kind = kind_of(X)
        if kind == "features":
            X = validate_data(self, X, dtype=np.float64)
        labels = read_labels(y)
        check_consistent_length(X, labels.codes)
        with _value_errors():
            config = config_of(self.get_params(deep=False), labels)
            bundle = self._bundle(X, kind, labels, config)
            fitted = train_on(config, bundle, Console(stderr=True, quiet=not self.verbose))
        self.classes_ = labels.classes
        self._network = fitted.run.network
        if kind == "features":
            self._network = with_spread(fitted.run.network, self._spread)
            fitted.run.network.load_state_dict(self._network.state_dict())  # in float32, which `run_` works in
        self.run_ = fitted.run
        self.label_distributions_ = fitted.distributions
        self.transduction_ = self.classes_[fitted.distributions.argmax(1)]
        self.n_iter_ = fitted.epochs
        return self

    def _bundle(self, X: Any, kind: Kind, labels: Labels, config: Any) -> DataBundle:
        """X and y as the engine's training data; also keeps what prediction must know about X."""
        self._kind: Kind = kind
        self._scale = 1.0
        names = [str(name) for name in labels.classes]
        if kind == "features":
            self._spread = FeatureSpread.of(X)
            return feature_bundle(X, labels.codes, names, self._spread)
        if kind == "images":
            images = as_array(X)
            self._scale = pixel_scale(images)
            self.n_features_in_ = int(np.prod(images.shape[1:]))
            return image_bundle(as_levels(images, self._scale), labels.codes, names, config)
        bundle = file_bundle(path_store(X), labels.codes, names, config)
        self.n_features_in_ = int(np.prod(bundle.train.shape))
        return bundle

    def _ask(self, X: Any) -> Said:
        """The network's outputs for X, which must be of the kind that it was trained on."""
        check_is_fitted(self)
        if self._kind == "features":
            X = validate_data(self, X, dtype=np.float64, reset=False)
        with _value_errors():
            kind = kind_of(X)
            # Files say what their levels mean, and so do bytes; other numbers need the range that training settled.
            bytes_for_files = self._kind == "files" and kind == "images" and getattr(X, "dtype", None) == np.uint8
            if kind != self._kind and not (self._kind == "images" and kind == "files") and not bytes_for_files:
                raise DataError(
                    f"X holds {kind}, but this classifier was fitted on {self._kind}. Give the same kind, or for image "
                    "files uint8 arrays of images."
                )
            return ask(self.run_, X, kind, scale=self._scale, network=self._network)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, C), in the order of `classes_`."""
        return self._ask(X).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each sample, (n,)."""
        best = self._ask(X).probabilities.argmax(1)  # first: it raises if nothing is fitted
        labels: np.ndarray = self.classes_[best]
        return labels

    def transform(self, X: Any) -> np.ndarray:
        """Unit-norm projections (n, d); of methods without a projector, unit-norm features of the encoder."""
        return self._ask(X).projections

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the samples that have a label: rows of −1, None or NaN do not count.

        Args:
            X: samples of the kind that `fit` was given.
            y: true labels (n,).
            sample_weight: weight of each sample; None weighs all alike.
        """
        truth = column_or_1d(label_array(y))
        known = ~unlabelled(truth)
        if not known.any():
            raise ValueError(f"None of {len(truth)} samples has a label, so there is no accuracy.")
        right = self.predict(X)[known] == truth[known]
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(right, weights=weights))

    @property
    def _n_features_out(self) -> int:
        return projection_width(self.run_.network)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to one .safetensors file, without pickle; `load` and `load_run` read it."""
        from protocon.estimator.files import save_classifier

        check_is_fitted(self)
        save_classifier(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A classifier from a file that `save` wrote, or from a run folder of `protocon train`."""
        from protocon.estimator.files import load_classifier

        return load_classifier(cls, Path(path))


@contextmanager
def _value_errors() -> Iterator[None]:
    """Raise errors of data and settings as ValueError, as scikit-learn's callers expect."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise ValueError(str(error)) from error
