"""What `auto` means: settings that follow from the data, each with its reason."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import torch

from protocon.augment.fused import kernels
from protocon.data.loading.schedule import steps_per_epoch
from protocon.data.registry import OWN
from protocon.errors import ConfigError
from protocon.features import onnx_forward
from protocon.methods import METHODS
from protocon.methods.needs import Facts
from protocon.networks import named, packaged
from protocon.networks.weights import weights_digest
from protocon.settings.config import RunConfig
from protocon.settings.resolved_config import ResolvedConfig, resolved_config

T = TypeVar("T")


class Choose(Protocol):
    """Sets what is `auto`."""

    def __call__(self, section: str, key: str, value: T, reason: str) -> T:
        """The value that holds: this one, with its reason, or what was asked for."""


_TINY_SIDE = 20
SMALL_SIDE = 64
"""Images up to this side are small: shifts rather than crops, no blur."""
_TINY_STEPS = 1300
_STEPS = 2**14
_CPU_STEPS = 3000
_SHORT_RUN = 10_000
_WIDE = 128
"""Embeddings from this length on come from an encoder; shorter rows are measurements, for which less will do."""
_LARGEST_SIDE = 224
_CPU_SIDE = 32
_CPU_REASON = (
    "larger ones would take hours with an encoder trained from scratch on a CPU; change it with --image-size, or use a "
    "pretrained encoder"
)
_FROZEN_SIDE = 128
_FROZEN_STEPS = 1300
_MIN_FROZEN_STEPS = 300
_SOLVED_STEPS = 150
"""Where soft labels are there before the first step: 300 with half the rate are no better."""
_SOLVED_PASSES = 10
_MAX_COMPONENTS = 256
_MIN_COMPONENTS = 32
_IMAGES_PER_COMPONENT = 16
"""Of fewer images a principal component says more of the images than of their classes."""
_GROUPS = 4
_MORE_GROUPS = 10
_FEW_IMAGES = 2000
"""Up to so many a run on a frozen encoder takes seconds, and smaller groups of held-out labels tell more."""
_MANY_VIEWS = 30_000
"""Images up to which several views of each are cheap enough."""
_WORTH_COMPILING = 5000
"""A frozen encoder sees views only once: of fewer images they are there before kernels are compiled."""


@dataclass(frozen=True)
class Resolved:
    """A config without `auto`, and a line for each value that was chosen."""

    config: ResolvedConfig
    reasons: dict[str, str]
    total_epochs: int
    steps_per_epoch: int


def image_size_for(native: int, config: RunConfig) -> int:
    """The side that images are resized to: the native one, but at least 16 for two halvings to leave 4×4.

    Frozen encoders were trained on photographs of 200 pixels and more, and cannot get used to smaller things. For those
    whose weights come with the install, the side that pays has been measured.
    """
    if not config.network.frozen:
        return max(native, 16)
    chosen = packaged_encoder(config) or named.find_model(config.network.encoder)
    return max(native, _FROZEN_SIDE) if chosen is None else chosen.side


def fit_for(config: RunConfig) -> Literal["crop", "squash"]:
    """How images become square. A frozen encoder sees the whole of them: what is cropped is lost for good."""
    if config.data.fit != "auto":
        return config.data.fit
    return "squash" if config.network.frozen else "crop"


def packaged_encoder(config: RunConfig) -> packaged.Packaged | None:
    """The encoder that a frozen run gets where no weights are named: the best whose package is installed."""
    network = config.network
    if not network.frozen or network.pretrained:
        return None
    if network.weights is not None:
        given = str(network.weights)
        return next((one for one in packaged.PACKAGED if str(one.weights()) == given), None)
    return packaged.installed(network.encoder)


def _with_packaged_weights(config: RunConfig, reasons: dict[str, str], *, channels: int) -> RunConfig:
    """A frozen encoder without weights gets those of the installed package, unless another encoder is asked for."""
    chosen = None if config.network.weights is not None else packaged_encoder(config)
    if chosen is None:
        return config
    if channels != packaged.CHANNELS:
        raise ConfigError(
            f"the encoder that --frozen takes by default is for images of {packaged.CHANNELS} channels, but these have "
            f"{channels}. Save them as RGB, or name an encoder that timm fetches and fits to them (--encoder resnet18 "
            "network.pretrained=true)"
        )
    reasons["network.encoder"] = f"{chosen.encoder} (frozen encoder; its ImageNet weights are installed)"
    network = config.network.model_copy(update={"encoder": chosen.encoder, "weights": chosen.weights()})
    return config.model_copy(update={"network": network})


def _with_digest(config: RunConfig) -> RunConfig:
    """The digest of the encoder's weights beside their name."""
    network = config.network
    if network.weights is None or network.weights_sha256 is not None:
        return config
    digest = weights_digest(network.weights)
    return config.model_copy(update={"network": network.model_copy(update={"weights_sha256": digest})})


def _choose_for_features(choose: Choose, config: RunConfig, *, unlabelled: int, shape: tuple[int, ...]) -> None:
    """Views and heads on a frozen encoder. Called before the choices for images, and so the ones that count."""
    few = unlabelled <= _MANY_VIEWS
    count, frozen = f"{unlabelled} unlabelled images", "frozen encoder"
    # Of these networks, whoever trained them: a run of `pretrain` is as good as the package.
    known = next((one for one in packaged.PACKAGED if one.encoder == config.network.encoder), None)
    choose("network", "pooled_blocks", known.pooled_blocks if known else 0, frozen)
    # timm's own networks look once: they have no way to look twice.
    choose("network", "second_look", known.second_look if known and not config.network.pretrained else 0.0, frozen)
    in_colour = len(shape) == 3 and shape[0] == packaged.CHANNELS
    wanted = known is not None and known.colours and not config.network.pretrained
    choose("network", "colour_shares", wanted and in_colour, frozen)
    choose("network", "space", "roots", frozen)
    onnx = onnx_forward.available() and device_of(config) == "cpu"
    reason = "installed, and faster on a CPU" if onnx else "onnxruntime is for CPUs, where it is installed"
    choose("network", "feature_engine", onnx_forward.ENGINE if onnx else "torch", reason)
    solves = METHODS[config.method_name].uses_samples
    if solves:
        choose("network", "hidden", 128, f"{frozen}: wider ones learn the soft labels no better")
        choose("network", "components", min(_MAX_COMPONENTS, max(1, unlabelled - 1)), count)
        choose("views", "cached_mirror", True, f"{frozen}; the mean of both is judged")
        choose("views", "cached_weak", 0, "the features themselves are perturbed")
        choose("views", "cached_strong", 0, "the features themselves are perturbed")
    components = min(_MAX_COMPONENTS, max(_MIN_COMPONENTS, unlabelled // _IMAGES_PER_COMPONENT))
    choose("network", "components", components, count)
    choose("views", "cached_mirror", False, frozen)
    if unlabelled < _WORTH_COMPILING:
        choose("views", "engine", "torch", count)
    choose("views", "weak", "crop", frozen)
    choose("views", "crop_scale", 0.5, f"{frozen}: mild crops")
    choose("views", "strong", "randaugment", frozen)
    choose("views", "cached_weak", 2 if few else 1, count)
    choose("views", "cached_strong", 2 if few else 1, count)
    choose("network", "hidden", 256, frozen)
    choose("network", "projection_dim", 64, frozen)


def device_of(config: RunConfig) -> str:
    """Where the run will be: cpu, cuda or mps."""
    if config.run.accelerator in ("auto", "gpu"):
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return config.run.accelerator


def is_slow(config: RunConfig) -> bool:
    """Whether an encoder is trained from scratch, on a CPU, on data of one's own: then small things are chosen.

    Benchmarks keep their usual sizes, so that results can be compared. Weights for an encoder that is not named are
    those of an earlier run, which had the same choice.
    """
    network = config.network
    given = network.weights is not None and network.encoder != "auto"
    return (
        not (network.pretrained or network.frozen or given) and config.data.name in OWN and device_of(config) == "cpu"
    )


def largest_side(config: RunConfig) -> int:
    """One's own image files become at most this large where no size is asked for."""
    return _CPU_SIDE if is_slow(config) else _LARGEST_SIDE


def _choose_for_images(choose: Choose, config: RunConfig, side: int, *, flip: bool) -> None:
    """Size, views and encoder."""
    kind = f"{side}-pixel images"
    slow, large = is_slow(config), side > SMALL_SIDE
    choose("data", "image_size", side, _CPU_REASON if slow and side == _CPU_SIDE else "size of the data")
    choose(
        "data", "fit", fit_for(config), "a frozen encoder sees whole images" if config.network.frozen else "as usual"
    )
    choose("views", "weak", "crop" if large else "shift", kind)
    choose("views", "crop_scale", 0.2, "weak crops keep a fifth of the area or more")
    choose("views", "strong", "simclr" if large else "randaugment", kind)
    choose("views", "flip", flip, "mirrored images make sense here" if flip else "classes have a handedness")
    # Compiling takes half a minute, which views of small images are not worth.
    compiled = large and kernels.available()
    reason = kind if not large else "numba is installed" if compiled else "numba is not installed"
    choose("views", "engine", "numba" if compiled else "torch", reason)
    small = "wrn-10-1" if side <= _TINY_SIDE else "wrn-10-2" if slow else "wrn-28-2"
    cpu = ", trained from scratch on a CPU" if slow else ""
    choose("network", "encoder", "resnet18" if large else small, kind + cpu)


def _choose_length(
    choose: Choose,
    config: RunConfig,
    reasons: dict[str, str],
    *,
    unlabelled: int,
    per_epoch: int,
    shape: tuple[int, ...],
) -> int:
    """Epochs of the run.

    Args:
        choose: sets what is `auto`.
        config: settings so far.
        reasons: takes a line for what follows from `total_steps`.
        unlabelled: N.
        per_epoch: steps of an epoch.
        shape: of an image (C, H, W) or an embedding (D,).
    """
    embeddings = len(shape) == 1
    if config.optim.total_steps is not None:
        epochs = math.ceil(config.optim.total_steps / per_epoch)
        choose("optim", "epochs", epochs, "")
        reasons["optim.epochs"] = f"{epochs} ({config.optim.total_steps} steps in passes of {per_epoch})"
        return epochs
    solves = METHODS[config.method_name].uses_samples  # its soft labels are there before the first step
    few = _SOLVED_STEPS if solves else min(_FROZEN_STEPS, max(_MIN_FROZEN_STEPS, 4 * unlabelled // 5))
    usual = few if config.network.frozen else _CPU_STEPS if is_slow(config) else _STEPS
    if embeddings:
        # A few hundred rows of features are learnt in a hundred steps.
        target = min(_TINY_STEPS, max(40, unlabelled // 2))
    else:
        target = _TINY_STEPS if shape[-1] <= _TINY_SIDE else usual
    passes = max(_SOLVED_PASSES if solves else 20, math.ceil(target / per_epoch))
    return choose("optim", "epochs", passes, f"about {target} steps in passes of {per_epoch}")


def resolve_auto(
    config: RunConfig, *, shape: tuple[int, ...], flip: bool, unlabelled: int, classes: int | None = None
) -> Resolved:
    """Replace every `auto`.

    Args:
        config: as asked for.
        shape: of an image (C, H, W) or an embedding (D,).
        flip: whether mirrored images make sense in this data.
        unlabelled: N.
        classes: C; None where they are not known yet: then the method's own settings are left open.
    """
    reasons: dict[str, str] = {}
    embeddings = len(shape) == 1
    side = 0 if embeddings else shape[-1]

    def choose(section: str, key: str, value: T, reason: str) -> T:
        nonlocal config
        current = getattr(config, section)
        asked: T | Literal["auto"] = getattr(current, key)
        if asked != "auto":
            return asked
        config = config.model_copy(update={section: current.model_copy(update={key: value})})
        reasons[f"{section}.{key}"] = f"{value} ({reason})"
        return value

    kind = "embeddings" if embeddings else f"{side}-pixel images"
    if config.network.frozen:
        config = config if embeddings else _with_packaged_weights(config, reasons, channels=shape[0])
        _choose_for_features(choose, config, unlabelled=unlabelled, shape=shape)
    config = _with_digest(config)
    if embeddings:
        choose("network", "encoder", "mlp-512" if shape[0] >= _WIDE else "mlp-128", f"{kind} of {shape[0]}")
    else:
        _choose_for_images(choose, config, side, flip=flip)
    kept = config.network.pretrained or config.network.weights is not None
    reasons["normalisation"] = "the encoder's own" if kept else "mean and spread of the training data"
    choose("data", "workers", 2, "processes that decode")
    choose("network", "projection_dim", 64 if side <= SMALL_SIDE else 128, kind)
    # Small sets gain more from more steps than from larger batches.
    batch_size = choose("optim", "batch_size", 16 if unlabelled < 5000 else 64, f"{unlabelled} unlabelled images")
    per_epoch = steps_per_epoch(unlabelled, batch_size=batch_size, mu=config.optim.mu)
    epochs = _choose_length(choose, config, reasons, unlabelled=unlabelled, per_epoch=per_epoch, shape=shape)
    # So many labels per class say nothing about how frequent the classes of one's own images are.
    balanced = config.data.labels_per_class is not None and config.data.name not in OWN
    frozen = config.network.frozen
    if classes is not None:
        facts = Facts(unlabelled, classes, balanced=balanced, frozen=frozen)
        config = config.model_copy(update={"method": config.method.settled(facts, reasons)})
    own_labels = config.data.name in OWN and not (config.data.labels_per_class or config.data.labels_percent)
    tried = config.network.frozen and own_labels
    groups = 0 if not tried else _MORE_GROUPS if unlabelled <= _FEW_IMAGES else _GROUPS
    reason = "a run is cheap" if tried else "only on a frozen encoder with labels of one's own"
    choose("run", "cross_check", groups, f"groups of labels, each held out of one more run and predicted; {reason}")
    steps = epochs * per_epoch
    # Soft labels that do not change are learnt at a higher rate, by the narrower heads of a frozen encoder most of all.
    solves = METHODS[config.method_name].uses_samples
    short = steps < _SHORT_RUN and (solves or not frozen)
    choose("optim", "lr", 0.03 if not short else 0.12 if frozen else 0.06, f"{steps} steps")
    return Resolved(resolved_config(config), reasons, epochs, per_epoch)
