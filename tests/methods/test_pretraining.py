"""SimCLR, MoCo, SwAV and DINO: numbers by hand and by lightly, schedules, and collapse that is noticed."""

import importlib.util
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from protocon.augment import SimCLRView
from protocon.augment.solarised import SolarisedView
from protocon.base.draws import normal
from protocon.core.centre import Centre
from protocon.core.contrast import info_nce, key_leak, share_found
from protocon.core.knn import knn_scores
from protocon.core.losses import instance_discrimination_loss
from protocon.core.queue import EmbeddingQueue
from protocon.core.schedules import warmup_cosine
from protocon.core.sinkhorn import sinkhorn
from protocon.core.spread import Spread, Usage
from protocon.engine.loop.trainer import Trainer
from protocon.engine.setup.crop_views import build_crops
from protocon.engine.setup.view_factory import build_views
from protocon.errors import ConfigError
from protocon.methods import METHODS, Problem
from protocon.methods.dino import DINO, DINOConfig
from protocon.methods.moco import MoCo, MoCoConfig
from protocon.methods.needs import Crops
from protocon.methods.swav import SwAV, SwAVConfig
from protocon.networks.ema import MomentumCopy
from protocon.networks.projector import build_projector
from protocon.networks.prototype_head import PrototypeHead
from protocon.settings.auto import resolve_auto
from protocon.settings.config import build_config
from protocon.types import Batch, Outputs, Progress
from tests.core.inputs import same_state, snapshot
from tests.distributed.cases import config_of, train, write_data
from tests.methods import reference_pretraining as plain
from tests.methods.test_toys import steps, trainer_of, weights

PRETRAINING = [name for name, method in METHODS.items() if not method.uses_labels]
ROWS, DIM, K = 6, 5, 7
NOWHERE = Progress(epoch=0, step=0, total_epochs=4, total_steps=40)
PROBLEM = Problem(classes=2, unlabelled=40, labelled_targets=torch.empty(0, dtype=torch.int64), projection_dim=DIM)
needs_lightly = pytest.mark.skipif(
    importlib.util.find_spec("lightly") is None, reason="lightly is not installed: pip install --no-deps lightly"
)


def drawn(key: int, rows: int = ROWS, columns: int = DIM) -> Tensor:
    return normal(torch.arange(rows) + 100 * key, 0, columns).double()


def unit(key: int, rows: int = ROWS, columns: int = DIM) -> Tensor:
    return F.normalize(drawn(key, rows, columns), dim=-1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


class Identity(nn.Module):
    """The views are the projections."""

    def forward(self, x: Tensor) -> Outputs:
        return Outputs(x, F.normalize(x, dim=-1))


def batch_of(*crops: tuple[Tensor, ...]) -> Batch:
    none = torch.empty(0)
    return Batch(none, none, none, none, (), torch.arange(len(crops[0][0])), crops=crops)


# Losses and states


@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_nt_xent(temperature: float) -> None:
    first, second = unit(1), unit(2)
    expected = plain.nt_xent(first.numpy(), second.numpy(), temperature)
    assert float(instance_discrimination_loss(first, second, temperature=temperature)) == pytest.approx(expected)


@needs_lightly
def test_nt_xent_is_lightlys() -> None:
    from lightly.loss import NTXentLoss

    first, second = drawn(1), drawn(2)
    expected = float(NTXentLoss(temperature=0.3)(first, second))
    ours = instance_discrimination_loss(F.normalize(first, dim=-1), F.normalize(second, dim=-1), temperature=0.3)
    assert float(ours) == pytest.approx(expected, rel=1e-6)


def test_moco_and_its_queue() -> None:
    method = MoCo(MoCoConfig(queue_size=8, temperature=0.2), PROBLEM).double()
    queue: list[np.ndarray] = []
    for number in range(5):
        views = drawn(10 + number), drawn(20 + number)
        step = method.step(Identity(), Identity(), batch_of(views), NOWHERE)
        query, key = (F.normalize(view, dim=-1).numpy() for view in views)
        assert step.loss is not None
        assert float(step.loss) == pytest.approx(plain.info_nce(query, key, np.array(queue), 0.2), abs=1e-12)
        found = [q @ k > max((q @ other for other in queue), default=-2) for q, k in zip(query, key, strict=True)]
        assert float(step.terms["found"]) == pytest.approx(np.mean(found))
        method.commit(step.rows, NOWHERE)
        queue = plain.enqueue(queue, key, 8)
        held = {tuple(np.round(row, 9)) for row in method.queue.embeddings.numpy() if row.any()}
        assert held == {tuple(np.round(row, 9)) for row in queue}


@pytest.mark.parametrize(("method", "layers"), [("moco", 1), ("dino", 2)])
def test_heads_of_short_runs_are_normalised_and_published_ones_are_not(method: str, layers: int) -> None:
    for recipe, count in ((f"pretrain-{method}", layers), (f"imagenet-{method}", 0)):
        norm = build_config(recipe=recipe).network.projector_norm
        head = build_projector(8, 4, METHODS[method].projector, norm=norm)
        assert sum(isinstance(layer, nn.BatchNorm1d) for layer in head) == count


def test_mocos_queue_is_too_short_for_an_images_own_earlier_keys() -> None:
    sizes = [MoCo(MoCoConfig(queue_size=size), PROBLEM).summary()["queue_size"] for size in (8, 10, 11, 4096)]
    assert sizes == [8, 10, 10, 10]  # of 40 images


@needs_lightly
def test_moco_is_lightlys_with_a_memory_bank() -> None:
    from lightly.loss import NTXentLoss

    theirs, queue = NTXentLoss(temperature=0.2, memory_bank_size=(8, DIM)), EmbeddingQueue(8, dim=DIM)
    bank = F.normalize(drawn(5, 8).float(), dim=-1)
    theirs.memory_bank.bank = bank.clone()
    queue.add(bank)
    query, key = (F.normalize(drawn(n).float(), dim=-1) for n in (1, 2))
    ours = info_nce(query, key, queue.similarities(query), temperature=0.2)
    assert float(ours) == pytest.approx(float(theirs(query.clone().requires_grad_(), key).detach()), rel=1e-5)


def test_no_gradient_flows_into_keys_or_the_queue() -> None:
    query, key = unit(1).requires_grad_(), unit(2).requires_grad_()
    queue = EmbeddingQueue(4, dim=DIM).double()
    queue.add(unit(3, 4))
    info_nce(query, key, queue.similarities(query), temperature=0.2).backward()  # type: ignore[no-untyped-call]
    assert key.grad is None
    assert query.grad is not None
    assert query.grad.any()


def test_sinkhorn() -> None:
    scores = unit(1, 12) @ unit(2, K).T
    codes = sinkhorn(scores, epsilon=0.05, rounds=3)
    np.testing.assert_allclose(codes.numpy(), plain.sinkhorn(scores.numpy(), 0.05, 3), rtol=1e-9, atol=1e-12)
    many = sinkhorn(scores, epsilon=0.5, rounds=200)
    torch.testing.assert_close(many.sum(0), torch.full((K,), 12 / K).double())
    torch.testing.assert_close(many.sum(1), torch.ones(12).double())


@needs_lightly
def test_sinkhorn_and_swav_are_lightlys() -> None:
    from lightly.loss import SwaVLoss
    from lightly.loss.swav_loss import sinkhorn as theirs

    views = [(unit(n, 12) @ unit(99, K).T).float() for n in range(4)]
    torch.testing.assert_close(sinkhorn(views[0], epsilon=0.05, rounds=3), theirs(views[0]), rtol=1e-4, atol=1e-6)
    method = SwAV(SwAVConfig(prototypes=K), PROBLEM)
    loss = method.step(lambda x: Outputs(x, x[:, :DIM]), Identity(), _two_sizes(views), NOWHERE).loss
    assert loss is not None
    assert float(loss) == pytest.approx(float(SwaVLoss()(views[:2], views[2:])), rel=1e-5)


def _two_sizes(views: list[Tensor]) -> Batch:
    return batch_of(tuple(views[:2]), tuple(views[2:]))


def test_swav() -> None:
    method = SwAV(SwAVConfig(prototypes=K, temperature=0.2), PROBLEM).double()
    views = [unit(n, 9) @ unit(99, K).T for n in range(4)]
    step = method.step(lambda x: Outputs(x, x[:, :DIM]), Identity(), _two_sizes(views), NOWHERE)
    assert step.loss is not None
    assert float(step.loss) == pytest.approx(plain.swav_loss([view.numpy() for view in views], 0.2, 0.05, 3))
    method.commit(step.rows, NOWHERE)
    codes = np.concatenate([plain.sinkhorn(views[n].numpy(), 0.05, 3) for n in (0, 1)])
    assert method.end_epoch(NOWHERE)["prototypes_used"] == pytest.approx(plain.usage(codes))


def test_swavs_queue_takes_part_in_codes_once_it_is_full_and_its_epoch_has_come() -> None:
    method = SwAV(SwAVConfig(prototypes=K, queue_size=8, queue_from_epoch=1), PROBLEM).double()
    head = method.build_networks(_classified())["network"]
    assert isinstance(head, PrototypeHead)
    head.double()
    scores, later = unit(1) @ unit(99, K).T, Progress(1, 10, 4, 40)
    alone = plain.sinkhorn(scores.numpy(), 0.05, 3)
    queue = method.queues[0]
    assert isinstance(queue, EmbeddingQueue)
    queue.add(unit(3, 5))
    np.testing.assert_allclose(method.codes(scores, 0, later).numpy(), alone)  # not full yet
    queue.add(unit(4, 5))
    np.testing.assert_allclose(method.codes(scores, 0, NOWHERE).numpy(), alone)  # too early
    earlier = (queue.embeddings @ head.prototypes.detach().T).numpy()
    together = plain.sinkhorn(np.concatenate([earlier, scores.numpy()]), 0.05, 3)[8:]
    np.testing.assert_allclose(method.codes(scores, 0, later).numpy(), together)
    assert not np.allclose(together, alone)
    np.testing.assert_allclose(method.codes(scores, 1, later).numpy(), alone)  # the other crop's queue is empty
    views = [unit(10 + n) @ unit(99, K).T for n in range(2)]
    step = method.step(lambda x: Outputs(x, x[:, :DIM]), Identity(), batch_of(tuple(views)), NOWHERE)
    method.commit(step.rows, NOWHERE)
    other = method.queues[1]
    assert isinstance(other, EmbeddingQueue)
    torch.testing.assert_close(other.embeddings[:ROWS], views[1][:, :DIM])
    assert (int(queue.received), int(other.received)) == (10 + ROWS, ROWS)
    other.add(unit(5, 8))
    earlier = (other.embeddings @ head.prototypes.detach().T).numpy()
    together = plain.sinkhorn(np.concatenate([earlier, scores.numpy()]), 0.05, 3)[8:]
    np.testing.assert_allclose(method.codes(scores, 1, later).numpy(), together)


def _classified() -> nn.Module:
    network = Identity()
    network.classifier = nn.Linear(2, 2)
    return network


def student_of(views: list[Tensor]) -> Callable[[Tensor], Outputs]:
    """Says of the large and then of the small crops what is given."""
    given = iter([torch.cat(views[:2]), torch.cat(views[2:])])

    def says(_: Tensor) -> Outputs:
        out = next(given)
        return Outputs(out, out[:, :DIM])

    return says


def teacher_of(views: list[Tensor]) -> Callable[[Tensor], Outputs]:
    """Says of the large crops what is given."""
    return lambda _: Outputs(torch.cat(views[:2]), torch.empty(0))


def test_dino_and_its_centre() -> None:
    method = DINO(DINOConfig(prototypes=K), PROBLEM).double()
    centre = np.zeros(K)
    for number in range(3):
        student, teacher = ([0.1 * drawn(50 * number + 10 * who + n, 4, K) for n in range(4)] for who in (1, 2))
        step = method.step(student_of(student), teacher_of(teacher), _two_sizes(student), NOWHERE)
        said, taught = ([view.numpy() for view in views] for views in (student, teacher[:2]))
        assert step.loss is not None
        assert float(step.loss) == pytest.approx(plain.dino_loss(said, taught, centre, 0.1, 0.04))
        method.commit(step.rows, NOWHERE)
        centre = 0.9 * centre + 0.1 * np.concatenate(taught).mean(0)
        np.testing.assert_allclose(method.centre.mean.numpy(), centre)


@needs_lightly
def test_dino_is_lightlys() -> None:
    from lightly.loss import DINOLoss

    theirs = DINOLoss(output_dim=K, warmup_teacher_temp_epochs=0, teacher_temp=0.04)
    method = DINO(DINOConfig(prototypes=K), PROBLEM)
    for number in range(2):
        views = [0.1 * drawn(70 * number + n, 4, K).float() for n in range(4)]
        taught = [view.flip(1) for view in views]
        step = method.step(student_of(views), teacher_of(taught), _two_sizes(views), NOWHERE)
        expected = theirs(taught[:2], views, epoch=1)
        assert step.loss is not None
        assert float(step.loss) == pytest.approx(float(expected), rel=1e-5)
        method.commit(step.rows, NOWHERE)
        torch.testing.assert_close(method.centre.mean, theirs.center.flatten().float(), rtol=1e-5, atol=1e-7)


def test_dino_blurs_and_solarises_its_two_large_crops_as_its_authors_do() -> None:
    config = resolve_auto(
        build_config(recipe="pretrain-dino", overrides=["image_size=96"]),
        shape=(3, 96, 96), flip=True, unlabelled=100, classes=2,
    ).config  # fmt: skip
    method = DINO(DINOConfig(prototypes=K), PROBLEM)
    views = build_views(config, shape=(3, 96, 96), feature_std=None)
    large, small = build_crops(config, method, views, (3, 96, 96))
    first, second = large
    assert isinstance(first, SimCLRView)
    assert isinstance(second, SolarisedView)
    assert isinstance(second.view, SimCLRView)
    assert (first.blur, second.view.blur, second.probability) == (1.0, 0.1, 0.2)
    assert len(small) == 4
    assert all(isinstance(view, SimCLRView) for view in small)
    with pytest.raises(ConfigError, match="blur of 2 crops: expected as many probabilities"):
        Crops("strong", 2, blur=(1.0,))


def test_dinos_teacher_temperature_and_weight_decay_follow_their_schedules() -> None:
    method = DINO(
        DINOConfig(first_teacher_temperature=0.04, teacher_temperature=0.07, teacher_warmup_epochs=2), PROBLEM
    )
    at = [method.temperature(Progress(step // 10, step, 4, 40)) for step in (0, 10, 20, 39)]
    assert at == pytest.approx([0.04, 0.055, 0.07, 0.07])
    decay = [method.weight_decay("network", 0.04, Progress(step // 10, step, 4, 40)) for step in (0, 20, 40)]
    assert decay == pytest.approx([0.04, 0.22, 0.4])


def test_spread_usage_and_centre_by_hand() -> None:
    spread, rows = Spread(DIM).double(), [unit(n, 4) for n in range(3)]
    for part in rows:
        spread.add(part.mean(0, keepdim=True))
    expected = 1 - float(torch.cat(rows).mean(0).square().sum())
    assert spread.close() == pytest.approx(expected)
    assert spread.close() == 1.0  # it began anew
    use = Usage(4)
    use.add(torch.tensor([[1.0, 0, 0, 0]]))
    assert use.close() == pytest.approx(0.0)
    use.add(torch.tensor([[0.5, 0.5, 0, 0]]))
    assert use.close() == pytest.approx(0.5)
    centre = Centre(2, momentum=1.0)
    centre.update(torch.ones(3, 2))
    assert not centre.mean.any()


def test_nearest_neighbours_vote_by_similarity() -> None:
    bank, queries, labels = drawn(1, 30), drawn(2, 10), (torch.arange(30) % 3)
    scores = knn_scores(queries, bank, labels, classes=3, neighbours=7, temperature=0.2)
    expected = [plain.knn_label(row, bank.numpy(), labels.tolist(), 7, 0.2) for row in queries.numpy()]
    assert scores.argmax(1).tolist() == expected
    alone = knn_scores(bank, bank, labels, classes=3, neighbours=1, own=True).argmax(1)
    for place, row in enumerate(bank):
        others = [n for n in range(30) if n != place]
        cosines = [float(F.cosine_similarity(row, bank[n], dim=0)) for n in others]
        assert int(alone[place]) == int(labels[others[int(np.argmax(cosines))]])


def test_warm_up_is_a_line_and_then_half_a_cosine() -> None:
    def at(step: int, **options: float) -> float:
        return warmup_cosine(Progress(step // 10, step, 100, 1000), warmup_epochs=10, **options)

    assert [at(0), at(50), at(100), at(550), at(1000)] == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    assert [at(0, start=0.1), at(50, start=0.1)] == pytest.approx([0.1, 0.55])
    assert at(1000, end=0.02) == pytest.approx(0.02)
    assert warmup_cosine(Progress(0, 1, 4, 40), warmup_epochs=10) == pytest.approx(1 / 4)  # a tenth of the run at most


def test_a_key_that_depends_on_its_batch_is_noticed() -> None:
    keys = unit(1, 20)
    assert float(key_leak(keys, keys)) == pytest.approx(0.0, abs=1e-12)
    other = unit(2, 20)
    assert float(key_leak(keys, other)) == pytest.approx(plain.key_leak(keys.numpy(), other.numpy()))
    assert float(key_leak(keys, other)) == pytest.approx(1.0, abs=0.3)
    assert float(share_found(keys, keys, torch.full((20, 1), 0.99).double())) == 1.0


# In real training


@pytest.mark.parametrize("name", PRETRAINING)
def test_a_step_leaves_the_methods_state_alone_and_commit_changes_it(name: str, data: Path) -> None:
    trainer = trainer_of(data, name)
    method = trainer.session.method
    before = snapshot(method)
    batch = trainer.make_batch(next(iter(trainer.loader.epoch(0))))
    for _ in method.updates(trainer.learners.forwards, batch, trainer.progress(0)):
        pass
    assert same_state(before, snapshot(method))
    list(steps(trainer, 2))
    assert not same_state(before, snapshot(method))
    assert not list(method.parameters())


@pytest.mark.parametrize(("name", "copy"), [("moco", "keys"), ("dino", "teacher")])
def test_the_momentum_copy_is_the_papers_mean_of_the_weights(name: str, copy: str, data: Path) -> None:
    """MoCo keeps 0.99 in every step; DINO's share grows from 0.996 to 1 along half a cosine."""
    trainer = trainer_of(data, name, "epochs=3")
    total = trainer.progress(0).total_steps
    keep = [0.99 if name == "moco" else 1 - 0.004 * (1 + math.cos(math.pi * step / total)) / 2 for step in range(5)]
    seen = [weights(trainer, "network")]
    seen += [weights(trainer, "network") for _ in steps(trainer, 5)]
    found = weights(trainer, f"copy:{copy}")
    moved = [part for part in found if not torch.equal(seen[0][part], seen[-1][part])]
    assert len(moved) > 3
    for part in moved:
        expected = plain.momentum_mean([state[part].double().numpy() for state in seen], keep)
        np.testing.assert_allclose(found[part].double().numpy(), expected, rtol=1e-5, atol=1e-7, err_msg=part)


@needs_lightly
def test_the_momentum_copy_is_lightlys() -> None:
    from lightly.models.utils import update_momentum

    network, theirs = nn.Linear(DIM, K), nn.Linear(DIM, K)
    theirs.load_state_dict(network.state_dict())
    ours = MomentumCopy(network)
    with torch.no_grad():
        for step in range(3):
            network.weight.add_(drawn(step, K).float())
            ours.update(network, 0.9)
            update_momentum(network, theirs, m=0.9)
    torch.testing.assert_close(ours.module.weight, theirs.weight)


def test_swavs_prototypes_stay_on_the_sphere_and_are_fixed_at_first(data: Path) -> None:
    trainer = trainer_of(data, "swav", "fixed_steps=2", "prototypes=9")
    seen = [weights(trainer, "network")["prototypes"]]
    seen += [weights(trainer, "network")["prototypes"] for _ in steps(trainer, 4)]
    moved = [not torch.allclose(a, b, atol=1e-6) for a, b in pairwise(seen)]
    assert moved == [False, False, True, True]
    torch.testing.assert_close(seen[-1].norm(dim=1), torch.ones(9))


def test_dinos_last_layer_is_fixed_for_an_epoch_and_gradients_are_clipped_one_by_one(data: Path) -> None:
    trainer = trainer_of(data, "dino", "prototypes=9", "max_norm=0.001", "weight_decay=0", "final_weight_decay=0")
    before = weights(trainer, "network")
    list(steps(trainer, 2))
    after = weights(trainer, "network")
    assert torch.equal(before["prototypes"], after["prototypes"])
    norms = {
        name: float(weight.grad.norm())
        for name, weight in trainer.learners.main.bare.named_parameters()
        if weight.grad is not None
    }
    assert "prototypes" not in norms
    assert len(norms) > 3
    assert max(norms.values()) < 0.00101


def warned(out: Path, trainer_or_run: str) -> list[str]:
    file = out / trainer_or_run / "warnings.jsonl"
    return [] if not file.is_file() else [line for line in file.read_text().splitlines() if line]


TWO_EPOCHS = ("epochs=2",)


def test_swav_with_prototypes_of_one_value_is_warned_of(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (*TWO_EPOCHS, "prototypes=16", "small_crops=0", "lr=0.001")
    train(config_of(data, "swav", settings), tmp_path, "healthy")
    assert not any("loss_at_chance" in line for line in warned(tmp_path, "healthy"))
    same = torch.full((16, 6), 6**-0.5)
    monkeypatch.setattr("protocon.methods.swav.drawn_prototypes", lambda *_, **__: same.double())
    train(config_of(data, "swav", settings), tmp_path, "collapsed")
    (line,) = [line for line in warned(tmp_path, "collapsed") if "loss_at_chance" in line]
    assert "ln 16" in line


def test_dino_without_centring_is_warned_of(data: Path, tmp_path: Path) -> None:
    head = "projector_norm=false"  # the published one: BatchNorms keep even projections without a centre apart
    rates = ("optimizer=adamw", "lr=0.03", "mu=1")
    settings = (*TWO_EPOCHS, *rates, head, "prototypes=16", "small_crops=2", "fixed_epochs=0")
    train(config_of(data, "dino", settings, images=True), tmp_path, "healthy")
    train(config_of(data, "dino", (*settings, "centre_momentum=1"), images=True), tmp_path, "collapsed")
    assert not any("one_prototype" in line for line in warned(tmp_path, "healthy"))
    assert any("one_prototype" in line for line in warned(tmp_path, "collapsed"))


def test_moco_with_leaking_norms_is_warned_of(data: Path, tmp_path: Path) -> None:
    settings = (*TWO_EPOCHS, "queue_size=32", "mu=1", "optim.batch_size=8")
    for norms in ("averaged", "batch"):
        train(config_of(data, "moco", (*settings, f"key_norms={norms}"), images=True), tmp_path, norms)
    assert not any("leaking_keys" in line for line in warned(tmp_path, "averaged"))
    assert any("leaking_keys" in line for line in warned(tmp_path, "batch"))


def test_moco_keys_of_averaged_norms_depend_on_their_image_alone(data: Path) -> None:
    trainer: Trainer = trainer_of(data, "moco", images=True)
    list(steps(trainer, 1))
    keys = trainer.learners.forwards["keys"]
    ((views, _),) = trainer.make_batch(next(iter(trainer.loader.epoch(0)))).crops
    torch.testing.assert_close(keys(views).embeddings[:3], keys(views[:3]).embeddings, rtol=1e-4, atol=1e-5)


def test_neighbours_of_the_right_class_are_counted_and_the_model_is_an_encoder(data: Path, tmp_path: Path) -> None:
    result = train(config_of(data, "simclr", ("epochs=1",)), tmp_path, "run")
    assert 0 <= result["knn_accuracy"] <= 1
    assert 0 < result["feature_spread"] <= 1
    assert math.isfinite(result["loss"])
    assert (tmp_path / "run" / "model.safetensors").is_file()
    assert not (tmp_path / "run" / "labels.csv").exists()
