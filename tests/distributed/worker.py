"""What each of the processes does that a test starts: `python worker.py PART DATA OUT` under torchrun, or a fork."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from protocon.base import distributed
from protocon.cli import main as protocon
from protocon.data.imageset import FeatureArray
from protocon.engine.loop.trainer import Trainer
from protocon.errors import TrainingError
from protocon.runs.predict_set import predict_set
from protocon.types import Outputs
from tests.distributed.cases import CASES, NORMS, STEPS_PER_EPOCH, arguments_of, config_of, double, train
from tests.distributed.signalled import signalled
from tests.distributed.stopping import before_step


def together(data: Path, out: Path) -> None:
    """Everything that needs two processes in good health, in one process group to save imports."""
    for name, (method, overrides) in CASES.items():
        train(config_of(data, method, overrides), out, name)
    for name, (method, overrides) in NORMS.items():
        train(config_of(data, method, overrides, images=True), out, name)
    train(config_of(data, "protocon", ()), out, "resumed", resume=True)
    with double():
        torch.save(collectives(), out / f"collectives-{distributed.rank()}.pt")
        torch.save(normalise(), out / f"norms-{distributed.rank()}.pt")
    torch.save({"logits": one_image().logits}, out / f"evaluated-{distributed.rank()}.pt")
    (out / f"corrupted-{distributed.rank()}.json").write_text(json.dumps(corrupted(data, out)))


def collectives() -> dict[str, Any]:
    """Rows of unequal numbers and several types, gathered; and the gradient of a loss over all of them."""
    rank = distributed.rank()
    rows = 3 + 2 * rank
    start = 3 * rank
    own = torch.arange(start, start + rows)
    gathered = distributed.gather_rows(
        {
            "whole": own,
            "flag": own % 3 == 0,
            "half": (own[:, None] / 2).half().expand(rows, 2),
            "none": torch.zeros(rows, 0),
            "other": torch.full((1 - rank, 2), 7, dtype=torch.int16),
        }
    )
    leaf = (own[:, None] * torch.tensor([1.0, 2.0])).requires_grad_()
    whole = distributed.gather_with_gradient(leaf)
    (gradient,) = torch.autograd.grad((whole @ whole.T).softmax(-1).square().sum(), leaf)
    return {"gathered": gathered, "gradient": gradient, "mean": distributed.mean(torch.tensor([1.0 + rank]))}


class _Echo(nn.Module):
    """Says what it sees."""

    def forward(self, x: Tensor) -> Outputs:
        return Outputs(x, x[:, :0])


def one_image() -> Outputs:
    """A set of one row, predicted by two processes."""
    rows = FeatureArray(torch.tensor([[1.0, 2.0, 3.0]]), np.zeros(1, dtype=np.int64), ("a",), name="one", ids=["0"])
    return predict_set(_Echo(), rows, view=lambda x: x, batch_size=4, device=torch.device("cpu"))


def normalise() -> dict[str, dict[str, Tensor]]:
    """Synchronised norms on this process's slice of each layer's rows."""
    from tests.distributed.norms import as_slice, layers  # timm takes seconds to import

    return {
        name: as_slice(layer, x, gradient, rank=distributed.rank()) for name, (layer, x, gradient) in layers().items()
    }


def corrupted(data: Path, out: Path) -> str:
    """What training says of one changed number in the second process's state."""

    def corrupt(trainer: Trainer) -> None:
        if distributed.rank() == 1:
            trainer.session.method.get_buffer("bank.similarity")[5] += 0.25

    # The last step of the second epoch: nothing overwrites it any more.
    with before_step(2 * STEPS_PER_EPOCH - 1, corrupt, with_trainer=True):
        try:
            train(config_of(data, "protocon", ()), out, "corrupted")
        except TrainingError as error:
            return str(error)
    return ""


def killed(data: Path, out: Path) -> None:
    """`protocon train` whose second process is killed in the middle of the second epoch."""

    def kill() -> None:
        if distributed.rank() == 1:
            (out / "died.txt").write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)

    sys.argv = ["protocon", *arguments_of(data, out)]
    with double(), before_step(STEPS_PER_EPOCH + 3, kill):
        protocon()


def hanging(data: Path, out: Path) -> None:
    """`protocon train` whose second process stops answering."""

    def hang() -> None:
        if distributed.rank() == 1:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # or it would outlive the job
            time.sleep(600)

    sys.argv = ["protocon", *arguments_of(data, out), "timeout_minutes=0.1"]
    with double(), before_step(STEPS_PER_EPOCH + 3, hang):
        protocon()


def photos(data: Path, out: Path) -> None:
    """Photographs with the installed encoder, which timm builds."""
    from tests.distributed.photos import together

    together(data, out)


def photos_killed(data: Path, out: Path) -> None:
    """The same, killed among features."""
    from tests.distributed.photos import killed_among_features

    killed_among_features(data, out)


PARTS = {
    "together": together,
    "signalled": signalled,
    "killed": killed,
    "hanging": hanging,
    "photos": photos,
    "photos killed": photos_killed,
}


def main() -> None:
    part, data, out = sys.argv[1:4]
    PARTS[part](Path(data), Path(out))


if __name__ == "__main__":
    main()
