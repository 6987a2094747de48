"""Memory does not grow with epochs, and a streamed pass holds no more than its window of batches.

`python -m benchmarks.memory` does the same over 200 epochs and 50,000 files.
"""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.memory import FLAT, drift, used_mib
from protocon.data.imageset import FileImages
from protocon.data.labels.label_split import make_split
from protocon.data.loading.loader import Loader
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.engine.loop.trainer import Trainer
from protocon.engine.run import fit
from tests.engine.layouts import save_class
from tests.engine.runs import quiet
from tests.engine.test_pins import config_for


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux's /proc")
def test_memory_is_flat_over_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples: list[float] = []
    evaluate = Trainer.evaluate

    def watched(self: Trainer, epoch: int) -> dict[str, float]:
        row = evaluate(self, epoch)
        samples.append(used_mib())
        return row

    monkeypatch.setattr(Trainer, "evaluate", watched)
    fit(config_for(tmp_path, "epochs=60", "tensorboard=true"), out=tmp_path / "runs", console=quiet())
    assert len(samples) == 60
    assert abs(drift(samples)) <= FLAT


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_streamed_pass_reads_no_further_ahead_than_its_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    for label, name in enumerate(("red", "blue")):
        save_class(tmp_path / name, label, 40)
    options = SourceOptions(root=tmp_path, image_size=8, storage="stream")
    images = DATASETS["imagefolder"](options).train
    assert isinstance(images, FileImages)
    count = multiprocessing.get_context("fork").Value("l", 0)
    read = FileImages.read

    def counted(self: FileImages, indices: np.ndarray) -> Tensor:
        with count.get_lock():
            count.value += len(indices)
        return read(self, indices)

    monkeypatch.setattr(FileImages, "read", counted)
    split = make_split(images, per_class=2)
    loader = Loader(images, split, batch_size=2, mu=1, seed=0, device=torch.device("cpu"), workers=workers)
    steps = 0
    for batch in loader.epoch(0):
        steps += 1
        step = len(batch.labelled) + len(batch.unlabelled)
        # Two batches a worker are ordered ahead; without workers, none.
        assert count.value <= (steps + 2 * workers + workers) * step
    assert steps == loader.steps_per_epoch
    assert count.value == 76 + steps * 2
