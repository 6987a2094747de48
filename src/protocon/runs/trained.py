"""A finished run, loaded for use: predict images, evaluate on its test set."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from protocon.data.imageset import ArrayImages, FeatureArray
from protocon.engine.loop.metrics import predict_set
from protocon.engine.setup.session import load_data, trained_part
from protocon.engine.setup.view_factory import build_views
from protocon.errors import DataError, ProtoConError, RunError
from protocon.methods import METHODS
from protocon.networks.encoders import build_encoder
from protocon.networks.feature_space import Kind, empty_space
from protocon.networks.frozen import stack, with_space_names
from protocon.networks.network import Network
from protocon.runs.predict_files import predict_rows
from protocon.settings.config import RunConfig, validate
from protocon.settings.legacy import with_old_values
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
        file = file / "model.safetensors"
    if not file.is_file():
        raise RunError(
            f"{path} has no model.safetensors: it is not a run folder, or its training has not finished "
            "(protocon train --resume goes on with it)"
        )
    try:
        with safe_open(file, framework="pt") as content:
            facts = json.loads((content.metadata() or {})["protocon"])
            # ProtoConClassifier keeps more in its files than the network.
            own = [name for name in content.keys() if not name.startswith("estimator.")]  # noqa: SIM118
            tensors = {name: content.get_tensor(name) for name in own}
        return _build(facts, tensors)
    except (LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError, *_FOREIGN) as error:
        raise RunError(f"{file} is damaged or not a model of this package: {str(error)[:300]}") from error


_FOREIGN = (SafetensorError, ProtoConError)


def _build(facts: dict[str, Any], tensors: dict[str, Tensor]) -> TrainedRun:
    """The network that a model file describes."""
    config = validate(with_old_values(facts["config"]))
    shape, names = tuple(facts["shape"]), tuple(facts["class_names"])
    if not shape or not all(type(side) is int and 0 < side < 2**20 for side in shape):
        raise ValueError(f"an input shape of {shape}")
    if len(names) < 2 or not all(isinstance(name, str) for name in names):
        raise ValueError(f"class names {names[:5]}")
    blocks = 0 if config.network.pooled_blocks == "auto" else config.network.pooled_blocks
    encoder = build_encoder(config.network.encoder, input_shape=shape, pooled_blocks=blocks)
    if config.network.frozen:
        tensors = with_space_names(tensors)
        components = len(tensors.get("encoder.space.matrix", torch.zeros(1, 1)).T)
        trained = build_encoder(trained_part(config), input_shape=(components,))
        kind: Kind = "roots" if "encoder.space.shift" in tensors else "standard"
        encoder = stack(encoder, trained, empty_space(kind, encoder.parts or (encoder.features,), components))
    dim = int(config.network.projection_dim) if METHODS[config.method_name].uses_projector else 0
    channels = shape[0]
    network = Network(
        encoder,
        classes=len(names),
        projection_dim=dim,
        mean=[0.0] * channels,
        std=[1.0] * channels,
        projector_norm=config.network.projector_norm,
    )
    network.load_state_dict(tensors)
    return TrainedRun(network.to(memory_format=torch.channels_last).eval(), config, names, shape)


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
