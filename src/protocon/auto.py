"""What `auto` means: settings that follow from the data, each with its reason."""

import math
from dataclasses import dataclass

from protocon.config import RunConfig

_TINY_SIDE = 20
SMALL_SIDE = 64
"""Images up to this side are small: shifts rather than crops, no blur."""
_TINY_STEPS = 1300
_STEPS = 2**14
_SHORT_RUN = 10_000


@dataclass(frozen=True)
class Resolved:
    """A config without `auto`, and a line for each value that was chosen."""

    config: RunConfig
    reasons: dict[str, str]
    total_epochs: int
    steps_per_epoch: int


def image_size_for(native: int) -> int:
    """The side that images are resized to: the native one, but at least 16 for two halvings to leave 4×4."""
    return max(native, 16)


def resolve_auto(config: RunConfig, *, shape: tuple[int, ...], flip: bool, unlabelled: int) -> Resolved:
    """Replace every `auto`.

    Args:
        config: as asked for.
        shape: of an image (C, H, W) or an embedding (D,).
        flip: whether mirrored images make sense in this data.
        unlabelled: N.
    """
    reasons: dict[str, str] = {}
    embeddings = len(shape) == 1
    side = 0 if embeddings else shape[-1]
    tiny = embeddings or side <= _TINY_SIDE

    def choose(section: str, key: str, value: object, reason: str) -> None:
        nonlocal config
        current = getattr(config, section)
        if getattr(current, key) == "auto":
            config = config.model_copy(update={section: current.model_copy(update={key: value})})
            reasons[f"{section}.{key}"] = f"{value} ({reason})"

    kind = "embeddings" if embeddings else f"{side}-pixel images"
    if not embeddings:
        choose("data", "image_size", side, "size of the data")
        large = side > SMALL_SIDE
        choose("views", "weak", "crop" if large else "shift", kind)
        choose("views", "strong", "simclr" if large else "randaugment", kind)
        choose("views", "flip", flip, "mirrored images make sense here" if flip else "classes have a handedness")
    choose("data", "workers", 2, "processes that decode")
    encoder = "mlp-512" if embeddings else "wrn-10-1" if tiny else "wrn-28-2" if side <= SMALL_SIDE else "resnet18"
    choose("network", "encoder", encoder, kind)
    choose("network", "projection_dim", 64 if side <= SMALL_SIDE else 128, kind)
    # Small sets gain more from more steps than from larger batches.
    choose("optim", "batch_size", 16 if unlabelled < 5000 else 64, f"{unlabelled} unlabelled images")
    steps_per_epoch = math.ceil(unlabelled / (int(config.optim.batch_size) * config.optim.mu))
    if config.optim.total_steps is not None:
        epochs = math.ceil(config.optim.total_steps / steps_per_epoch)
        reasons["optim.epochs"] = f"{epochs} ({config.optim.total_steps} steps in passes of {steps_per_epoch})"
    else:
        target = _TINY_STEPS if tiny else _STEPS
        passes = max(20, math.ceil(target / steps_per_epoch))
        choose("optim", "epochs", passes, f"about {target} steps in passes of {steps_per_epoch}")
        epochs = int(config.optim.epochs)
    if "alignment" in type(config.method).model_fields:
        balanced = config.data.labels_per_class is not None
        reason = "labels_per_class: classes are taken to be balanced" if balanced else "class frequencies are not known"
        choose("method", "alignment", "dual" if balanced else "mean", reason)
    steps = epochs * steps_per_epoch
    choose("optim", "lr", 0.06 if steps < _SHORT_RUN else 0.03, f"{steps} steps")
    return Resolved(config, reasons, epochs, steps_per_epoch)
