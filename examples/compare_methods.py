"""Several methods on the same labels: mean accuracy over a few draws of the labels.

python examples/compare_methods.py [key=value ...]

`protocon compare` does more: images, all methods, resuming, paired intervals.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

from protocon import ProtoConClassifier

METHODS = ("supervised", "fixmatch-da", "protocon")
SEEDS = 3
LABELS_PER_CLASS = 2
UNLABELLED = -1


def draw_labels(truth: np.ndarray, seed: int) -> np.ndarray:
    """Labels of a few random rows of each class; the rest is unlabelled."""
    random = np.random.default_rng(seed)
    labels = np.full(len(truth), UNLABELLED)
    for value in np.unique(truth):
        rows = random.choice(np.flatnonzero(truth == value), LABELS_PER_CLASS, replace=False)
        labels[rows] = value
    return labels


def main(*overrides: str) -> None:
    """Train every method on every draw of labels."""
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 1000), slice(1000, None)
    settings = dict(text.split("=", 1) for text in overrides)
    for method in METHODS:
        scores = []
        for seed in range(SEEDS):
            classifier = ProtoConClassifier(method, settings=settings, random_state=seed)
            classifier.fit(X[train], draw_labels(y[train], seed))
            scores.append(classifier.score(X[test], y[test]))
        print(f"{method:12} {np.mean(scores):6.1%} ± {np.std(scores, ddof=1):.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
