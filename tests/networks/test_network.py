"""Networks: shapes, sizes, initialisation, and the averaged copy."""

import pytest
import torch
from torch import Tensor, nn

from protocon.errors import ConfigError
from protocon.networks.ema import MomentumCopy, ramped_decay
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network
from protocon.types import Outputs


def network(encoder: str = "wrn-10-1", shape: tuple[int, ...] = (3, 32, 32), dim: int = 64) -> Network:
    torch.manual_seed(0)
    built = build_encoder(encoder, input_shape=shape)
    return Network(built, classes=5, projection_dim=dim, mean=[0.5] * shape[0], std=[0.25] * shape[0])


def parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(("name", "millions"), [("wrn-28-2", 1.47), ("wrn-28-8", 23.4), ("wrn-10-1", 0.077)])
def test_wide_resnets_have_the_published_sizes(name: str, millions: float) -> None:
    assert parameters(build_encoder(name, input_shape=(3, 32, 32)).module) / 1e6 == pytest.approx(millions, rel=0.02)


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 32, 32), (3, 33, 47)])
def test_outputs_have_logits_and_unit_embeddings(shape: tuple[int, ...]) -> None:
    out: Outputs = network(shape=shape)(torch.rand(7, *shape))
    assert out.logits.shape == (7, 5)
    assert out.embeddings.shape == (7, 64)
    torch.testing.assert_close(out.embeddings.norm(dim=-1), torch.ones(7))


def test_without_projector_there_are_no_embeddings() -> None:
    assert network(dim=0)(torch.rand(3, 3, 32, 32)).embeddings.shape == (3, 0)


def test_projector_leaves_the_rest_of_the_initialisation_alone() -> None:
    bare, full = network(dim=0).state_dict(), network(dim=64).state_dict()
    for name, tensor in bare.items():
        assert torch.equal(tensor, full[name]), name


def test_normalisation_is_inside() -> None:
    model = network(encoder="none", shape=(4,), dim=0)
    with torch.no_grad():
        model.classifier.weight.copy_(torch.eye(5)[:, :4])
    x = torch.rand(3, 4)
    torch.testing.assert_close(model(x).logits[:, :4], (x - 0.5) / 0.25)


def test_timm_encoder_in_colour_and_grey() -> None:
    for channels in (3, 1):
        out = network("resnet18", (channels, 64, 64))(torch.rand(2, channels, 64, 64))
        assert out.logits.shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("resnet999", (3, 32, 32), "unknown encoder"),
        ("wrn-27-2", (3, 32, 32), "depth must be 10, 16"),
        ("none", (3, 32, 32), "is for embeddings"),
        ("mlp-512", (3, 32, 32), "is for embeddings"),
        ("wrn-28-2", (128,), "takes images"),
    ],
)
def test_encoder_that_does_not_fit_is_refused(name: str, shape: tuple[int, ...], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        build_encoder(name, input_shape=shape)


def test_averaged_weights_follow_with_a_ramp() -> None:
    model = nn.Linear(2, 2)
    averaged = MomentumCopy(model)
    start = averaged.module.weight.clone()  # type: ignore[operator]
    with torch.no_grad():
        model.weight += 1
    averaged.update(model, ramped_decay(0.999, 0))
    # At step 0 the decay is 1/10, long before 0.999.
    torch.testing.assert_close(averaged.module.weight, start + 0.9)
    before = averaged.module.weight.clone()  # type: ignore[operator]
    averaged.update(model, ramped_decay(0.999, 10**6))
    torch.testing.assert_close(averaged.module.weight, before + 0.001 * (model.weight - before))
    assert not averaged.train().module.training


@pytest.mark.parametrize("average", [True, False])
def test_eman_averages_normalisation_statistics(average: bool) -> None:
    model = nn.BatchNorm1d(3)
    averaged = MomentumCopy(model, statistics="averaged" if average else "copied")
    model.train()
    model(torch.randn(64, 3) + 10)
    averaged.update(model, 0.5)
    expected = model.running_mean * 0.5 if average else model.running_mean  # type: ignore[operator]
    torch.testing.assert_close(averaged.module.running_mean, expected)
    assert int(averaged.module.num_batches_tracked) == 1  # type: ignore[arg-type]


def test_a_copy_with_statistics_of_its_own_normalises_by_its_batch() -> None:
    model = nn.BatchNorm1d(3)
    copy = MomentumCopy(model, statistics="batch").eval()
    rows = torch.randn(64, 3) + 10
    out = copy(rows)
    assert isinstance(out, Tensor)
    torch.testing.assert_close(out.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    seen = copy.module.running_mean.clone()  # type: ignore[operator]
    copy.update(model, 0.5)
    torch.testing.assert_close(copy.module.running_mean, seen)
    assert float(seen.min()) > 0.5
    assert not any(weight.requires_grad for weight in copy.parameters())
