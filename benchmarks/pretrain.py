"""What pre-training without labels is worth on Fashion-MNIST: nearest neighbours before and after, and what follows.

    python benchmarks/pretrain.py --root FOLDER --work runs/pretrain

Each method trains an encoder on the first images of the training set; the accuracy of nearest neighbours is measured on
test images. Then ProtoCon and FixMatch + DA train from scratch and from each encoder (`--init`), with the same labels
and seeds, on the same images or the first `--learn-images` of them. Every run is a line of the log in the work folder,
and is not repeated: a stopped benchmark resumes.
"""

import argparse
import json
import shlex
import sys
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
import yaml
from rich.console import Console
from torch import Tensor

from protocon.claims.results import commit
from protocon.core.knn import knn_scores
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.engine.loop.feature_watch import FeatureView
from protocon.engine.run import fit
from protocon.engine.setup.session import prepare
from protocon.runs.predict_set import predict_set
from protocon.settings.config import RunConfig, build_config

METHODS = ("simclr", "moco", "swav", "dino")
LEARNERS = ("protocon", "fixmatch-da")


class Bench:
    """The runs and their log.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work: Path = options.work
        self.work.mkdir(parents=True, exist_ok=True)
        self.log = self.work / "log.jsonl"
        self.data = self._images(options.images)
        self.learnt = self._images(options.learn_images or options.images)

    def _images(self, count: int) -> Path:
        """A file with so many training images, and the test images."""
        file = self.work / f"images-{count}-{self.options.tests}.npz"
        if not file.is_file():
            self._write_images(file, count)
        return file

    def _write_images(self, file: Path, count: int) -> None:
        bundle = DATASETS["fashion-mnist"](SourceOptions(root=self.options.root))
        assert bundle.test is not None
        parts = {"": (bundle.train, count), "_test": (bundle.test, self.options.tests)}
        arrays = {}
        for suffix, (images, size) in parts.items():
            arrays[f"x{suffix}"] = images.read(np.arange(size)).numpy()
            arrays[f"y{suffix}"] = images.labels[:size]
        np.savez(file, allow_pickle=False, **arrays)

    def rows(self) -> list[dict[str, Any]]:
        """What is done."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.is_file() else []

    def once(self, **key: Any) -> dict[str, Any] | None:
        """The row of this key, if it is there."""
        return next((row for row in self.rows() if all(row.get(name) == value for name, value in key.items())), None)

    def add(self, row: dict[str, Any]) -> None:
        """Append a row, with the code's commit."""
        row = {"seed": 0, **row, "commit": commit()}
        with self.log.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    def configs(self) -> dict[str, Any]:
        """Settings of every run, without `auto`; those that differ in the seed alone once."""
        files = sorted(self.work.glob("*/resolved.yaml"))
        return {
            file.parent.name: _without_folders(yaml.safe_load(file.read_text()))
            for file in files
            if file.parent.name in METHODS or file.parent.name.endswith("-0")
        }

    def config(self, *overrides: str, recipe: str | None = None, **settings: Any) -> RunConfig:
        """Settings of a run on these images."""
        data = {"name": "arrays", "root": str(self.data), "image_size": self.options.side, **settings.pop("data", {})}
        common = (f"network.encoder={self.options.encoder}", "tensorboard=false", "report=false")
        return build_config(recipe=recipe, settings={"data": data, **settings}, overrides=(*common, *overrides))

    def pretrain(self, method: str) -> None:
        """One encoder."""
        if self.once(kind="pretrain", method=method):
            return
        epochs = self.options.pretrain_epochs
        budget = f"epochs={epochs}" if epochs else f"time_budget={self.options.minutes * 60:g}"
        config = self.config(budget, *self.options.set, recipe=f"pretrain-{method}", method_name=method)
        began = time.monotonic()
        result = fit(config, out=self.work, name=method, resume=True, console=Console(quiet=True))
        self.add(
            {"kind": "pretrain", "method": method, "seconds": round(time.monotonic() - began)}
            | {key: result[key] for key in ("epochs", "steps", "knn_accuracy", "feature_spread", "loss")}
            | {"warnings": [row["kind"] for row in result["warnings"]]}
        )

    def neighbours(self, method: str) -> None:
        """How often the nearest of all training images are of a test image's class, and how much that is above random.

        Args:
            method: that trained the encoder, or `random` for one that nobody trained.
        """
        if self.once(kind="neighbours", method=method):
            return
        right, chance = self._right(method), self._right("random")
        lead = right.double() - chance.double()
        row = {
            "knn_accuracy": float(right.double().mean()),
            "lead": float(lead.mean()),
            "interval": float(1.96 * lead.std() / len(lead) ** 0.5),  # paired, over test images
        }
        self.add({"kind": "neighbours", "method": method} | row)

    def _right(self, method: str) -> Tensor:
        """Of each test image, whether its nearest neighbours vote for its class."""
        weights = [] if method == "random" else [f"network.weights={self.work / method / 'model.safetensors'}"]
        session = prepare(self.config(*weights, recipe="pretrain-simclr", method_name="simclr"))
        view, device = FeatureView(session.network.eval()), session.network.mean.device
        train, test = session.bundle.train, session.bundle.test
        assert test is not None
        queries, bank = (
            predict_set(view, images, view=session.views.clean, batch_size=512, device=device).logits
            for images in (test, train)
        )
        labels = torch.from_numpy(train.labels.copy())
        scores = knn_scores(queries, bank, labels, classes=len(train.class_names))
        return scores.argmax(1) == torch.from_numpy(test.labels.copy())

    def learn(self, learner: str, start: str, seed: int) -> None:
        """One classifier."""
        if self.once(kind="learn", method=learner, start=start, seed=seed):
            return
        init = [] if start == "scratch" else [f"network.weights={self.work / start / 'model.safetensors'}"]
        config = self.config(
            f"seed={seed}",
            f"epochs={self.options.epochs}",
            *init,
            method_name=learner,
            data={"root": str(self.learnt), "labels_per_class": self.options.labels},
        )
        name = f"{learner}-{start}-{seed}"
        result = fit(config, out=self.work, name=name, resume=True, console=Console(quiet=True))
        keys = ("test_accuracy", "steps", "seconds")
        self.add(
            {"kind": "learn", "method": learner, "start": start, "seed": seed} | {key: result[key] for key in keys}
        )


def table(rows: list[dict[str, Any]]) -> str:
    """Both tables as Markdown."""
    lines = ["| encoder | nearest neighbours right | above random | epochs | minutes |", "|---|---|---|---|---|"]
    trained = {row["method"]: row for row in rows if row["kind"] == "pretrain"}
    for row in rows:
        if row["kind"] == "neighbours":
            right = f"{100 * row['knn_accuracy']:.1f} %"
            lead = f"{100 * row['lead']:+.1f} ± {100 * row['interval']:.1f}" if row["method"] in trained else "–"
            run = trained.get(row["method"], {})
            minutes = f"{run['seconds'] / 60:.0f}" if run else "–"
            lines.append(f"| {row['method']} | {right} | {lead} | {run.get('epochs', '–')} | {minutes} |")
    cells: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        if row["kind"] == "learn":
            cells.setdefault((row["method"], row["start"]), {})[row["seed"]] = 100 * row["test_accuracy"]
    if cells:
        lines += [
            "",
            "| method | start | test accuracy | minus from scratch, paired | seeds |",
            "|---|---|---|---|---|",
        ]
    for (method, start), values in cells.items():
        scratch = cells.get((method, "scratch"), {})
        pairs = [value - scratch[seed] for seed, value in values.items() if seed in scratch]
        gain = (
            "–" if start == "scratch" or not pairs else f"{mean(pairs):+.1f} ({min(pairs):+.1f} to {max(pairs):+.1f})"
        )
        spread = f" ± {stdev(values.values()):.1f}" if len(values) > 1 else ""
        lines.append(f"| {method} | {start} | {mean(values.values()):.1f}{spread} | {gain} | {len(values)} |")
    return "\n".join(lines)


def _without_folders(config: dict[str, Any]) -> dict[str, Any]:
    """Settings with file names in place of this computer's paths."""
    for section, key in (("data", "root"), ("network", "weights")):
        if config[section][key] is not None:
            path = Path(config[section][key])
            config[section][key] = str(Path(path.parent.name) / path.name) if key == "weights" else path.name
    return config


def _command(arguments: list[str]) -> str:
    """The command line without the folders of this computer."""
    pairs = zip(arguments[::2], arguments[1::2], strict=True)
    kept = [text for pair in pairs if pair[0] not in ("--root", "--work", "--out") for text in pair]
    return shlex.join(["python", "benchmarks/pretrain.py", *kept])


def main() -> None:
    """Run what is missing, print the tables, and write everything to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="folder with Fashion-MNIST's files; by default Debian's")
    parser.add_argument("--work", type=Path, default=Path("runs/pretrain"))
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--tests", type=int, default=2_000)
    parser.add_argument("--side", type=int, default=28)
    parser.add_argument("--encoder", default="wrn-10-2")
    parser.add_argument("--minutes", type=float, default=30.0, help="for each pre-training")
    parser.add_argument("--pretrain-epochs", type=int, help="instead of minutes, for machines that others use too")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--learners", default=",".join(LEARNERS), help="empty for none")
    parser.add_argument("--labels", type=int, default=4, help="per class")
    parser.add_argument("--learn-images", type=int, help="the first so many for classifiers; default: --images")
    parser.add_argument("--epochs", type=int, default=20, help="of each classifier")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every pre-training")
    options = parser.parse_args()
    bench = Bench(options)
    methods = [name for name in options.methods.split(",") if name]
    for method in methods:
        bench.pretrain(method)
    for method in ("random", *methods):
        bench.neighbours(method)
    for seed in range(options.seeds):
        for learner in [name for name in options.learners.split(",") if name]:
            for start in ("scratch", *methods):
                bench.learn(learner, start, seed)
    print(table(bench.rows()))
    if options.out:
        settings = {key: str(value) for key, value in vars(options).items() if key not in ("root", "work", "out")}
        found: dict[str, Any] = {"command": _command(sys.argv[1:]), "settings": settings}
        found |= {"rows": bench.rows(), "configs": bench.configs()}
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
