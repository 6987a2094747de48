"""Where networks learn from a frozen encoder's features, references do too."""

from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.compare.cells import Job, run_reference
from protocon.compare.request import Cell, Request, build_request
from protocon.engine.setup.encode import FeatureInputs, clean_features
from protocon.engine.setup.session import prepare
from protocon.references import REFERENCES, Task, reference_accuracy
from tests.engine.runs import quiet
from tests.features.tiny import NAME, SIDE, save_weights, striped_images

CELL = Cell("logistic-regression", 4, 0)


@pytest.fixture
def request_on_features(tmp_path: Path) -> Request:
    save_weights(tmp_path / "weights.safetensors")
    images, labels = striped_images(150)
    np.savez(tmp_path / "data.npz", x=images[:120], y=labels[:120], x_test=images[120:], y_test=labels[120:])
    network = (f"network.encoder={NAME}", f"network.weights={tmp_path / 'weights.safetensors'}", "network.frozen=true")
    return build_request(
        methods=[CELL.method],
        settings={"data": {"name": "arrays", "root": tmp_path / "data.npz"}},
        overrides=(*network, f"image_size={SIDE}", f"run.cache={tmp_path / 'cache'}"),
    )


def test_references_learn_from_what_the_encoder_says_of_clean_images(
    request_on_features: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = request_on_features.config(CELL)
    session = prepare(config)
    bundle = clean_features(session.settled, quiet(), torch.device("cpu"))
    assert isinstance(session.inputs, FeatureInputs)
    encoder = session.inputs.encoder
    images = session.bundle.train.read(np.arange(120)).float() / 255
    with torch.no_grad():
        expected = encoder.module((images - encoder.mean[:, None, None]) / encoder.std[:, None, None])
    assert bundle.train.shape == (encoder.features,)
    torch.testing.assert_close(bundle.train.read(np.arange(120)), expected, atol=0.02, rtol=0.01)  # half precision
    assert bundle.train.ids == session.bundle.train.ids
    assert np.array_equal(bundle.train.labels, session.bundle.train.labels)

    job = Job(CELL, config, folder=tmp_path / "cells", log=tmp_path / "x.log")
    run_reference(job)
    found = job.result()
    assert found is not None
    assert found.items() >= reference_accuracy(CELL.method, bundle, session.split).items()

    asked: list[Task] = []

    def first_class(task: Task) -> np.ndarray:
        asked.append(task)
        return np.zeros(len(task.test), dtype=np.int64)

    monkeypatch.setitem(REFERENCES, CELL.method, first_class)
    run_reference(job)
    (task,) = asked
    assert task.labelled.shape == (12, encoder.features)
    assert task.test.shape == (30, encoder.features)
