"""The cells of a comparison share data that was loaded once, and features that were computed once."""

import pickle
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protocon.compare import cells, grid
from protocon.compare.cells import Job, run_job
from protocon.compare.pool import Report, Watch
from protocon.compare.request import Cell, Request, build_request
from protocon.data.imageset import ArrayImages, DataBundle, DataHints, FeatureArray
from protocon.data.shared_bundle import share
from protocon.engine.run import fit
from protocon.features.key import images_digest
from protocon.runs.run_data import load_data
from tests.engine.runs import quiet
from tests.features.tiny import NAME, SIDE, save_weights, striped_images, tiny_images

LABELS, REFERENCE, METHOD = 4, "logistic-regression", "fixmatch"


def frozen_grid(folder: Path) -> Request:
    """Two cells on a folder of image files and a frozen encoder."""
    save_weights(folder / "weights.safetensors")
    images, labels = striped_images(90)
    for part, rows in (("train", range(60)), ("test", range(60, 90))):
        for row in rows:
            file = folder / "photos" / part / "abc"[labels[row]] / f"{row}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(images[row]).save(file)
    return build_request(
        methods=[REFERENCE, METHOD],
        labels_per_class=(LABELS,),
        seeds=1,
        settings={
            "data": {"name": "imagefolder", "root": folder / "photos", "image_size": SIDE},
            "network": {"encoder": NAME, "weights": folder / "weights.safetensors", "frozen": True},
            "optim": {"epochs": 2},
            "run": {"cache": folder / "cache", "tensorboard": False, "report": False},
        },
    )


def test_data_are_the_same_from_the_files(tmp_path: Path) -> None:
    images = tiny_images(7)
    bundle = DataBundle(images, tiny_images(3, seed=1), DataHints(flip=True))
    shared = share(bundle, tmp_path)
    assert shared is not None
    assert len(pickle.dumps(shared)) < 3000  # what a process is handed
    opened = shared.open()
    for own, other in ((images, opened.train), (bundle.test, opened.test)):
        assert isinstance(own, ArrayImages)
        assert isinstance(other, ArrayImages)
        assert torch.equal(own.tensor, other.tensor)
        assert other.fingerprint() == own.fingerprint()
        assert images_digest(other) == images_digest(own)
        part = np.array([2, 0])
        assert images_digest(other.subset(part)) == images_digest(own.subset(part))
    opened.train.read(np.arange(7)).zero_()
    opened.train.tensor.zero_()  # type: ignore[attr-defined]
    assert torch.equal(shared.open().train.read(np.arange(7)), images.tensor)


def test_embeddings_are_shared_and_streamed_files_are_not(tmp_path: Path) -> None:
    rows = FeatureArray(np.eye(4, dtype=np.float32), np.zeros(4, dtype=np.int64), ["a"])
    shared = share(DataBundle(rows, None, DataHints(flip=False)), tmp_path)
    assert shared is not None
    assert torch.equal(shared.open().train.read(np.arange(4)), torch.eye(4))
    frozen_grid(tmp_path)
    settings = {"data": {"name": "imagefolder", "root": tmp_path / "photos", "storage": "stream"}}
    config = build_request(methods=[REFERENCE], settings=settings).config(Cell(REFERENCE, 2, 0))
    assert share(load_data(config), tmp_path) is None


def test_a_grid_on_a_frozen_encoder_computes_features_once_and_cells_read_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = frozen_grid(tmp_path)
    alone = fit(request.config(Cell(METHOD, LABELS, 0)), out=tmp_path / "alone", console=quiet())
    shutil.rmtree(tmp_path / "cache")
    capsys.readouterr()

    def run_here(jobs: Sequence[Job], *, workers: int, report: Report, watch: Watch) -> None:  # noqa: ARG001
        assert capsys.readouterr().err.count("computing features of") == 2  # of training and test images
        shutil.rmtree(tmp_path / "photos")
        for job in jobs:
            run_job(job)
            report(job, None)
        said = capsys.readouterr().err
        assert "computing" not in said
        assert said.count("features of 60 images") == said.count("features of 30 images") == len(jobs)

    monkeypatch.setattr(grid, "run_jobs", run_here)
    monkeypatch.setattr(cells, "_print_into", lambda _: None)
    monkeypatch.setattr(cells, "_end_with_parent", lambda: None)
    comparison = grid.compare(request, out=tmp_path / "grid", workers=2)
    assert not comparison.failed
    accuracy = {record.method: record.accuracy for record in comparison.records}
    assert accuracy[METHOD] == alone["test_accuracy"]
    assert accuracy[REFERENCE] is not None
    assert not (tmp_path / "grid" / ".data").exists()
