"""The scikit-learn classifier on embeddings: 20 labels, 1,000 samples, against logistic regression on the labels alone.

python examples/embeddings.py [key=value ...]
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from protocon import ProtoConClassifier

UNLABELLED = -1


def main(*overrides: str) -> None:
    """Learn from both the labelled and the unlabelled rows, and score on rows that neither model has seen."""
    # Any encoder's features will do; pixels stand in for them here.
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 1000), slice(1000, None)
    first_two = [row for digit in range(10) for row in np.flatnonzero(y[train] == digit)[:2]]
    labels = np.full(1000, UNLABELLED)
    labels[first_two] = y[first_two]

    settings = dict(text.split("=", 1) for text in overrides)
    classifier = ProtoConClassifier(settings=settings, random_state=0).fit(X[train], labels)
    baseline = LogisticRegression(max_iter=1000).fit(X[first_two], y[first_two])

    found = (classifier.transduction_ == y[train]).mean()
    print(f"labels found for the training rows: {found:.1%} right")
    print(f"new rows: {classifier.score(X[test], y[test]):.1%} right")
    print(f"logistic regression on the 20 labels: {baseline.score(X[test], y[test]):.1%} right")


if __name__ == "__main__":
    main(*sys.argv[1:])
