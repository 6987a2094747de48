"""One folder of the suite: its images, features and label draws, and the cells that are measured on them."""

import json
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from benchmarks.suite_references import REFERENCES, Rows
from protocon.base.draws import permutation
from protocon.data.imageset import DataBundle, ImageSet
from protocon.data.labels.label_split import Split, make_split
from protocon.engine.loop.display import Display
from protocon.engine.loop.trainer import build_trainer, train_in_memory
from protocon.engine.setup.encode import FeatureInputs, clean_features, encode
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import build, settle
from protocon.engine.setup.settled import Settled
from protocon.runs.run_data import load_data
from protocon.settings.config import RunConfig, build_config

CIFAR_TRAIN, CIFAR_TEST = 1000, 200
"""Images of each class of CIFAR-10, spread evenly over its names: neighbours by name show like things, and the first
ones are easier than the others."""
SETTINGS = (
    *("network.frozen=true", "views.cached_weak=0", "views.cached_strong=0", "views.cached_mirror=true"),
    *("network.components=256", "run.report=false", "run.tensorboard=false", "run.accelerator=cpu"),
)
_RANDOM_DRAW = 9001


@dataclass(frozen=True)
class Result:
    """One cell."""

    folder: str
    method: str
    """A method or reference, with `+key=value` for each setting that is not the default."""
    draw: str
    """`4`: labels per class. `r4`: four times as many random images as there are classes, at least one of each."""
    seed: int
    accuracy: float
    macro: float
    seconds: float
    steps: int = 0
    prior_distance: float | None = None
    """Total variation between the estimated class frequencies and the true ones."""

    @property
    def key(self) -> tuple[str, str, int]:
        """What it is within its folder."""
        return self.method, self.draw, self.seed


def unpack(archive: Path, name: str, work: Path) -> Path:
    """The folder of this name, unpacked once; of CIFAR-10 a part of each class."""
    folder = work / "images" / name
    done = folder / ".unpacked"
    if done.is_file():
        return folder
    with zipfile.ZipFile(archive) as content:
        for member in sorted(_members(content, name)):
            content.extract(member, work / "images")
    done.touch()
    return folder


def _members(content: zipfile.ZipFile, name: str) -> Iterator[str]:
    places: dict[tuple[str, str], list[str]] = {}
    for member in sorted(content.namelist()):
        parts = member.split("/")
        if len(parts) == 4 and parts[3] and parts[0] == name:
            places.setdefault((parts[1], parts[2]), []).append(member)
    for (part, _), members in places.items():
        limit = CIFAR_TRAIN if part == "train" else CIFAR_TEST
        count = min(limit, len(members)) if name == "cifar10" else len(members)
        yield from (members[position * len(members) // count] for position in range(count))


class Folder:
    """A folder with its features, which all cells share.

    Args:
        name: of the folder.
        data: where its archive is.
        work: takes images, features and results.
        overrides: settings of all methods.
    """

    def __init__(self, name: str, *, data: Path, work: Path, overrides: Sequence[str] = ()) -> None:
        archive = data / ("cifar10.zip" if name == "cifar10" else f"suite/{name}.zip")
        if not archive.is_file():
            raise SystemExit(f"{archive} is not there; --data must hold cifar10.zip and suite/NAME.zip")
        self.name = name
        self.root = unpack(archive, name, work)
        self.cache = work / "cache"
        self.overrides = list(overrides)
        self._bundles: dict[str, DataBundle] = {}
        self._inputs: dict[str, FeatureInputs] = {}
        self._rows: Rows | None = None

    def config(self, method: str, seed: int) -> RunConfig:
        """Settings of a row such as `protocon-frozen+smoothing=0`."""
        base, *changes = method.split("+")
        settings: dict[str, Any] = {
            "data": {"name": "imagefolder", "root": str(self.root), "labels_per_class": 1},
            "run": {"cache": str(self.cache), "seed": seed},
            "method_name": "supervised" if base in REFERENCES else base,
        }
        return build_config(settings=settings, overrides=[*SETTINGS, *self.overrides, *changes])

    def settled(self, method: str, draw: str, seed: int) -> Settled:
        """Settings without `auto`, data and labels of a cell."""
        config = self.config(method, seed)
        kind = json.dumps([config.network.model_dump(mode="json"), config.data.model_dump(mode="json")])
        if kind not in self._bundles:
            self._bundles[kind] = load_data(config)
        bundle = self._bundles[kind]
        return settle(config, bundle, split=drawn(bundle, draw, seed))

    def inputs(self, settled: Settled) -> FeatureInputs:
        """Features and components, computed once for each kind of them."""
        config = settled.config
        kind = json.dumps([config.network.model_dump(mode="json"), config.data.image_size, config.views.cached_mirror])
        if kind not in self._inputs:
            made = encode(settled, Console(stderr=True), torch.device("cpu"))
            assert isinstance(made, FeatureInputs)
            self._inputs[kind] = made
        known = self._inputs[kind]
        return FeatureInputs(
            *(config, settled.bundle, known.encoder, known.space),
            cached=known.cached,
            train=known.train,
            test=known.tested,
        )

    def rows(self, settled: Settled, inputs: FeatureInputs) -> Rows:
        """What references learn from, made once."""
        if self._rows is None:
            plain = clean_features(settled, Console(stderr=True), torch.device("cpu"))
            raw, tested = (every(images) for images in (plain.train, _test(plain)))
            mean, std = raw.mean(0), np.maximum(raw.std(0), 1e-6)
            views, test = every(inputs.train), every(inputs.seen(_test(settled.bundle)))[:, 0]
            self._rows = Rows((raw - mean) / std, (tested - mean) / std, views, test, len(plain.train.class_names))
        return self._rows

    def measure(self, method: str, draw: str, seed: int) -> Result:
        """Train and test one cell."""
        settled = self.settled(method, draw, seed)
        inputs = self.inputs(settled)
        bundle, began = settled.bundle, time.monotonic()
        truth = _test(bundle).labels
        steps, distance = 0, None
        if method in REFERENCES:
            labels = np.full(len(bundle.train), -1)
            labels[settled.split.labelled] = settled.split.labels
            predicted = REFERENCES[method](self.rows(settled, inputs), labels)
        else:
            trainer = build_trainer(build(settled, inputs), build_fabric(settled.config))
            lengths = settled.resolved
            display = Display(
                Console(quiet=True),
                title=method,
                total_epochs=lengths.total_epochs,
                steps_per_epoch=lengths.steps_per_epoch,
            )
            with display:
                train_in_memory(trainer, display)
            predicted = trainer.predict(trainer.evaluated, _test(bundle)).logits.argmax(-1).cpu().numpy()
            steps = trainer.step
            found = trainer.session.method.estimated_prior()
            if found is not None:
                true = np.bincount(bundle.train.labels, minlength=len(bundle.train.class_names)) / len(bundle.train)
                distance = float(0.5 * np.abs(found.cpu().numpy() - true).sum())
        right = predicted == truth
        macro = float(np.mean([right[truth == label].mean() for label in np.unique(truth)]))
        seconds = time.monotonic() - began
        return Result(self.name, method, draw, seed, float(right.mean()), macro, seconds, steps, distance)


def _test(bundle: DataBundle) -> ImageSet:
    assert bundle.test is not None
    return bundle.test


def every(images: ImageSet) -> np.ndarray:
    """All rows of a set of features, float32."""
    return np.asarray(images.read(np.arange(len(images))).float().numpy())


def drawn(bundle: DataBundle, draw: str, seed: int) -> Split:
    """Labels: so many per class, or (`r4`) so many times the number of classes at random, with one of each class.

    Where a random draw misses a class, one of its images takes the place of one from a class that has several.
    """
    if not draw.startswith("r"):
        return make_split(bundle.train, per_class=int(draw), seed=seed)
    base = make_split(bundle.train, per_class=1, seed=seed)
    labels, classes = bundle.train.labels, len(bundle.train.class_names)
    order = permutation(len(labels), seed, _RANDOM_DRAW)
    chosen = list(order[: int(draw[1:]) * classes])
    for label in range(classes):
        if not (labels[chosen] == label).any():
            counts = np.bincount(labels[chosen], minlength=classes)
            place = next(at for at in reversed(range(len(chosen))) if counts[labels[chosen[at]]] > 1)
            chosen[place] = next(image for image in order if labels[image] == label)
    labelled = np.sort(np.array(chosen, dtype=np.int64))
    return Split(
        labelled=labelled,
        labels=labels[labelled],
        ids=tuple(bundle.train.ids[int(i)] for i in labelled),
        unlabelled=np.setdiff1d(np.arange(len(labels), dtype=np.int64), labelled),
        class_names=base.class_names,
        size=base.size,
        dataset=base.dataset,
        fingerprint=base.fingerprint,
        rule=f"{len(labelled)} at random, at least one of each class",
        seed=seed,
    )


def read_results(file: Path) -> list[Result]:
    """The cells that a file has; a line that was cut short is left out."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            found.append(Result(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            continue
    return found


def run_folder(
    name: str,
    *,
    methods: Sequence[str],
    draws: Sequence[str],
    seeds: int,
    data: Path,
    work: Path,
    results: Path,
    overrides: Sequence[str] = (),
) -> list[Result]:
    """All cells of a folder; those that the file of results has are not measured again."""
    torch.set_num_threads(1)
    results.parent.mkdir(parents=True, exist_ok=True)
    found = {result.key: result for result in read_results(results)}
    wanted = [(method, draw, seed) for seed in range(seeds) for draw in draws for method in methods]
    folder: Folder | None = None
    for cell in wanted:
        if cell in found:
            continue
        folder = folder or Folder(name, data=data, work=work, overrides=overrides)
        found[cell] = folder.measure(*cell)
        with results.open("a", encoding="utf-8") as file:
            file.write("\n" + json.dumps(asdict(found[cell])))
        shown = found[cell]
        print(
            f"{name} {shown.method} {shown.draw} seed {shown.seed}: {100 * shown.accuracy:.1f} / "
            f"{100 * shown.macro:.1f} %, {shown.seconds:.1f} s",
            flush=True,
        )
    return [found[cell] for cell in wanted]
