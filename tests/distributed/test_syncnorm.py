"""A synchronised norm on two slices is BatchNorm on the whole: forward, backward and running statistics."""

from pathlib import Path

import pytest
import torch

from protocon.networks.syncnorm import SynchronisedBatchNorm, synchronise_norms
from tests.distributed.cases import double
from tests.distributed.norms import CUT, ROWS, layers, run

pytestmark = pytest.mark.timeout(400)
OF_ROWS = {"out", "gradient", "evaluated"}
NAMES = list(layers())


@pytest.mark.parametrize("name", NAMES)
def test_two_slices_are_normalised_as_one_batch(name: str, together: Path) -> None:
    parts = [torch.load(together / f"norms-{rank}.pt", weights_only=True)[name] for rank in (0, 1)]
    with double():
        layer, x, gradient = layers()[name]
        expected = run(layer, x, gradient)
    assert [len(part["out"]) for part in parts] == [CUT, ROWS - CUT]
    assert all(part.keys() == expected.keys() for part in parts)
    for key, tensor in expected.items():
        if name == "plain" and key == "evaluated":
            continue  # without running statistics evaluation is by the batch at hand, as ever
        if key in OF_ROWS:
            found = torch.cat([part[key] for part in parts])
        elif key.startswith("gradient of"):
            found = parts[0][key] + parts[1][key]  # each has its own rows' share, which DDP adds up
        else:
            assert torch.equal(parts[0][key], parts[1][key]), key
            found = parts[0][key]
        assert found.dtype == tensor.dtype
        assert torch.allclose(found.double(), tensor.double(), rtol=1e-9, atol=1e-11), key


@pytest.mark.parametrize("name", NAMES)
def test_alone_it_is_batchnorm(name: str) -> None:
    layer, x, gradient = layers()[name]
    other, _, _ = layers()[name]
    synchronised = synchronise_norms(torch.nn.Sequential(other), torch.device("cpu"))
    expected = run(layer, x, gradient)
    (inner,) = synchronised.children()
    found = run(inner, x, gradient)
    assert isinstance(inner, SynchronisedBatchNorm)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_checkpoints_fit_with_and_without_synchronised_norms(device: str) -> None:
    # On CUDA it is torch's own layer; it can be built without a GPU, though not run.
    plain = torch.nn.Sequential(*(layer for layer, _, _ in layers().values()))
    before = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    weights = list(plain.parameters())
    synchronised = synchronise_norms(plain, torch.device(device))
    kind = SynchronisedBatchNorm if device == "cpu" else torch.nn.SyncBatchNorm
    assert all(isinstance(layer, kind) for layer in synchronised.children())
    assert all(one is other for one, other in zip(weights, synchronised.parameters(), strict=True))
    state = synchronised.state_dict()
    assert list(state) == list(before)
    assert all(torch.equal(state[name], tensor) for name, tensor in before.items())
