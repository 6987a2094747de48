"""A finished run, loaded for use: predict images, evaluate on its test set."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from protocon.config import RunConfig, validate
from protocon.data.decode import decode_image
from protocon.data.imageset import ArrayImages, FeatureArray
from protocon.engine.evaluate import predict_set
from protocon.engine.session import load_data
from protocon.engine.views import build_views
from protocon.errors import DataError, ProtoConError, RunError
from protocon.methods import METHODS
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network
from protocon.types import Outputs


@dataclass(frozen=True)
class TrainedRun:
    """A trained network with what is needed to use it."""

    network: Network
    config: RunConfig
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

    def predict_set(self, images: Any) -> Outputs:
        """Outputs of a whole ImageSet."""
        views = build_views(self.config, shape=self.shape, feature_std=None)
        return predict_set(
            self.network,
            images,
            view=views.clean,
            batch_size=self.config.run.eval_batch_size,
            device=torch.device("cpu"),
        )

    def predict_files(self, paths: Sequence[str | Path]) -> list[dict[str, Any]]:
        """Label and confidence of image files; a file that cannot be read gets an `error` instead."""
        if len(self.shape) == 1:
            raise DataError("this run was trained on embeddings; give a .npy or .npz file of them, not images")
        channels, size = self.shape[0], self.shape[-1]
        rows: list[dict[str, Any]] = []
        decoded: list[Tensor] = []
        for path in paths:
            try:
                with Path(path).open("rb") as file:
                    decoded.append(decode_image(file, size=size, grey=channels == 1, name=str(path)))
                rows.append({"file": str(path)})
            except (ProtoConError, OSError) as error:
                rows.append({"file": str(path), "error": str(error)})
        if decoded:
            probs = iter(self.predict_proba(torch.stack(decoded)))
            for row in rows:
                if "error" not in row:
                    row.update(self.describe(next(probs)))
        return rows

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
    """Load the trained network of a run folder (or of its model.safetensors)."""
    file = Path(path)
    if file.is_dir():
        file = file / "model.safetensors"
    if not file.is_file():
        raise RunError(
            f"{path} has no model.safetensors: it is not a run folder, or its training has not finished "
            "(protocon train --resume goes on with it)"
        )
    try:
        with safe_open(file, framework="pt") as content:
            facts = json.loads((content.metadata() or {})["protocon"])
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, ValueError) as error:
        raise RunError(f"{file} is damaged or not a model of this package: {error}") from error
    config = validate(facts["config"])
    shape = tuple(facts["shape"])
    encoder = build_encoder(config.network.encoder, input_shape=shape)
    dim = int(config.network.projection_dim) if METHODS[config.method_name].uses_projector else 0
    channels = shape[0]
    network = Network(
        encoder,
        classes=len(facts["class_names"]),
        projection_dim=dim,
        mean=[0.0] * channels,
        std=[1.0] * channels,
        projector_norm=config.network.projector_norm,
    )
    network.load_state_dict(tensors)
    return TrainedRun(network.to(memory_format=torch.channels_last).eval(), config, tuple(facts["class_names"]), shape)


def evaluate_run(run: TrainedRun) -> dict[str, Any]:
    """Accuracy of a run on its data's test set, overall and by class."""
    test = load_data(run.config).test
    if test is None:
        raise DataError(
            "the run's data has no test set; give test images (a test/ folder, x_test in the array file) "
            "or hold some out with data.test_fraction"
        )
    labels = torch.from_numpy(test.labels.copy())
    known = labels >= 0
    right = run.predict_set(test).logits.argmax(-1)[known] == labels[known]
    by_class = {
        name: float(right[labels[known] == number].double().mean())
        for number, name in enumerate(run.class_names)
        if bool((labels[known] == number).any())
    }
    return {
        "test_accuracy": float(right.double().mean()),
        "test_images": int(known.sum()),
        "accuracy_by_class": by_class,
    }
