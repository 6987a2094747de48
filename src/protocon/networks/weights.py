"""Read an encoder's weights from a local file, whatever the tensors are called; never run code from it."""

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from protocon.errors import ConfigError
from protocon.networks.packaged import locate

_WRAPPERS = ("state_dict", "model", "network", "teacher", "student", "encoder")
_PREFIXES = ("module.", "encoder_q.", "encoder.", "backbone.", "base_encoder.", "model.", "_orig_mod.")


def weights_digest(weights: Path) -> str:
    """sha256 of the file that `network.weights` stands for."""
    path = locate(weights)
    if not path.is_file():
        raise _missing(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_weights(weights: Path, *, sha256: str | None = None) -> Path:
    """The file that `network.weights` stands for; refuses one that is not the file of that sha256."""
    if sha256 is not None and (found := weights_digest(weights)) != sha256:
        raise ConfigError(
            f"the weights {weights} are not those that these settings were made with: sha256 {found[:12]}… instead of "
            f"{sha256[:12]}…. Give the same file (network.weights), or the same version of its package"
        )
    return locate(weights)


def _missing(path: Path) -> ConfigError:
    return ConfigError(f"weights file {path} does not exist; give the path of a .safetensors or .pth file")


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a `.safetensors` file or of a torch checkpoint (read without pickle's code)."""
    if not path.is_file():
        raise _missing(path)
    if path.suffix == ".safetensors":
        try:
            return dict(load_file(path))
        except (SafetensorError, OSError, ValueError) as error:
            raise ConfigError(f"{path} is damaged or not a .safetensors file: {error}") from error
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ConfigError(
            f"{path} is not a checkpoint that can be read safely ({type(error).__name__}: "
            f"{str(error).splitlines()[0]}); save its tensors as .safetensors or as a plain state dict"
        ) from error
    for name in _WRAPPERS:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
    tensors = {k: v for k, v in content.items() if isinstance(v, Tensor)} if isinstance(content, dict) else {}
    if not tensors:
        raise ConfigError(f"{path} holds no tensors by name; expected a state dict")
    return tensors


def load_encoder(encoder: nn.Module, path: Path) -> str:
    """Fill an encoder from a file and say how. By name if all names are there, else by order and shape.

    Extra tensors in the file (a classifier, a momentum encoder) are left alone; a tensor of the encoder
    that is not in the file is an error, never a random initialisation.
    """
    own = encoder.state_dict()
    found = read_weights(path)
    by_name = _strip_prefixes(found, set(own))
    missing = [name for name in own if name not in by_name]
    if not missing:
        _check_shapes(own, by_name, path)
        encoder.load_state_dict({name: by_name[name] for name in own})
        return f"{len(own)} tensors by name"
    ordered = _match_in_order(own, found)
    if ordered is None:
        raise ConfigError(
            f"{path} does not fit this encoder: it lacks {len(missing)} of {len(own)} tensors "
            f"(first: {missing[0]}), and its {len(found)} tensors do not match in order either. "
            "Check that the encoder's name is the one the weights were made for"
        )
    encoder.load_state_dict(ordered)
    return f"{len(own)} tensors in order (the file uses other names)"


def stored_statistics(path: Path, *, channels: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and spread per channel that a run of this package normalised its images with; None in any other file."""
    if path.suffix != ".safetensors":
        return None
    try:
        with safe_open(path, framework="pt") as content:
            names = set(content.keys())
            if not {"mean", "std", "classifier.weight"} <= names:
                return None
            mean, std = content.get_tensor("mean"), content.get_tensor("std")
    except (SafetensorError, OSError, ValueError):
        return None
    return (tuple(mean.tolist()), tuple(std.tolist())) if mean.shape == std.shape == (channels,) else None


def load_kept(kept: nn.Module, weights: Path | None, *, sha256: str | None) -> None:
    """Fill the kept first layers of a pre-training's head from the run that has it.

    Args:
        kept: the layers.
        weights: file of the run's network.
        sha256: of that file; another one is refused.
    """
    if weights is None:
        raise ConfigError("method.head_layers keeps layers of a pre-trained head, so it needs --init with such a run")
    start = "projector."
    file = find_weights(weights, sha256=sha256)
    found = {name.removeprefix(start): value for name, value in read_weights(file).items() if name.startswith(start)}
    own = kept.state_dict()
    wrong = [name for name, value in own.items() if name not in found or found[name].shape != value.shape]
    if wrong:
        raise ConfigError(
            f"{weights} has no such head as method.head_layers keeps (first that does not fit: {wrong[0]}). Give a run "
            "of protocon pretrain --method simclr, or leave method.head_layers out"
        )
    kept.load_state_dict({name: found[name] for name in own})


def _strip_prefixes(found: dict[str, Tensor], wanted: set[str]) -> dict[str, Tensor]:
    """The file's tensors with wrapper prefixes removed, as often as that helps."""
    best = found
    candidates = [found]
    while candidates:
        current = candidates.pop()
        if len(wanted & set(current)) > len(wanted & set(best)):
            best = current
        for prefix in _PREFIXES:
            stripped = {k[len(prefix) :]: v for k, v in current.items() if k.startswith(prefix)}
            if stripped:
                candidates.append(stripped)
    return best


def _check_shapes(own: dict[str, Tensor], found: dict[str, Tensor], path: Path) -> None:
    for name, tensor in own.items():
        if tensor.shape != found[name].shape:
            raise ConfigError(
                f"{path}: {name} has shape {tuple(found[name].shape)}, the encoder expects "
                f"{tuple(tensor.shape)}; check the encoder's name and the number of image channels"
            )


def _match_in_order(own: dict[str, Tensor], found: dict[str, Tensor]) -> dict[str, Tensor] | None:
    """Pair both lists in order, without counters; the file may have more at the end (its classifier)."""
    counters = {n: t for n, t in own.items() if n.endswith("num_batches_tracked")}
    wanted = [(n, t) for n, t in own.items() if n not in counters]
    given = [t for n, t in found.items() if not n.endswith("num_batches_tracked")]
    if len(given) < len(wanted) or any(
        t.shape != g.shape for (_, t), g in zip(wanted, given[: len(wanted)], strict=True)
    ):
        return None
    return counters | {name: g for (name, _), g in zip(wanted, given, strict=False)}
