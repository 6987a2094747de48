"""A training step at CIFAR size: ours against what peers pay at the least, and against the encoder's own work.

    python benchmarks/step.py [--quick]

prints one JSON object. WRN-28-2, B = 64, μ = 7, images of 32 × 32, one thread. In each round,

- `peer`: a joint forward and backward pass of 64 + 448 + 448 images in NCHW, which is the least that implementations do
  that send labelled, weak and strong views through one pass with gradient; in a process of its own with the allocator's
  defaults, as such programs are started;
- `encoder`: the passes that the method needs, channels_last: 448 images forward without gradient, 512 forward and
  backward; in the same process as ours;
- `ours`: the whole step of ProtoCon: batch, views, clustering, losses, backward, optimiser, averaged weights, banks.

Figures are medians over rounds of CPU seconds (user and kernel); ratios are medians of each round's ratio.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from torch import nn

from protocon.base.allocator import environment_that_keeps_memory
from protocon.data.imageset import ArrayImages, DataBundle, DataHints
from protocon.data.loading.loader import RawBatch
from protocon.engine.loop.trainer import Trainer, build_trainer
from protocon.engine.setup.fabric import build_fabric
from protocon.engine.setup.session import prepare
from protocon.networks.encoders import build_encoder
from protocon.settings.config import build_config

B, MU, SIDE, ENCODER = 64, 7, 32, "wrn-28-2"
IMAGES, CLASSES = 10_000, 10


def bare_encoder(memory_format: torch.memory_format) -> nn.Module:
    """The encoder alone, in training mode."""
    module = build_encoder(ENCODER, input_shape=(3, SIDE, SIDE)).module
    return module.to(memory_format=memory_format).train()


def random_views(count: int, memory_format: torch.memory_format) -> torch.Tensor:
    """Float images."""
    return torch.rand(count, 3, SIDE, SIDE).contiguous(memory_format=memory_format)


def joint_pass() -> Callable[[], None]:
    """What peers do at the least: all views in one pass with gradient."""
    encoder = bare_encoder(torch.contiguous_format)
    views = random_views(B * (1 + 2 * MU), torch.contiguous_format)

    def run() -> None:
        encoder(views).square().mean().backward()
        encoder.zero_grad()

    return run


def needed_passes() -> Callable[[], None]:
    """What the method needs of the encoder: weak views without gradient, labelled and strong ones with."""
    encoder = bare_encoder(torch.channels_last)
    weak = random_views(B * MU, torch.channels_last)
    trained = random_views(B * (1 + MU), torch.channels_last)

    def run() -> None:
        with torch.no_grad():
            encoder(weak)
        encoder(trained).square().mean().backward()
        encoder.zero_grad()

    return run


def random_data(images: int = IMAGES) -> DataBundle:
    """CIFAR-shaped images; how long a step takes does not depend on what they show."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (images, 3, SIDE, SIDE), dtype=np.uint8)
    names = [str(number) for number in range(CLASSES)]
    return DataBundle(ArrayImages(pixels, np.arange(images) % CLASSES, names), None, DataHints(flip=True))


@dataclass
class Steps:
    """A trainer in its second epoch, where all of a method's parts are at work."""

    trainer: Trainer
    batches: Iterator[RawBatch]

    def __call__(self) -> None:
        """One whole step."""
        self.trainer.train_step(next(self.batches), 1)


def build_steps(method: str, bundle: DataBundle) -> Steps:
    """A trainer of this method at CIFAR size, as `protocon train` builds it."""
    settings = {
        "method_name": method,
        "data": {"name": "arrays", "labels_per_class": 4},
        "network": {"encoder": ENCODER},
        "optim": {"batch_size": B, "mu": MU, "epochs": 100},
        "run": {"accelerator": "cpu"},
    }
    config = build_config(settings=settings)
    trainer = build_trainer(prepare(config, bundle), build_fabric(config))
    trainer.network.train()

    def batches() -> Iterator[RawBatch]:
        while True:
            yield from trainer.loader.epoch(1)

    return Steps(trainer, batches())


def cpu_seconds(run: Callable[[], None]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def work(role: str) -> None:
    """A process that measures what it is asked for: a name a line on standard input, seconds on standard output."""
    torch.set_num_threads(1)
    if role == "peer":
        runs = {"peer": joint_pass()}
    else:
        runs = {"encoder": needed_passes(), "ours": build_steps("protocon", random_data())}
    for line in sys.stdin:
        print(cpu_seconds(runs[line.strip()]), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(peak, flush=True)


class Worker:
    """The other end of `work`."""

    def __init__(self, role: str) -> None:
        command = [sys.executable, __file__, "--role", role]
        # As the command line starts itself.
        environment = None if role == "peer" else environment_that_keeps_memory()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, name: str | None) -> float:
        """Seconds of one run, or with None the peak memory in GiB, which ends it."""
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the worker has no pipes")
        if name is None:
            self.process.stdin.close()
        else:
            self.process.stdin.write(f"{name}\n")
            self.process.stdin.flush()
        return float(self.process.stdout.readline())


def measure(rounds: int) -> dict[str, object]:
    """Interleaved rounds; the first warms up."""
    console = Console(stderr=True)
    peer, ours = Worker("peer"), Worker("ours")
    seconds: dict[str, list[float]] = {"peer": [], "encoder": [], "ours": []}
    for number in range(rounds + 1):
        taken = {name: (peer if name == "peer" else ours).ask(name) for name in seconds}
        console.print(f"round {number} of {rounds}: {taken}", highlight=False)
        if number:
            for name, value in taken.items():
                seconds[name].append(value)

    def ratio(other: str) -> float:
        return statistics.median(a / b for a, b in zip(seconds["ours"], seconds[other], strict=True))

    return {
        "ratio_to_peer_step": round(ratio("peer"), 3),
        "ratio_to_encoder": round(ratio("encoder"), 3),
        "cpu_seconds": {name: round(statistics.median(values), 2) for name, values in seconds.items()},
        "peak_gib": {"peer": round(peer.ask(None), 2), "ours": round(ours.ask(None), 2)},
        "rounds": rounds,
        "torch": torch.__version__,
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three rounds: about four minutes on one core")
    parser.add_argument("--role", choices=["peer", "ours"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role:
        work(chosen.role)
        return
    print(json.dumps(measure(3 if chosen.quick else 9)))


if __name__ == "__main__":
    main()
