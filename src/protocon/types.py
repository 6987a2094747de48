"""The types that everything speaks: what goes into a step, comes out of a network, leaves a step."""

from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor


class Outputs(NamedTuple):
    """What a network says of n images (a tuple, so that distributed wrappers look inside)."""

    logits: Tensor
    """Class scores before softmax, (n, C)."""
    embeddings: Tensor
    """Unit-norm projections q, (n, d); (n, 0) where the network has no projector."""

    def rows(self, start: int, stop: int) -> "Outputs":
        """What it says of images start … stop − 1."""
        return Outputs(self.logits[start:stop], self.embeddings[start:stop])

    def detach(self) -> "Outputs":
        """The same numbers as targets: no gradient flows through them."""
        return Outputs(self.logits.detach(), self.embeddings.detach())


@dataclass(frozen=True)
class SupportSet:
    """Labelled images drawn class by class: this process's rows of the global support set, already on the device."""

    views: tuple[Tensor, ...]
    """Views of the same images, as many as the method asked for, each (m, …)."""
    targets: Tensor
    """Their classes, (m,) int64."""
    index: Tensor
    """Their positions in the labelled set, (m,) int64; an image may repeat, with other views."""
    share: float = 1.0
    """Rows here ÷ mean rows per process."""


@dataclass(frozen=True)
class Batch:
    """One step's views, already on the device: this process's rows of the global batch."""

    labelled: Tensor
    """Weak views of labelled images, (B, …); no rows for a method without labels."""
    targets: Tensor
    """Their classes, (B,) int64."""
    labelled_index: Tensor
    """Their positions in the labelled set, (B,) int64."""
    weak: Tensor
    """Weak views of unlabelled images, (n, …); no rows where the method wants none."""
    strong: tuple[Tensor, ...]
    """Strong views of the same images, as many as the method asked for, each (n, …)."""
    index: Tensor
    """Positions of those images in the unlabelled set, (n,) int64; no repeats within a global batch."""
    share: float = 1.0
    """Unlabelled rows here ÷ mean rows per process: weights means over them where processes hold unequal slices."""
    labelled_share: float = 1.0
    """The same for labelled rows."""
    crops: tuple[tuple[Tensor, ...], ...] = ()
    """Random crops of the unlabelled images: for each entry of the method's `crops` as many tensors as it asks for,
    each (n, …). Entries may differ in size, so they cannot be one batch."""
    support: SupportSet | None = None
    """The support set, where the method asks for one."""


@dataclass(frozen=True)
class Progress:
    """Where training is."""

    epoch: int
    """Current pass over the unlabelled set, from 0."""
    step: int
    """Training steps done so far."""
    total_epochs: int
    total_steps: int


@dataclass(frozen=True)
class Step:
    """What a method computed from a batch."""

    loss: Tensor | None
    """Scalar with gradient, whose mean over processes is the loss of the global batch; None where there is nothing to
    learn from yet, or where `Method.updates` has yielded the losses already."""
    terms: dict[str, Tensor]
    """Detached scalars for the log (every loss term, retention, agreement…), of which the same holds."""
    rows: dict[str, Tensor] = field(default_factory=dict)
    """Per-sample results for `Method.commit`, which receives those of all processes in rank order."""


@dataclass(frozen=True)
class Update:
    """One optimiser step. A training step is usually one of these; `Method.updates` may yield several."""

    loss: Tensor
    """Scalar with gradient, whose mean over processes is the loss of the global batch."""
    network: str = "network"
    """Name of the network whose weights are updated. Gradients that reach other networks are dropped."""
    max_norm: float | None = None
    """Clip the gradient to this length first."""
    max_norm_of_each: float | None = None
    """Clip the gradient of each weight tensor to this length first, as DINO does."""
    fixed: tuple[str, ...] = ()
    """Weights whose names start so are left as they are in this update: no step, no decay, no momentum."""
