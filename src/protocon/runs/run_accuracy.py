"""How often a finished run is right: on its own test set, or on any other images whose labels are known."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protocon.data.files.names import shown
from protocon.data.files.places import some
from protocon.data.imageset import UNKNOWN, ImageSet
from protocon.data.recognise import recognise
from protocon.errors import DataError
from protocon.runs.run_data import load_data
from protocon.runs.trained import TrainedRun

_SHOWN = 5


def evaluate_run(run: TrainedRun) -> dict[str, Any]:
    """Accuracy of a run on its data's test set, overall and by class."""
    test = load_data(run.config).test
    if test is None:
        raise DataError(
            "the run's data has no test set. Give a folder of other images with labels (protocon evaluate RUN FOLDER), "
            "or hold some out when you train (data.test_fraction=0.25)"
        )
    predicted, labels = _judged(run, test)
    return {
        "test_accuracy": float((predicted == labels).double().mean()),
        "test_images": len(labels),
        "accuracy_by_class": _by_class(run, predicted, labels),
    }


def evaluate_folder(run: TrainedRun, folder: Path, labels: Path | None = None) -> dict[str, Any]:
    """Accuracy of a run on all labelled images of another folder, zip or array file.

    Classes are matched by name. Images of a class that the run does not know cannot be right: they are counted apart.

    Args:
        run: finished.
        folder: laid out in any way that `train` reads.
        labels: a table of labels for it.
    """
    if not folder.exists():
        raise DataError(f"{folder} does not exist; expected a folder of images whose labels are known")
    found = recognise(folder, labels)
    own = {"name": found.name, "root": found.root, "labels": labels, "labels_per_class": None, "labels_percent": None}
    fresh = {"split": None, "test_fraction": None, "domain": None, "storage": "auto", "bad_files": "skip"}
    size = "auto" if len(run.shape) == 1 else run.shape[-1]
    grey = len(run.shape) == 3 and run.shape[0] == 1 and found.name != "arrays"
    data = run.config.data.model_copy(update={**own, **fresh, "image_size": size, "grey": grey})
    bundle = load_data(run.config.model_copy(update={"data": data}))
    sets = [part for part in (bundle.train, bundle.test) if part is not None]
    unknown: Counter[str] = Counter()
    judged = [_judged(run, part, unknown) for part in sets]
    predicted, truth = (torch.cat(parts) for parts in zip(*judged, strict=True))
    if not len(truth):
        named = some([shown(name) for name in unknown], _SHOWN)
        raise DataError(
            f"no image of {folder} has a label that the run knows. Its labels: {named or 'none'}; the run's classes: "
            f"{some([shown(name) for name in run.class_names], _SHOWN)}"
        )
    return {
        "recognised": found.said(),
        "accuracy": float((predicted == truth).double().mean()),
        "images": len(truth),
        "accuracy_by_class": _by_class(run, predicted, truth),
        "unknown_classes": dict(unknown),
    }


def _judged(run: TrainedRun, images: ImageSet, unknown: Counter[str] | None = None) -> tuple[Tensor, Tensor]:
    """Predicted and true class of each labelled image, as numbers of the run's classes."""
    numbers = {name: number for number, name in enumerate(run.class_names)}
    known = np.flatnonzero(images.labels != UNKNOWN)
    names = [images.class_names[int(code)] for code in images.labels[known]]
    if unknown is not None:
        unknown.update(name for name in names if name not in numbers)
    kept = np.array([place for place, name in zip(known, names, strict=True) if name in numbers], dtype=np.int64)
    truth = torch.tensor([numbers[name] for name in names if name in numbers], dtype=torch.int64)
    if not len(kept):
        return truth, truth
    part = images.subset(kept)
    if tuple(part.shape) != run.shape:
        raise DataError(f"these samples have the shape {tuple(part.shape)}; this run takes {run.shape}")
    return run.predict_set(part).logits.argmax(-1), truth


def _by_class(run: TrainedRun, predicted: Tensor, truth: Tensor) -> dict[str, float]:
    right = predicted == truth
    return {
        name: float(right[truth == number].double().mean())
        for number, name in enumerate(run.class_names)
        if bool((truth == number).any())
    }
