"""A finished run, loaded for use: predict images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protocon.augment.clean import clean_view_of
from protocon.data.imageset import ArrayImages, FeatureArray, ImageSet
from protocon.errors import DataError, RunError
from protocon.methods import METHODS
from protocon.networks.network import Network
from protocon.runs.layout import MODEL
from protocon.runs.model_file import read_model
from protocon.runs.predict_files import predict_rows
from protocon.runs.predict_set import predict_set
from protocon.settings.resolved_config import ResolvedConfig
from protocon.types import Outputs


@dataclass(frozen=True)
class TrainedRun:
    """A trained network with what is needed to use it."""

    network: Network
    config: ResolvedConfig
    class_names: tuple[str, ...]
    shape: tuple[int, ...]

    @torch.no_grad()
    def predict_proba(self, inputs: Tensor) -> Tensor:
        """Class probabilities (n, C) of uint8 images (n, C, H, W) or embeddings (n, D)."""
        if tuple(inputs.shape[1:]) != self.shape:
            raise DataError(f"inputs of shape {tuple(inputs.shape[1:])} came; this run takes {self.shape}")
        return self._outputs(inputs).logits.softmax(-1)

    def _outputs(self, inputs: Tensor) -> Outputs:
        images = FeatureArray(inputs) if len(self.shape) == 1 else ArrayImages(inputs)
        return self.predict_set(images)

    def predict_set(self, images: ImageSet) -> Outputs:
        """Outputs of a whole ImageSet; an error for a run that was trained without labels."""
        if not METHODS[self.config.method_name].uses_labels:
            raise RunError(
                f"this run's method, {self.config.method_name}, learns without labels, so it knows no classes. "
                "Train a classifier on its encoder: protocon train --init with the run's folder"
            )
        return predict_set(
            self.network,
            images,
            view=clean_view_of(self.shape),
            batch_size=self.config.run.eval_batch_size,
            device=torch.device("cpu"),
        )

    def predict_files(self, paths: Sequence[str | Path]) -> list[dict[str, Any]]:
        """Label and confidence of image files and folders; a file that cannot be read gets an `error` instead.

        `predict_rows` gives the same row by row, without holding all of them.
        """
        return list(predict_rows(self, paths))

    def describe(self, probs: Tensor) -> dict[str, Any]:
        """Label, confidence and the three likeliest classes of one image."""
        values, classes = probs.topk(min(3, len(probs)))
        top = {self.class_names[int(c)]: round(float(v), 4) for v, c in zip(values, classes, strict=True)}
        return {
            "label": self.class_names[int(classes[0])],
            "confidence": round(float(values[0]), 4),
            "top": top,
        }


def load_run(path: str | Path) -> TrainedRun:
    """Load the trained network of a run folder, or of its model.safetensors.

    Examples:
        With the run of the example of `fit`:

        >>> import torch
        >>> from protocon import load_run
        >>> run = load_run("runs/digits")
        >>> run.class_names[:3], run.shape
        (('0', '1', '2'), (1, 8, 8))
        >>> run.predict_proba(torch.zeros(2, 1, 8, 8, dtype=torch.uint8)).shape
        torch.Size([2, 10])
    """
    file = Path(path)
    if file.is_dir():
        file = file / MODEL
    if not file.is_file():
        raise RunError(
            f"{path} has no {MODEL}: it is not a run folder, or its training has not finished "
            "(protocon train --resume continues it)"
        )
    network, config, facts, _ = read_model(file)
    return TrainedRun(network, config, tuple(facts["class_names"]), tuple(facts["shape"]))
