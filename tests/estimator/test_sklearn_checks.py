"""scikit-learn's own checks of an estimator."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_classifiers_predictions, parametrize_with_checks

from protocon import ProtoConClassifier

NOT_FOR_US = {
    "check_classifiers_classes": "uses −1 as a class, which is our word for unlabelled; see the test below",
}
"""Checks that cannot pass, each with its reason."""


def expected_failures(_: Any) -> dict[str, str]:
    return NOT_FOR_US


@parametrize_with_checks([ProtoConClassifier(epochs=4)], expected_failed_checks=expected_failures)  # type: ignore[untyped-decorator]
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("kind", ["U", "O", "int"])
def test_classes_of_any_kind_as_that_check_asks_but_for_minus_one(kind: str) -> None:
    X, y = make_blobs(n_samples=30, random_state=0, cluster_std=0.1)
    X = StandardScaler().fit_transform(X)
    names = np.array(["one", "two", "three"])[y].astype(kind) if kind != "int" else np.array([-7, 1, 5])[y]
    check_classifiers_predictions(X, names, "ProtoConClassifier", ProtoConClassifier())
