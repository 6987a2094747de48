"""What the contract of a method promises beyond one network and one update, shown on the toys in real training."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from protocon.engine.loop.checkpoint import load_checkpoint
from protocon.engine.loop.trainer import Trainer, build_trainer
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import prepare
from protocon.errors import ConfigError, RunError, TrainingError
from protocon.estimator.classifier import ProtoConClassifier
from protocon.methods.needs import Crops, Momentum
from protocon.runs.trained import load_run
from protocon.types import Progress, Step, Update
from tests.core.inputs import same_state, snapshot
from tests.distributed.cases import config_of, train, write_data
from tests.distributed.stopping import StoppedError, before_step, die
from tests.engine.kills import assert_same_run
from tests.methods.toys import TOYS, Distilled, Taught

pytestmark = pytest.mark.usefixtures("toys")
OFTEN = "checkpoint_minutes=0.0000001"  # after every step


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def trainer_of(data: Path, method: str, *overrides: str, images: bool = False) -> Trainer:
    config = config_of(data, method, ("run.precision=32-true", *overrides), images=images)
    return build_trainer(prepare(config), build_fabric(config))


def steps(trainer: Trainer, count: int) -> Iterator[dict[str, Tensor]]:
    """Train so many steps; the terms of each."""
    trainer.learners.train()
    for raw in list(trainer.loader.epoch(0))[:count]:
        yield trainer.train_step(raw, 0)[0].terms


def weights(trainer: Trainer, part: str) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.state()[part].items()}


def test_a_second_update_sees_what_the_first_did(data: Path) -> None:
    trainer = trainer_of(data, "taught")
    before = weights(trainer, "network:student"), weights(trainer, "network:teacher")
    (terms,) = steps(trainer, 1)
    assert abs(float(terms["gain"])) > 1e-4
    after = weights(trainer, "network:student"), weights(trainer, "network:teacher")
    assert not any(same_state(old, new) for old, new in zip(before, after, strict=True))

    fresh = trainer_of(data, "taught")
    batch = fresh.make_batch(next(iter(fresh.loader.epoch(0))))
    updates = fresh.session.method.updates(fresh.learners.forwards, batch, fresh.progress(0))
    assert [next(updates).network, next(updates).network] == ["student", "teacher"]
    with pytest.raises(StopIteration) as end:
        next(updates)
    assert float(end.value.value.terms["gain"]) == 0.0  # nobody took the student's step


def test_each_network_has_its_own_optimiser(data: Path) -> None:
    trainer = trainer_of(data, "taught", "teacher_lr=0.004")
    list(steps(trainer, 2))
    state = trainer.state()
    assert "0.momentum_buffer" in state["optimizer:student"]
    assert not state["optimizer:teacher"]  # it has no momentum
    rates = {name: one.optimizer.param_groups[0]["lr"] for name, one in trainer.learners.learners.items()}
    assert rates["student"] == pytest.approx(50 * rates["teacher"])
    assert rates["student"] < 0.2  # the schedule is on its way


def test_an_update_is_clipped_as_it_says(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = {}
    for limit in (1.0, 1e-3):
        trainer = trainer_of(data, "taught", "weight_decay=0")
        apply = trainer.learners.apply

        def clipped(update: Update, progress: Progress, apply: object = apply, limit: float = limit) -> None:
            norm = limit if update.network == "teacher" else None
            apply(Update(update.loss, update.network, max_norm=norm), progress)  # type: ignore[operator]

        monkeypatch.setattr(trainer.learners, "apply", clipped)
        before = weights(trainer, "network:teacher")
        list(steps(trainer, 1))
        after = weights(trainer, "network:teacher")
        moved[limit] = sum(float((after[name] - before[name]).double().square().sum()) for name in before) ** 0.5
    rate = trainer_of(data, "taught").learners.learning_rate("teacher", Progress(0, 0, 3, 21))
    assert moved[1e-3] == pytest.approx(1e-3 * rate, rel=0.05)
    assert moved[1.0] > 2 * moved[1e-3]


def test_a_momentum_copy_follows_its_schedule_and_weight_decay_its_own(data: Path) -> None:
    trainer = trainer_of(data, "distilled")
    method = trainer.session.method
    assert isinstance(method, Distilled)
    list(steps(trainer, 2))
    before, progress = weights(trainer, "copy:teacher"), trainer.progress(0)
    raw = list(trainer.loader.epoch(0))[2]
    trainer.train_step(raw, 0)
    network, after = weights(trainer, "network"), weights(trainer, "copy:teacher")
    decay = method.copies()["teacher"].decay(progress)
    assert 0.9 < decay < 1.0
    for name in ("prototypes", "backbone.projector.0.weight"):
        torch.testing.assert_close(after[name], decay * before[name] + (1 - decay) * network[name])
        assert not torch.equal(after[name], before[name])
    groups = trainer.learners.main.optimizer.param_groups
    decays = [group["weight_decay"] for group in groups]
    assert decays == [pytest.approx(method.weight_decay("network", 5e-4, progress)), 0.0]
    assert decays[0] > 5e-4


def test_crops_have_two_sizes_and_there_are_no_labels(data: Path) -> None:
    trainer = trainer_of(data, "distilled", images=True)
    raw = next(iter(trainer.loader.epoch(0)))
    batch = trainer.make_batch(raw)
    rows = len(raw.index)
    large, small = batch.crops
    assert [tuple(view.shape) for view in large] == [(rows, 1, 16, 16)] * 2
    assert [tuple(view.shape) for view in small] == [(rows, 1, 8, 8)] * 2
    assert not torch.equal(*large)
    assert not torch.equal(*small)
    assert len(batch.labelled) == len(batch.targets) == len(batch.weak) == len(batch.strong) == 0
    assert len(trainer.session.split.unlabelled) == len(trainer.session.bundle.train) == 45


def test_a_support_set_is_balanced_and_its_views_differ(data: Path) -> None:
    trainer = trainer_of(data, "supported")
    support = trainer.make_batch(next(iter(trainer.loader.epoch(0)))).support
    assert support is not None
    assert support.targets.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert len(set(support.index[:3].tolist())) == 2  # two labels per class: one repeats
    assert not torch.equal(*support.views)
    same = int(support.index[0]) == support.index[:3]
    repeated = support.views[0][:3][same]
    assert len(repeated) == 1 or not torch.equal(repeated[0], repeated[1])


@pytest.mark.parametrize("name", TOYS)
def test_a_step_leaves_the_methods_state_alone_and_commit_changes_it(name: str, data: Path) -> None:
    trainer = trainer_of(data, name)
    method = trainer.session.method
    before = snapshot(method)
    batch = trainer.make_batch(next(iter(trainer.loader.epoch(0))))
    for _ in method.updates(trainer.learners.forwards, batch, trainer.progress(0)):
        pass
    assert same_state(before, snapshot(method))
    list(steps(trainer, 1))
    assert same_state(before, snapshot(method)) == (not before)
    assert not list(method.parameters())


@pytest.mark.parametrize(("name", "part"), [("distilled", "network"), ("supported", "network")])
def test_accumulated_parts_add_up_to_the_step(name: str, part: str, data: Path) -> None:
    ends = []
    for parts in (1, 3):
        trainer = trainer_of(data, name, f"optim.accumulate={parts}")
        start = weights(trainer, part)
        list(steps(trainer, 2))
        ends.append(weights(trainer, part))
    assert not same_state(start, ends[0])
    for key, value in ends[0].items():
        torch.testing.assert_close(ends[1][key], value, rtol=1e-4, atol=1e-5)


def test_each_update_of_several_is_accumulated(data: Path) -> None:
    ends = []
    for parts in (1, 3):
        trainer = trainer_of(data, "taught", f"optim.accumulate={parts}")
        list(steps(trainer, 1))
        ends.append(weights(trainer, "network:student"))
    for key, value in ends[0].items():
        torch.testing.assert_close(ends[1][key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", TOYS)
def test_stopped_within_an_epoch_and_resumed_it_has_the_same_bits(name: str, data: Path, tmp_path: Path) -> None:
    config = config_of(data, name, ("epochs=2", OFTEN))
    train(config, tmp_path, "whole")
    with before_step(10, die), pytest.raises(StoppedError):
        train(config, tmp_path, "stopped")
    assert (tmp_path / "stopped" / "checkpoints" / "epoch-00001-step-000003.safetensors").is_file()
    train(config, tmp_path, "stopped", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")


def test_the_model_is_the_evaluated_copy_without_what_the_method_added(data: Path, tmp_path: Path) -> None:
    result = train(config_of(data, "distilled", ("epochs=1",)), tmp_path, "run")
    assert result["test_accuracy"] is None
    run = load_run(tmp_path / "run")
    with pytest.raises(RunError, match="knows no classes"):
        run.predict_proba(torch.zeros(2, 8))
    saved = run.network.state_dict()
    last = load_checkpoint(tmp_path / "run" / "checkpoints" / "epoch-00001.safetensors")
    expected = {
        name.removeprefix("backbone."): t for name, t in last.part("copy:teacher").items() if "backbone." in name
    }
    assert saved.keys() == expected.keys()
    assert all(torch.equal(saved[name], tensor.to(saved[name].dtype)) for name, tensor in expected.items())
    moved = last.part("network")["backbone.projector.0.weight"].float()
    assert not torch.equal(saved["projector.0.weight"], moved)
    assert not (tmp_path / "run" / "labels.csv").exists()


def test_mistakes_in_names_and_settings_are_told_before_training(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Taught, "main", "pupil")
        with pytest.raises(ConfigError, match="main names 'pupil', but there is only student, teacher"):
            trainer_of(data, "taught")
    with monkeypatch.context() as patch:
        patch.setattr(Taught, "optim", lambda *_: {"learning_rate": 1.0})
        with pytest.raises(ConfigError, match="wrong optim settings for network student"):
            trainer_of(data, "taught")
    with monkeypatch.context() as patch:
        patch.setattr(Taught, "copies", lambda _: {"teacher": Momentum(lambda _: 0.9, of="student")})
        with pytest.raises(ConfigError, match="the name teacher twice"):
            trainer_of(data, "taught")
    trainer = trainer_of(data, "taught")
    with pytest.raises(ConfigError, match="updates 'network', but its networks are student, teacher"):
        trainer.learners.begin(Update(torch.zeros(())))
    with pytest.raises(ConfigError, match="a share of the side"):
        Crops("weak", 1, size=1.5)
    assert [Crops("weak", 1, size=96).side(224), Crops("weak", 1, size=0.5).side(225)] == [96, 112]


def test_a_classifier_refuses_a_method_that_knows_no_classes() -> None:
    with pytest.raises(ValueError, match="learns without labels"):
        ProtoConClassifier(method="distilled").fit([[0.0, 1.0], [1.0, 0.0]] * 3, [0, 1] * 3)


def test_a_broken_step_without_labels_names_the_unlabelled_images_alone(data: Path) -> None:
    trainer = trainer_of(data, "distilled")
    meter = trainer.meter(0)
    raw = next(iter(trainer.loader.epoch(0)))
    meter.add(Step(None, {"loss": torch.tensor(float("nan"))}), {}, raw)
    with pytest.raises(TrainingError, match=r"on images: unlabelled \w+"):
        meter.check_finite()
