"""Metrics for TensorBoard, beside the JSONL that is the record."""

from pathlib import Path
from types import TracebackType

from torch.utils.tensorboard import SummaryWriter


class ScalarLog:
    """Event files in `folder/tensorboard`; does nothing where not enabled.

    Args:
        folder: the run folder.
        enabled: False on all processes but the first, or if switched off.
        first_epoch: where a resumed run starts: what an earlier process wrote from there on is hidden.
    """

    def __init__(self, folder: Path, *, enabled: bool, first_epoch: int = 0) -> None:
        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_epoch or None) if enabled else None

    def write(self, row: dict[str, float]) -> None:
        """One epoch's numbers."""
        if self._writer is not None:
            for name, value in row.items():
                if name != "epoch":
                    self._writer.add_scalar(name, value, int(row["epoch"]))

    def __enter__(self) -> "ScalarLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()
