"""Held-out runs trained side by side: each as it would be by itself."""

from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.engine.labelling.cross_check import held_out_splits
from protocon.engine.labelling.side_by_side import SideBySide, can_stack, prepare_methods
from protocon.engine.loop.display import Display
from protocon.engine.loop.trainer import build_trainer, predict, train_in_memory
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import Session, build, prepare, settle
from protocon.engine.setup.whole_set import whole_set
from protocon.methods.protocon_frozen import ProtoConFrozen
from protocon.settings.config import build_config
from tests.engine.runs import quiet
from tests.features.tiny import NAME, SIDE, save_weights, striped_images

CPU = torch.device("cpu")


def session_for(place: Path, method: str = "protocon-frozen") -> Session:
    images, labels = striped_images(60)
    known = np.where(np.arange(60) < 14, labels, -1)
    np.savez(place / "data.npz", x=images, y=known)
    save_weights(place / "weights.safetensors")
    config = build_config(
        settings={
            "method_name": method,
            "data": {"name": "arrays", "root": place / "data.npz", "image_size": SIDE},
            "network": {"encoder": NAME, "weights": place / "weights.safetensors", "frozen": True},
            "run": {"cache": place / "cache", "cross_check": 4},
        },
        overrides=("epochs=6", "batch_size=4", "components=16", "network.hidden=16"),
    )
    return prepare(config)


def without(session: Session, number: int) -> Session:
    return build(settle(session.settled.config, session.bundle, split=held_out_splits(session)[number]), session.inputs)


def trained(sessions: list[Session]) -> list[torch.nn.Module]:
    for session in sessions:
        session.method.prepare(whole_set(session))
    runs = SideBySide(sessions, CPU)
    for epoch in range(runs.epochs):
        runs.train_epoch(epoch)
    return runs.networks()


def test_one_run_by_itself_is_the_trainers(tmp_path: Path) -> None:
    session = session_for(tmp_path)
    assert can_stack(session)
    (found,) = trained([without(session, 0)])
    trainer = build_trainer(without(session, 0), build_fabric(session.config))
    display = Display(quiet(), title="", total_epochs=6, steps_per_epoch=trainer.loader.steps_per_epoch)
    train_in_memory(trainer, display)
    expected = dict(trainer.evaluated.named_parameters())
    start = dict(session.network.named_parameters())
    for name, weight in found.named_parameters():
        moved = (expected[name] - start[name]).abs().max()
        assert (weight - expected[name]).abs().max() < 1e-3 * moved, name


def test_many_runs_say_what_each_says_alone(tmp_path: Path) -> None:
    """With 14 labels in four groups, runs differ in their numbers of images, too."""
    session = session_for(tmp_path)
    sessions = [without(session, number) for number in range(len(held_out_splits(session)))]
    assert len({len(one.split.labelled) for one in sessions}) > 1
    for number, network in enumerate(trained(sessions)):
        (alone,) = trained([without(session, number)])
        together, apart = (
            predict(session.bundle.train, network=one, session=sessions[number], device=CPU).logits.softmax(-1)
            for one in (network, alone)
        )
        assert (together - apart).abs().max() < 1e-4


def test_held_out_runs_tell_each_other_how_far_to_trust_and_agree_otherwise(tmp_path: Path) -> None:
    session = session_for(tmp_path)
    groups = range(len(held_out_splits(session)))
    together, apart = ([without(session, number) for number in groups] for _ in range(2))
    prepare_methods(together, CPU)
    for one in apart:
        one.method.prepare(whole_set(one))
    for one, other in zip(together, apart, strict=True):
        mine, lone = one.method, other.method
        assert isinstance(mine, ProtoConFrozen)
        assert isinstance(lone, ProtoConFrozen)
        torch.testing.assert_close(mine.prototype, lone.prototype)  # no part of what held-out labels decide
        assert (mine.neighbourhood.argmax(-1) == lone.neighbourhood.argmax(-1)).float().mean() > 0.9


@pytest.mark.parametrize("method", ["protocon", "fixmatch"])
def test_methods_with_a_memory_or_other_losses_are_not_stacked(method: str, tmp_path: Path) -> None:
    assert not can_stack(session_for(tmp_path, method))
