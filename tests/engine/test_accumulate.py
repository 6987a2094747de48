"""A step in parts is the step in one: the same gradients, the same state, less memory at a time."""

from pathlib import Path

import pytest
import torch

from protocon.data.loading.loader import RawBatch
from protocon.engine.loop.accumulate import parts_of
from protocon.engine.loop.trainer import Trainer, build_trainer, unwrap
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import prepare
from protocon.settings.config import build_config

SETTINGS = ("network.encoder=mlp-16", "network.projector_norm=false", "batch_size=6", "epochs=4", "accelerator=cpu")


def trainer_of(root: Path, method: str, *overrides: str) -> Trainer:
    settings = {"method_name": method, "data": {"name": "arrays", "root": root, "labels_per_class": 3}}
    config = build_config(settings=settings, overrides=(*SETTINGS, *overrides))
    return build_trainer(prepare(config), build_fabric(config))


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    rng = np.random.default_rng(0)
    labels = np.arange(150) % 3
    file = tmp_path_factory.mktemp("features") / "data.npz"
    np.savez(file, x=(rng.normal(size=(150, 8)) + 2 * np.eye(3, 8)[labels]).astype(np.float32), y=labels)
    return file


def train(trainer: Trainer, epochs: int) -> Trainer:
    trainer.network.train()
    for epoch in range(epochs):
        for raw in trainer.loader.epoch(epoch):
            trainer.train_step(raw, epoch)
        trainer.session.method.end_epoch(trainer.progress(epoch))
    return trainer


@pytest.mark.parametrize("method", ["protocon", "fixmatch-da", "supervised", "softmatch"])
def test_parts_add_up_to_the_whole(features: Path, method: str) -> None:
    whole = train(trainer_of(features, method), 3)
    parts = train(trainer_of(features, method, "optim.accumulate=3"), 3)
    start = unwrap(trainer_of(features, method).network).state_dict()
    for name, value in unwrap(whole.network).state_dict().items():
        torch.testing.assert_close(unwrap(parts.network).state_dict()[name], value, rtol=1e-4, atol=1e-5)
    assert any(not torch.equal(start[n], v) for n, v in unwrap(whole.network).state_dict().items())
    states = (part.session.method.state_dict() for part in (whole, parts))
    for one, other in zip(*(state.values() for state in states), strict=True):
        if not one.is_floating_point():
            assert torch.equal(one, other)


def test_slices_hold_every_row_once_and_weigh_by_their_length(features: Path) -> None:
    raw: RawBatch = next(iter(trainer_of(features, "fixmatch").loader.epoch(0)))
    parts = parts_of(raw, 4)
    assert torch.equal(torch.cat([part.index for part in parts]), raw.index)
    assert torch.equal(torch.cat([part.unlabelled for part in parts]), raw.unlabelled)
    assert torch.equal(torch.cat([part.labelled_keys for part in parts]), raw.labelled_keys)
    assert len({len(part.targets) for part in parts}) == 2  # 6 rows in 4 parts
    assert sum(part.share for part in parts) == pytest.approx(4 * raw.share)
    weighted = sum(float(part.unlabelled.mean(0).sum()) * part.share for part in parts) / 4
    assert weighted == pytest.approx(float(raw.unlabelled.mean(0).sum()), rel=1e-4)


def test_a_compiled_network_trains_as_the_bare_one(features: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    import torch._dynamo.config

    if shutil.which("g++") is None and shutil.which("c++") is None:
        pytest.skip("torch.compile needs a C++ compiler")
    # Batches are of two sizes: one program for all sizes, not one for the first and then another for the rest.
    monkeypatch.setattr(torch._dynamo.config, "assume_static_by_default", False)
    bare = train(trainer_of(features, "fixmatch"), 2)
    compiled = train(trainer_of(features, "fixmatch", "run.compile=true"), 2)
    assert type(unwrap(compiled.network)) is type(unwrap(bare.network))
    inner = getattr(compiled.network, "_forward_module", compiled.network)  # inside Fabric's wrapper, if there is one
    assert hasattr(inner, "_orig_mod"), "the network is not compiled"
    for name, value in unwrap(bare.network).state_dict().items():
        torch.testing.assert_close(unwrap(compiled.network).state_dict()[name], value, rtol=1e-3, atol=1e-4)
