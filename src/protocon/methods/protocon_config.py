"""ProtoCon's settings, each by its name in the paper, and the sizes that follow from the data."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from protocon.errors import ConfigError
from protocon.methods.aligning import AlignmentSettings, ResolvedAlignment
from protocon.methods.base import PseudoLabelConfig
from protocon.methods.needs import Facts

PAPER_NEIGHBOURS = 250
PAPER_DUAL_RATE = 20.0
FROZEN_RETENTION = 0.2
FROZEN_NEIGHBOURS = 50


class ProtoConConfig(AlignmentSettings, PseudoLabelConfig):
    """Defaults are the paper's; `auto` fits a value to small data."""

    alpha: float = Field(default=0.8, ge=0, le=1)
    """Weight of the classifier's opinion against the cluster's (Eq. 9)."""
    temperature: float = Field(default=0.1, gt=0)
    """T of the prototypical and the self-supervised loss (Eq. 2, 12)."""
    neighbours: int | Literal["auto"] = "auto"
    """n: samples that share a cluster on average; K = N // n. The paper's is 250 (25 with many labels)."""
    clusters: int | None = Field(default=None, ge=1)
    """K where it is given outright and N images suffice for so many clusters of γ; None is N // n. The paper's 200 on
    CIFAR counts the labelled images too."""
    size_ratio: float = Field(default=0.9, ge=0, lt=1)
    """γ / n: how far below n a cluster may shrink; 0 is unconstrained clustering."""
    dual_rate: float | Literal["auto"] = "auto"
    """λ of Eq. 6. The paper's 20 fits K near 200; auto is min(20, 0.08 K)."""
    dual_bound: float | None = Field(default=None, gt=0)
    """δ: project the duals onto ‖ρ‖₁ ≤ δ (appendix); None leaves it out, as Eq. 6 does."""
    heads: int = Field(default=1, ge=1, le=64)
    """Independent clusterings whose labels are averaged; the paper uses 2 for ImageNet."""
    centroid_warmup: int = Field(default=20, ge=0)
    """Epochs in which centroids move with every mini-batch; once per epoch afterwards (70 for large data)."""
    first_epoch: Literal["observe", "supervised"] = "supervised"
    """Epoch 0 fills the banks: without learning (the paper), or learning from the labels alone."""
    lambda_p: float = Field(default=1.0, ge=0)
    """Weight of the prototypical loss."""
    lambda_c: float = Field(default=1.0, ge=0)
    """Weight of the self-supervised loss."""
    sharpening: float = Field(default=5.0, gt=0)
    """How much sharper the target of the self-supervised loss is than its source (Eq. 12)."""
    self_supervision: Literal["consistency", "instance-discrimination"] = "consistency"
    """Eq. 12, or the SimCLR loss that the paper compares it with."""
    center: bool = False
    """Take a running mean off the target of the self-supervised loss, as DINO does."""
    center_momentum: float = Field(default=0.9, ge=0, lt=1)
    """Of that running mean."""
    prototype_target: Literal["hard", "soft"] = "hard"
    """Pull a projection to its label's prototype, or to all in proportion to the refined label."""
    prototype_reliable_only: bool = False
    """Leave images below the threshold out of the prototypical loss."""
    prototype_labelled: bool = True
    """Apply the prototypical loss to labelled images too (not in the paper)."""
    min_retention: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = "auto"
    """Smallest share of the unlabelled images that counts as reliable: the threshold is lowered for an epoch where
    fewer reached it in the last. 0 keeps it fixed, as the paper does; auto is 0 except on a frozen encoder."""
    thresholds: Literal["fixed", "flexible", "adaptive"] = "fixed"
    """τ for all classes (the paper); or a threshold per class on the refined label: FlexMatch's, which is lower for
    classes with few confident labels, with τ as the largest; or FreeMatch's, the mean confidence, lower for classes
    that are predicted less, without τ."""
    threshold_momentum: float = Field(default=0.99, ge=0, lt=1)
    """Of the running means of adaptive thresholds."""
    confidence: Literal["refined", "relative"] = "refined"
    """What the threshold is compared with: the refined label's largest entry (the paper), or that divided by the
    largest that it can be in its cluster, α + (1 − α) · max z."""
    history_fraction: float = Field(default=1.0, gt=0, le=1)
    """Share of each cluster's members that make its label (the paper's history ablation)."""
    alignment: Literal["auto", "mean", "dual", "none"] = "auto"
    """Distribution alignment of the classifier's opinion: by the running mean (the paper), by a dual variable per class
    (which trusts the class prior more), or none. auto: dual where `labels_per_class` draws the labels of a benchmark,
    whose classes are balanced; else mean. For imbalanced classes set mean, or give `class_prior`."""

    def settled(self, facts: Facts, reasons: dict[str, str]) -> "ResolvedProtoCon":
        """Alignment, retention, n and λ."""
        frozen, count = "frozen encoder", f"{facts.unlabelled} unlabelled images"
        config = self.with_prior(facts, reasons)
        if config.thresholds != "fixed":
            if config.min_retention not in ("auto", 0):
                raise ConfigError(
                    f"thresholds={config.thresholds} came with min_retention={config.min_retention:g}, which lowers a "
                    "threshold that all classes share; set one of the two"
                )
            config = config.choose(reasons, "min_retention", 0.0, f"thresholds are {config.thresholds}")
        usual = usual_neighbours(facts.unlabelled, facts.classes)
        if facts.frozen:
            config = config.choose(reasons, "min_retention", FROZEN_RETENTION, frozen)
            near = min(FROZEN_NEIGHBOURS, usual)
            clusters = f"K = {facts.unlabelled // near} clusters of {count}"
            config = config.choose(reasons, "neighbours", near, f"n; {frozen}; {clusters}")
        alignment, reason = "mean", "class frequencies are not known"
        if facts.balanced and not facts.frozen:
            alignment, reason = "dual", "labels_per_class of a benchmark: classes are taken to be balanced"
        config = config.choose(reasons, "alignment", alignment, reason)
        config = config.choose(reasons, "min_retention", 0.0, "τ is fixed")
        neighbours = usual if config.neighbours == "auto" else config.neighbours
        k = cluster_count(config, neighbours, facts.unlabelled)
        clusters = f"K = {k} clusters of {count} in {facts.classes} classes"
        config = config.choose(reasons, "neighbours", neighbours, f"n; {clusters}")
        config = config.choose(reasons, "dual_rate", min(PAPER_DUAL_RATE, 0.08 * k), f"λ for K = {k}")
        return ResolvedProtoCon.of(config)


class ResolvedProtoCon(ResolvedAlignment, ProtoConConfig):
    """The same without `auto`."""

    neighbours: int
    dual_rate: float
    min_retention: Annotated[float, Field(ge=0, lt=1)]
    alignment: Literal["mean", "dual", "none"]


@dataclass(frozen=True)
class ClusterSizes:
    """What the clustering of N samples into K clusters looks like."""

    neighbours: int
    clusters: int
    gamma: float
    dual_rate: float


def usual_neighbours(samples: int, classes: int) -> int:
    """N where it is `auto`: the paper's 250, but at least three clusters per class on small sets."""
    if samples < 2:
        raise ConfigError(
            f"ProtoCon clusters the unlabelled images, and there are {samples}; it needs many more. "
            "Use method supervised where all images have labels"
        )
    return max(2, min(PAPER_NEIGHBOURS, samples // (3 * classes)))


def cluster_count(config: ProtoConConfig, neighbours: int, samples: int) -> int:
    """K for N samples, n to a cluster: as asked for where N suffices, else N // n.

    Args:
        config: ProtoCon's settings.
        neighbours: n.
        samples: N.
    """
    if neighbours > samples or neighbours < 1:
        raise ConfigError(
            f"neighbours is {neighbours}, but there are {samples} unlabelled images; "
            "expected between 1 and that number, or auto"
        )
    if config.clusters is not None and config.clusters * config.size_ratio * neighbours <= samples:
        return config.clusters
    return samples // neighbours


def cluster_sizes(config: ResolvedProtoCon, *, samples: int) -> ClusterSizes:
    """n, K, γ and λ for N samples."""
    n = config.neighbours
    return ClusterSizes(n, cluster_count(config, n, samples), config.size_ratio * n, config.dual_rate)
