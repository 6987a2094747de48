"""Every process holds the same state: checked at the end of each epoch, by one number per tensor."""

from collections.abc import Mapping

import torch
from torch import Tensor

from protocon.base import distributed
from protocon.base.draws import fold
from protocon.errors import RunError, TrainingError

_CHUNK = 2**20
_ODD = 0x9E3779B97F4A7C15 - (1 << 64)
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@torch.no_grad()
def checksum(tensor: Tensor) -> Tensor:
    """A scalar int64 on the tensor's device that any single changed element changes.

    Σ bits·w modulo 2⁶⁴, where the weights w are odd and differ by position. Chunks keep the memory small.
    """
    bits = tensor.detach().contiguous().view(-1)
    bits = bits.view(_INTEGERS[bits.element_size()])
    weights = fold(0, torch.arange(min(_CHUNK, len(bits)), device=bits.device)) | 1
    total = torch.zeros((), dtype=torch.int64, device=bits.device)
    for chunk in torch.split(bits, _CHUNK):
        total = total * _ODD + (chunk.long() * weights[: len(chunk)]).sum()
    return total


def check_same_state(parts: Mapping[str, Mapping[str, Tensor]], *, epoch: int, device: torch.device) -> None:
    """Stop, naming the tensor, if a process holds other numbers than the first one.

    Args:
        parts: tensors by part and name, as a checkpoint has them.
        epoch: that has just ended.
        device: of the collective.
    """
    if distributed.world_size() == 1:
        return
    tensors = {f"{part}.{name}": tensor for part, group in parts.items() for name, tensor in group.items()}
    names = sorted(tensors)  # the order in which a file is read is not the same everywhere
    rows = distributed.gather_rows({"sums": torch.stack([checksum(tensors[name]).to(device) for name in names])})[
        "sums"
    ]
    if len(rows) != distributed.world_size() * len(names):
        raise TrainingError(f"after epoch {epoch} the processes do not hold the same number of tensors; {_ADVICE}")
    sums = rows.view(distributed.world_size(), len(names)).cpu()
    wrong = (sums != sums[0]).nonzero().tolist()
    if wrong:
        process, number = wrong[0]
        others = len({n for _, n in wrong}) - 1
        raise TrainingError(
            f"after epoch {epoch}, {names[number]} on process {process} is not what it is on process 0"
            f"{f' (nor are {others} other tensors)' if others else ''}; {_ADVICE}"
        )


_ADVICE = (
    "a method's state may change only in `commit` and `end_epoch`, and all machines must be of one kind. "
    "The last checkpoint is whole"
)


def check_same_start(epoch: int, step: int, *, device: torch.device) -> None:
    """Stop if processes found different checkpoints: their machines do not see the same run folder.

    Args:
        epoch: whole epochs that this process found.
        step: steps of the next epoch.
        device: where processes compare.
    """
    places = distributed.all_gather(torch.tensor([epoch, step], device=device)).tolist()
    if any(place != places[0] for place in places):
        found = ", ".join(f"process {number}: epoch {place[0]}" for number, place in enumerate(places))
        raise RunError(
            f"processes would start at different places ({found}); the run folder must be on a file system that all "
            "machines share"
        )
