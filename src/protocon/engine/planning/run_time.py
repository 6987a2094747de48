"""How long a run would take, in words: a few steps are timed, or a few images where a step would take too long."""

import time

import torch
from rich.console import Console

from protocon.base.duration import show_duration
from protocon.engine.planning.budget import measure
from protocon.engine.planning.feature_memory import missing_features
from protocon.engine.planning.side_budget import seconds_per_view
from protocon.engine.setup.encode import build_frozen, encode
from protocon.engine.setup.fabric import Fabric
from protocon.engine.setup.session import Session, build
from protocon.engine.setup.settled import Settled

_TIMED_SECONDS = 2.0
_LONGEST_STEP = 3.0
"""A step that seems to take longer than this many seconds is not timed, but estimated from a few images."""
_TRIED_IMAGES = 8


def run_time(settled: Settled, session: Session, fabric: Fabric, *, images: float) -> str:
    """Of training; on a frozen encoder, of the features that are not in the cache, or of training where all are.

    Args:
        settled: settings, data and labels.
        session: of a run; its network is used up.
        fabric: for the device.
        images: that a step learns from.
    """
    if not settled.config.network.frozen:
        return _of_training(session, fabric, images)
    encoder = build_frozen(settled.config, settled.bundle).to(fabric.device)
    missing = missing_features(settled.config, settled.bundle, encoder)
    if missing:
        took = show_duration(missing * seconds_per_view(encoder, settled.bundle))
        return (
            f"about {took} for the features of {missing:,} views (measured on a few), then that of training, which "
            "is known once the features are there"
        )
    return _of_training(build(settled, encode(settled, Console(quiet=True), fabric.device, encoder=encoder)), fabric, 0)


def _of_training(session: Session, fabric: Fabric, images: float) -> str:
    """Steps, evaluations, checkpoints and the labels of all images.

    Held-out labels are predicted by further runs, one after the other unless the method trains them side by side.
    """
    rounds = 1 + session.config.run.cross_check
    also = "" if rounds == 1 else f", at most {rounds} times as long with the runs for held-out labels"
    rough = 4 * images * _seconds_per_image(session) if images else 0.0  # forward of all, backward of most
    if rough > _LONGEST_STEP:
        return f"roughly {show_duration(rough * session.total_steps)} (estimated from a few images on the CPU){also}"
    speed = measure(session, fabric, seconds=_TIMED_SECONDS)
    total = speed.total(session.resolved.total_epochs, session.resolved.steps_per_epoch)
    return f"about {show_duration(total)} ({speed.step:.2g} s per step, measured){also}"


def _seconds_per_image(session: Session) -> float:
    images = torch.zeros(_TRIED_IMAGES, *session.input_shape)
    taken = []
    with torch.no_grad():
        session.network.eval()
        for _ in range(3):  # the first warms up, and another program may be in the way of one
            began = time.perf_counter()
            session.network(images)
            taken.append(time.perf_counter() - began)
    return min(taken) / len(images)
