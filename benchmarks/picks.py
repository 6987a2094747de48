"""Which images to label: picks against random images, five rules, one round and three.

    python benchmarks/picks.py --features FOLDER --out benchmarks/results/picks.json
    python benchmarks/picks.py --suite FOLDER --cache FOLDER      # computes features itself, from NAME.zip

FOLDER/NAME.npz holds `train` (N, V, D) of which the first view counts, `train_labels`, `test` (T, D), `test_labels`.
A seed draws nine tenths of the training images, from which all rules pick: so that rules without randomness are
measured on several folders too. Labels are the truth. The classifier is the one that `protocon label` trains after
every answer (`FastModel`); accuracy is on the test images, which no part has seen. Prints tables, writes every cell.

    python benchmarks/picks.py … --pipeline --rules "random;coverage, 3 rounds" --seeds 2

trains `protocon train`'s method for frozen features instead, on principal components, with heads and all.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from sklearn.cluster import KMeans

from protocon import fit, load_run
from protocon.core.feature_space import feature_space
from protocon.core.neighbours import unit_rows
from protocon.picking.coverage import stands_for
from protocon.picking.fast_model import FastModel
from protocon.picking.folder_features import encode_folder
from protocon.picking.picker import DIMENSIONS, Picker
from protocon.settings.config import build_config

TUNED = ("trash", "satellite", "skin", "plankton", "cifar10")
"""Chosen by looking at these."""
UNSEEN = ("seedlings", "art", "food", "hieroglyphs")
"""Looked at once, at the end."""
POOL = 0.9
ROUNDS = 3
COMPONENTS = 256
"""What a whole run gets of the features."""


@dataclass(frozen=True)
class Folder:
    """Features and truth."""

    name: str
    train: np.ndarray
    labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray

    @property
    def classes(self) -> int:
        """C."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True)
class Cell:
    """One rule, one budget, one draw of images."""

    folder: str
    rule: str
    per_class: int
    """The budget is this many times C."""
    seed: int
    accuracy: float
    macro: float
    """Mean over classes."""
    unlabelled: float
    """Accuracy on the training images without a label."""
    found: float
    """Share of the classes of which there is a label."""
    prior: float
    """Total variation between the truth and class frequencies weighted by what each label stands for."""
    uniform: float
    """The same for uniform frequencies."""


class Pool:
    """The images that one seed may pick from, and the model on their features."""

    def __init__(self, folder: Folder, seed: int) -> None:
        generator = np.random.default_rng([seed, 17])
        kept = np.sort(generator.permutation(len(folder.labels))[: int(POOL * len(folder.labels))])
        self.folder, self.seed, self.classes = folder, seed, folder.classes
        self.features, self.truth = folder.train[kept], folder.labels[kept]
        self.points = feature_space(self.features, DIMENSIONS)(self.features)
        self.units = unit_rows(self.points)
        self.model = FastModel(self.features)
        self.picker = Picker(self.features, seed=seed)

    def labels(self, chosen: Sequence[int] | np.ndarray) -> np.ndarray:
        """Truth of the chosen images, −1 elsewhere."""
        known = np.full(len(self.truth), -1)
        known[np.asarray(chosen, dtype=np.int64)] = self.truth[np.asarray(chosen, dtype=np.int64)]
        return known


Rule = Callable[[Pool, int], np.ndarray]


def random_images(pool: Pool, count: int) -> np.ndarray:
    """Any images."""
    return np.random.default_rng([pool.seed, 23]).permutation(len(pool.truth))[:count]


def random_with_all_classes(pool: Pool, count: int) -> np.ndarray:
    """Any images, some exchanged so that each class has one: which needs to know the answer."""
    generator = np.random.default_rng([pool.seed, 23])
    chosen = generator.permutation(len(pool.truth))[:count]
    for missing in np.setdiff1d(pool.truth, pool.truth[chosen]):
        counts = np.bincount(pool.truth[chosen], minlength=pool.classes)
        spare = np.flatnonzero(counts[pool.truth[chosen]] > 1)
        chosen[generator.choice(spare)] = generator.choice(np.flatnonzero(pool.truth == missing))
    return chosen


def _clusters(pool: Pool, count: int) -> KMeans:
    return KMeans(count, n_init=3, max_iter=50, random_state=pool.seed).fit(pool.points)


def kmeans_centres(pool: Pool, count: int) -> np.ndarray:
    """The image nearest to each centre of k-means with as many clusters as labels."""
    found = _clusters(pool, count)
    squared = ((pool.points - found.cluster_centers_[found.labels_]) ** 2).sum(axis=1)
    order = np.argsort(squared, kind="stable")
    return np.array([order[found.labels_[order] == cluster][0] for cluster in range(count)])


def typiclust(pool: Pool, count: int) -> np.ndarray:
    """The most typical image of each cluster: smallest mean distance to its 20 nearest neighbours there."""
    found, chosen = _clusters(pool, count), []
    for cluster in range(count):
        members = np.flatnonzero(found.labels_ == cluster)
        rows = pool.points[members].astype(np.float64)
        squared = (rows**2).sum(axis=1)[:, None] - 2 * rows @ rows.T + (rows**2).sum(axis=1)
        near = np.sort(np.sqrt(np.maximum(squared, 0)), axis=1)[:, 1:21]
        chosen.append(members[near.mean(axis=1).argmin() if near.size else 0])
    return np.array(chosen)


def probcover(pool: Pool, count: int) -> np.ndarray:
    """Most uncovered images within δ; δ is the largest radius at which 95 % of balls have one k-means label."""
    labels = KMeans(pool.classes, n_init=1, max_iter=50, random_state=pool.seed).fit(pool.units).labels_
    probe = np.linspace(0, len(pool.units) - 1, min(1000, len(pool.units))).astype(np.int64)
    cosines = pool.units[probe] @ pool.units.T
    strange = np.where(labels[probe][:, None] != labels, cosines, -1.0).max(axis=1)
    # A ball is pure if it ends before the nearest image of another cluster.
    limit = float(np.quantile(strange, 0.95))
    near = pool.units @ pool.units.T > limit
    uncovered, chosen = np.ones(len(near), dtype=np.float32), list[int]()
    for _ in range(count):
        gains = near @ uncovered
        gains[chosen] = -1
        chosen.append(int(gains.argmax()))
        uncovered[near[chosen[-1]]] = 0
    return np.array(chosen)


def coverage(pool: Pool, count: int) -> np.ndarray:
    """`protocon pick`, all at once."""
    return np.array([pick.index for pick in pool.picker.next(count)])


def coverage_in_rounds(pool: Pool, count: int) -> np.ndarray:
    """`protocon pick` three times, with the labels of the rounds before."""
    chosen: list[int] = []
    for turn in range(ROUNDS):
        size = count // ROUNDS + (turn < count % ROUNDS)
        if not chosen:
            chosen += [pick.index for pick in pool.picker.next(size)]
            continue
        labels = pool.labels(chosen)
        probs = pool.model.predict(labels, classes=pool.classes).probs
        chosen += [pick.index for pick in pool.picker.next(size, labels, probs)]
    return np.array(chosen)


RULES: dict[str, Rule] = {
    "random": random_images,
    "random, all classes": random_with_all_classes,
    "k-means centres": kmeans_centres,
    "TypiClust": typiclust,
    "ProbCover": probcover,
    "coverage, 1 round": coverage,
    "coverage, 3 rounds": coverage_in_rounds,
}


def by_training(pool: Pool, labels: np.ndarray) -> np.ndarray:
    """Classes of the test images by a whole run."""
    space = feature_space(pool.features, COMPONENTS)
    present = np.unique(labels[labels >= 0])
    with tempfile.TemporaryDirectory() as place:
        arrays = Path(place) / "data.npz"
        np.savez(arrays, x=space(pool.features), y=np.where(labels < 0, -1, np.searchsorted(present, labels)))
        settings = {
            "method_name": "protocon-frozen",
            "data": {"name": "arrays", "root": arrays},
            "run": {"seed": pool.seed, "tensorboard": False, "report": False, "cross_check": 0},
        }
        result = fit(build_config(settings=settings), out=place, console=Console(quiet=True))
        probs = load_run(result["run"]).predict_proba(torch.from_numpy(space(pool.folder.test)))
    return np.asarray(present[np.asarray(probs).argmax(axis=1)])


def measure(pool: Pool, rule: str, per_class: int, *, pipeline: bool) -> Cell:
    """Pick, label, train, test."""
    chosen = RULES[rule](pool, per_class * pool.classes)
    labels, folder = pool.labels(chosen), pool.folder
    guess = (
        by_training(pool, labels)
        if pipeline
        else pool.model.predict_others(folder.test, labels, classes=pool.classes).argmax(axis=1)
    )
    own = pool.model.predict(labels, classes=pool.classes).probs.argmax(axis=1)
    right = guess == folder.test_labels
    truth = np.bincount(pool.truth, minlength=pool.classes) / len(pool.truth)
    weights = np.bincount(pool.truth[chosen], stands_for(pool.units, chosen), minlength=pool.classes)
    return Cell(
        folder=folder.name,
        rule=rule,
        per_class=per_class,
        seed=pool.seed,
        accuracy=float(right.mean()),
        macro=float(np.mean([right[folder.test_labels == c].mean() for c in np.unique(folder.test_labels)])),
        unlabelled=float((own == pool.truth)[labels < 0].mean()),
        found=len(np.unique(pool.truth[chosen])) / pool.classes,
        prior=float(np.abs(weights / weights.sum() - truth).sum() / 2),
        uniform=float(np.abs(1 / pool.classes - truth).sum() / 2),
    )


def from_npz(path: Path) -> Folder:
    """Features that are there."""
    with np.load(path, allow_pickle=False) as content:
        train, test = content["train"], content["test"]
        labels, test_labels = content["train_labels"], content["test_labels"]
    first = train[:, 0] if train.ndim == 3 else train
    return Folder(path.stem, first.astype(np.float32), labels, test.astype(np.float32), test_labels)


def from_images(root: Path, cache: Path | None) -> Folder:
    """Features of NAME/{train,test}/<class>/…, through the project's cache."""
    settings = [] if cache is None else [f"run.cache={cache}"]
    config = build_config(settings={"data": {"name": "folder", "root": root}}, overrides=settings)
    encoded = encode_folder(config, Console(stderr=True))
    parts = [name.split("/") for name in encoded.images.ids]
    names = sorted({part[-2] for part in parts})
    labels = np.array([names.index(part[-2]) for part in parts])
    test = np.array([part[-3] == "test" for part in parts])
    rows = encoded.features
    return Folder(root.stem, rows[~test], labels[~test], rows[test], labels[test])


def mean(cells: Sequence[Cell], rule: str, per_class: int, key: str, folder: str) -> float:
    """Over the seeds of one folder."""
    values = [getattr(c, key) for c in cells if (c.rule, c.per_class, c.folder) == (rule, per_class, folder)]
    return float(np.mean(values))


def tables(cells: Sequence[Cell], per_class: Sequence[int]) -> str:
    """Markdown: test accuracy by folder, then how far class frequencies are from the truth."""
    rules = list(dict.fromkeys(cell.rule for cell in cells))
    folders = list(dict.fromkeys(cell.folder for cell in cells))
    lines = []
    for budget in per_class:
        lines += [f"\n| {budget}C labels | " + " | ".join((*folders, "mean")) + " |", "|---" * (len(folders) + 2) + "|"]
        for rule in rules:
            values = [100 * mean(cells, rule, budget, "accuracy", folder) for folder in folders]
            lines.append(f"| {rule} | " + " | ".join(f"{v:.1f}" for v in (*values, np.mean(values))) + " |")
        for rule in ("uniform", *rules):
            key, of = ("uniform", rules[0]) if rule == "uniform" else ("prior", rule)
            values = [mean(cells, of, budget, key, folder) for folder in folders]
            row = " | ".join(f"{v:.2f}" for v in (*values, np.mean(values)))
            lines.append(f"| *distance from the true frequencies:* {rule} | {row} |")
    return "\n".join(lines)


def main() -> None:
    """Measure all cells, print tables, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=Path, help="folder of NAME.npz")
    parser.add_argument("--suite", type=Path, help="folder of NAME.zip or NAME/, where there are no features")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--folders", default=",".join((*TUNED, *UNSEEN)))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--per-class", default="2,4")
    parser.add_argument("--rules", default=";".join(RULES), help="separated by semicolons")
    parser.add_argument("--pipeline", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    budgets = [int(text) for text in asked.per_class.split(",")]
    cells: list[Cell] = []
    began = time.monotonic()
    for name in asked.folders.split(","):
        kept = None if asked.features is None else asked.features / f"{name}.npz"
        if kept is not None and kept.is_file():
            folder = from_npz(kept)
        elif asked.suite is not None:
            zipped = asked.suite / f"{name}.zip"
            folder = from_images(zipped if zipped.is_file() else asked.suite / name, asked.cache)
        else:
            parser.error(f"there are no features of {name}; give --features or --suite")
        for seed in range(asked.seeds):
            pool = Pool(folder, seed)
            for budget in budgets:
                cells += [measure(pool, rule, budget, pipeline=asked.pipeline) for rule in asked.rules.split(";")]
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    print(tables(cells, budgets))
    if asked.out is not None:
        rows = [{k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(cell).items()} for cell in cells]
        content = {"pool": POOL, "seeds": asked.seeds, "tuned_on": TUNED, "unseen": UNSEEN}
        asked.out.write_text(
            json.dumps(content)[:-1] + ', "cells": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
