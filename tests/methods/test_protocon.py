"""ProtoCon as a whole: its equivalences, its first epoch, its options."""

import copy

import pytest
import torch
from torch import Tensor, nn

from protocon.methods.base import Method, Problem
from protocon.methods.fixmatch import FixMatchDA, FixMatchDAConfig
from protocon.methods.needs import Facts
from protocon.methods.protocon import ProtoCon
from protocon.methods.protocon_config import ProtoConConfig
from protocon.networks.encoders import Encoder
from protocon.networks.network import Network
from protocon.types import Batch, Progress

CLASSES, LABELLED, UNLABELLED, FEATURES = 4, 8, 60, 6
FACTS = Facts(UNLABELLED, CLASSES)


def build_network() -> Network:
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.ReLU())
    return Network(Encoder(body, 16), classes=CLASSES, projection_dim=8, mean=[0.0] * FEATURES, std=[1.0] * FEATURES)


def problem() -> Problem:
    return Problem(CLASSES, UNLABELLED, torch.arange(LABELLED) % CLASSES, projection_dim=8)


def batches(count: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    centres = 3 * torch.randn(CLASSES, FEATURES, generator=generator)
    classes = torch.arange(UNLABELLED) % CLASSES
    images = centres[classes] + torch.randn(UNLABELLED, FEATURES, generator=generator)
    result = []
    for _ in range(count):
        index = torch.randperm(UNLABELLED, generator=generator)[:30]
        targets = torch.arange(LABELLED) % CLASSES
        noise = torch.randn(30, FEATURES, generator=generator)
        result.append(
            Batch(
                labelled=centres[targets] + torch.randn(LABELLED, FEATURES, generator=generator),
                targets=targets,
                labelled_index=torch.arange(LABELLED),
                weak=images[index],
                strong=(images[index] + noise,),
                index=index,
            )
        )
    return result


def train(method: Method, network: Network, steps: list[Batch], *, first_epoch: int = 1) -> list[dict[str, Tensor]]:
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    log = []
    for number, batch in enumerate(steps):
        progress = Progress(first_epoch + number // 2, number, 10, 20)
        step = method.step(network, network, batch, progress)
        if step.loss is not None:
            optimizer.zero_grad()
            torch.autograd.backward(step.loss)
            optimizer.step()
        method.commit(step.rows, progress)
        if number % 2:
            method.end_epoch(progress)
        log.append(step.terms)
    return log


@pytest.mark.parametrize("joint", [True, False])
def test_without_clusters_and_extra_losses_it_is_fixmatch_da_with_soft_labels(joint: bool) -> None:
    ours, theirs = build_network(), build_network()
    proto = ProtoCon(
        ProtoConConfig(alpha=1.0, lambda_p=0, lambda_c=0, threshold=0.6, joint_batchnorm=joint).settled(FACTS, {}),
        problem(),
    )
    fix = FixMatchDA(
        FixMatchDAConfig(soft_labels=True, threshold=0.6, joint_batchnorm=joint).settled(FACTS, {}), problem()
    )
    steps = batches(8)
    log_ours, log_theirs = train(proto, ours, steps), train(fix, theirs, steps)
    for a, b in zip(log_ours, log_theirs, strict=True):
        for name in ("loss_x", "loss_u", "retention"):
            assert torch.equal(a[name], b[name])
    for (name, mine), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        if not name.startswith("projector"):
            assert torch.equal(mine, other), name
    assert max(float(row["loss_u"]) for row in log_ours) > 0


def test_with_clusters_it_is_something_else() -> None:
    ours, theirs = build_network(), build_network()
    train(
        ProtoCon(ProtoConConfig(alpha=0.8, lambda_p=0, lambda_c=0, threshold=0.6).settled(FACTS, {}), problem()),
        ours,
        batches(8),
    )
    train(
        FixMatchDA(FixMatchDAConfig(soft_labels=True, threshold=0.6).settled(FACTS, {}), problem()), theirs, batches(8)
    )
    assert not torch.equal(ours.classifier.weight, theirs.classifier.weight)


def test_observing_first_epoch_fills_the_banks_and_learns_nothing() -> None:
    network = build_network()
    weights = copy.deepcopy(dict(network.named_parameters()))
    method = ProtoCon(ProtoConConfig(first_epoch="observe").settled(FACTS, {}), problem())
    train(method, network, batches(2), first_epoch=0)
    for name, parameter in network.named_parameters():
        assert torch.equal(parameter, weights[name])
    assert (method.bank.label >= 0).sum() >= 30
    assert method.prototypes.prototypes.norm(dim=-1).allclose(torch.ones(CLASSES))
    assert not method.cluster_table.allclose(torch.full_like(method.cluster_table, 1 / CLASSES))


def test_supervised_first_epoch_learns_from_labels_alone() -> None:
    network = build_network()
    weights = copy.deepcopy(dict(network.named_parameters()))
    train(
        ProtoCon(ProtoConConfig(first_epoch="supervised").settled(FACTS, {}), problem()),
        network,
        batches(2),
        first_epoch=0,
    )
    moved = {name for name, p in network.named_parameters() if not torch.equal(p, weights[name])}
    assert "classifier.weight" in moved
    assert not any(name.startswith("projector") for name in moved)


@pytest.mark.parametrize("joint", [True, False])
def test_no_gradient_flows_through_the_weak_view(joint: bool) -> None:
    network = build_network().eval()  # so that statistics do not couple the views
    method = ProtoCon(ProtoConConfig(joint_batchnorm=joint, threshold=0.3).settled(FACTS, {}), problem())
    train(method, network, batches(4))
    batch = batches(1)[0]
    weak = batch.weak.clone().requires_grad_()
    strong = batch.strong[0].clone().requires_grad_()
    step = method.step(
        network,
        network,
        Batch(batch.labelled, batch.targets, batch.labelled_index, weak, (strong,), batch.index),
        Progress(3, 6, 10, 20),
    )
    assert step.loss is not None
    torch.autograd.backward(step.loss)
    assert weak.grad is None or not weak.grad.any()
    assert strong.grad is not None
    assert strong.grad.any()


def test_centroids_move_every_batch_in_warmup_and_every_epoch_after() -> None:
    for warmup, moves_in_batch in ((5, True), (0, False)):
        method = ProtoCon(ProtoConConfig(centroid_warmup=warmup).settled(FACTS, {}), problem())
        before = method.kmeans.centroids.clone()
        batch = batches(1)[0]
        network = build_network()
        progress = Progress(1, 0, 10, 20)
        method.commit(method.step(network, network, batch, progress).rows, progress)
        assert torch.equal(method.kmeans.centroids, before) is not moves_in_batch
        method.end_epoch(progress)
        assert not torch.equal(method.kmeans.centroids, before)


@pytest.mark.parametrize(
    "change",
    [
        {"prototype_labelled": False},
        {"prototype_reliable_only": True},
        {"prototype_target": "soft"},
        {"center": True},
        {"self_supervision": "instance-discrimination"},
        {"heads": 2},
        {"history_fraction": 0.5},
        {"alignment": "none"},
        {"alignment": "dual"},
        {"alignment": "dual", "alignment_rate": 5.0},
        {"alignment_momentum": 0.9},
        {"class_prior": (0.7, 0.1, 0.1, 0.1)},
        {"sharpening": 1.0},
        {"lambda_u": 0.5},
        {"lambda_p": 0.5},
        {"lambda_c": 0.5},
        {"temperature": 0.5},
        {"neighbours": 20},
        {"dual_rate": 9.0},
        {"dual_bound": 0.01},
        {"size_ratio": 0.0},
        {"centroid_warmup": 0},
        {"joint_batchnorm": True},
        {"threshold": 0.5},
    ],
)
def test_every_option_does_something(change: dict[str, object]) -> None:
    base: dict[str, object] = {"neighbours": 5, "threshold": 0.7}
    results = []
    for settings in (base, base | change):
        network = build_network()
        method = ProtoCon(ProtoConConfig.model_validate(settings).settled(FACTS, {}), problem())
        train(method, network, batches(12))
        results.append(torch.cat([p.detach().flatten() for p in network.parameters()]))
    assert not torch.equal(results[0], results[1])


def test_the_bank_holds_four_numbers_a_sample() -> None:
    method = ProtoCon(ProtoConConfig().settled(FACTS, {}), problem())
    assert sum(buffer.numel() for buffer in method.bank.buffers()) == 4 * UNLABELLED
    per_sample = [b for b in method.buffers() if UNLABELLED in b.shape]
    assert sum(buffer.numel() for buffer in per_sample) == 4 * UNLABELLED


def test_label_opinions_mix_classifier_and_cluster() -> None:
    method = ProtoCon(ProtoConConfig(neighbours=5).settled(FACTS, {}), problem())
    train(method, build_network(), batches(8))
    probs = torch.rand(5, CLASSES).softmax(-1)
    index = batches(8)[-1].index[:5]
    opinions = method.opinions(probs, index)
    expected = 0.8 * method.alignment(probs) + 0.2 * opinions["cluster"]
    torch.testing.assert_close(opinions["refined"], expected)
    torch.testing.assert_close(opinions["cluster"].sum(-1), torch.ones(5))
