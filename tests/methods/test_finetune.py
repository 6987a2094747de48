"""Fine-tuning: rates of its own for each part, kept layers of the head, distillation."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from protocon.errors import ConfigError
from protocon.methods import Problem
from protocon.methods.finetune import Finetune, FinetuneConfig, distillation_loss
from protocon.runs.trained import load_run
from protocon.types import Batch, Outputs, Progress
from tests.distributed.cases import config_of, train, write_data
from tests.methods.harness import gaussian
from tests.methods.test_toys import steps, trainer_of, weights
from tests.reference import cross_entropy, softmax


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(scope="module")
def head(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of SimCLR on the embeddings, with its head of three layers."""
    out = tmp_path_factory.mktemp("simclr")
    train(config_of(data, "simclr", ("epochs=1", "projector_norm=true")), out, "run")
    return out / "run" / "model.safetensors"


def test_distillation_by_hand() -> None:
    student, teacher = gaussian(1, 5, 4).double(), gaussian(2, 5, 4).double()
    expected = np.mean([
        cross_entropy(softmax(t / 0.5), s / 0.5) for t, s in zip(teacher.numpy(), student.numpy(), strict=True)
    ])  # fmt: skip
    assert float(distillation_loss(student, teacher, temperature=0.5)) == pytest.approx(float(expected))


def test_labels_and_teacher_are_weighed_as_in_eq_3() -> None:
    """(1 − α)·L_x + α·L_distil on what network and teacher say."""
    problem = Problem(classes=4, unlabelled=5, labelled_targets=torch.arange(3), projection_dim=0)
    method = Finetune(FinetuneConfig(distil_from=Path("run"), distil_weight=0.3, temperature=0.5), problem)
    labelled, weak, targets = gaussian(1, 3, 4).double(), gaussian(2, 5, 4).double(), torch.tensor([0, 2, 3])
    batch = Batch(labelled, targets, torch.arange(3), weak, (), torch.arange(5))

    def student(x: Tensor) -> Outputs:
        return Outputs(x, x[:, :0])

    def teacher(x: Tensor) -> Outputs:
        return Outputs(2 * x.flip(1), x[:, :0])

    loss = method.step(student, teacher, batch, Progress(0, 0, 3, 21)).loss
    loss_x = np.mean([cross_entropy(np.eye(4)[t], row) for t, row in zip(targets, labelled.numpy(), strict=True)])
    loss_u = np.mean([cross_entropy(softmax(2 * row[::-1] / 0.5), row / 0.5) for row in weak.numpy()])
    assert loss is not None
    assert float(loss) == pytest.approx(float(0.7 * loss_x + 0.3 * loss_u))


def test_encoder_and_classifier_have_rates_of_their_own(data: Path) -> None:
    trainer = trainer_of(data, "finetune", "encoder_rate=0.1", "classifier_rate=5", "momentum=0", "weight_decay=0")
    list(steps(trainer, 1))
    base = trainer.learners.learning_rate("network", Progress(0, 0, 3, 21))
    optimizer = trainer.learners.main.optimizer
    rates = {
        id(weight): group["lr"] / base for group in optimizer.param_groups for weight in group["params"]
    }  # fmt: skip
    for name, weight in trainer.learners.main.bare.named_parameters():
        assert rates[id(weight)] == pytest.approx(5.0 if name.startswith("classifier") else 0.1), name
    fixed = trainer_of(data, "finetune", "encoder_rate=0")
    before = weights(fixed, "network")
    list(steps(fixed, 2))
    after = weights(fixed, "network")
    same = {name: torch.equal(before[name], after[name]) for name in before}
    assert all(same[name] for name in same if name.startswith("encoder."))
    assert not same["classifier.weight"]


def test_swavs_schedule_falls_by_a_fifth_twice(data: Path) -> None:
    method = trainer_of(data, "finetune", "schedule=steps").session.method
    at = [method.learning_rate("network", 1.0, Progress(step, step, 20, 20)) for step in (0, 11, 12, 15, 16, 19)]
    assert at == pytest.approx([1, 1, 0.2, 0.2, 0.04, 0.04])


def test_the_first_layer_of_the_head_is_kept_used_and_saved(data: Path, head: Path, tmp_path: Path) -> None:
    settings = ("epochs=1", "head_layers=1", f"network.weights={head}", "encoder_rate=0.1")
    trainer = trainer_of(data, "finetune", *settings)
    own, given = weights(trainer, "network"), load_file(head)
    assert torch.equal(own["kept.0.weight"], given["projector.0.weight"].float())
    assert not any(name.startswith("kept.3") for name in own)
    train(config_of(data, "finetune", settings), tmp_path, "run")
    run = load_run(tmp_path / "run")
    assert run.network.kept is not None
    x = gaussian(1, 4, 8)
    features = run.network.kept(run.network.encoder((x - run.network.mean) / run.network.std))
    torch.testing.assert_close(run.predict_proba(x), run.network.classifier(features).softmax(-1))


def test_kept_layers_need_a_run_that_has_them(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs --init"):
        trainer_of(data, "finetune", "head_layers=1")
    train(config_of(data, "supervised", ("epochs=1",)), tmp_path, "run")
    with pytest.raises(ConfigError, match="no such head"):
        trainer_of(data, "finetune", "head_layers=1", f"network.weights={tmp_path / 'run' / 'model.safetensors'}")


def test_a_finished_run_teaches_on_unlabelled_images(data: Path, tmp_path: Path) -> None:
    train(config_of(data, "supervised", ("epochs=3",)), tmp_path, "teacher")
    settings = ("epochs=3", f"distil_from={tmp_path / 'teacher'}", "classifier_rate=1")
    train(config_of(data, "finetune", settings), tmp_path, "student")
    teacher, student = load_run(tmp_path / "teacher"), load_run(tmp_path / "student")
    x = torch.from_numpy(np.load(data / "embeddings.npz")["x"]).float()
    same = (teacher.predict_proba(x).argmax(-1) == student.predict_proba(x).argmax(-1)).double().mean()
    assert float(same) > 0.8
    assert not torch.equal(teacher.network.classifier.weight, student.network.classifier.weight)
