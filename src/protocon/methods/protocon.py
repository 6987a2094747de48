"""ProtoCon (Nassar et al., CVPR 2023): pseudo-labels refined by the neighbourhood's label.

Each unlabelled image gets two opinions, the classifier's on its weak view and that of its cluster in the
projector's space; mixed, they train the strong view. Settings are in `protocon_config.py`.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from protocon.base.distributed import gather_with_gradient
from protocon.core.bank import SampleBank
from protocon.core.kmeans import ConstrainedKMeans
from protocon.core.losses import (
    consistency_loss,
    instance_discrimination_loss,
    prototypical_loss,
    supervised_loss,
    unlabelled_loss,
)
from protocon.core.prototypes import ClassPrototypes
from protocon.core.refine import ceiling, cluster_labels, refine
from protocon.core.retention import RetentionThreshold
from protocon.core.thresholds import FlexibleThresholds, SelfAdaptiveThresholds
from protocon.methods.aligning import build_alignment, estimate_prior
from protocon.methods.base import Forward, Method, MethodConfig, Problem, Samples
from protocon.methods.protocon_config import ProtoConConfig, ResolvedProtoCon, cluster_sizes
from protocon.types import Batch, Outputs, Progress, Step


@dataclass(frozen=True)
class _Opinions:
    """What is believed of a batch's unlabelled images, before anything is learnt from them."""

    probs: Tensor
    refined: Tensor
    cluster: Tensor
    judged: Tensor
    """The refined label as thresholds see it: as it is, or relative to the largest confidence that it can have."""
    label: Tensor
    confidence: Tensor
    reliable: Tensor
    assignment: Tensor
    similarity: Tensor


class ProtoCon(Method):
    """Algorithm 1 of the paper."""

    Config: ClassVar[type[MethodConfig]] = ProtoConConfig
    uses_projector = True
    center: Tensor
    cluster_table: Tensor

    def __init__(self, config: ResolvedProtoCon, problem: Problem) -> None:
        super().__init__(config, problem)
        self.config = config
        self.sizes = sizes = cluster_sizes(config, samples=problem.unlabelled)
        self.kmeans = ConstrainedKMeans(
            clusters=sizes.clusters,
            dim=problem.projection_dim,
            gamma=sizes.gamma,
            population=problem.unlabelled,
            dual_rate=sizes.dual_rate,
            dual_bound=config.dual_bound,
            heads=config.heads,
            seed=problem.seed,
        )
        self.bank = SampleBank(problem.unlabelled, classes=problem.classes, clusters=sizes.clusters, heads=config.heads)
        self.prototypes = ClassPrototypes(problem.classes, problem.projection_dim)
        self.alignment = build_alignment(config, problem, kind="dual" if config.alignment == "dual" else "mean")
        self.threshold = RetentionThreshold(config.threshold, retention=config.min_retention)
        self.class_thresholds = _class_thresholds(config, problem)
        uniform = torch.full((config.heads, sizes.clusters, problem.classes), 1.0 / problem.classes)
        self.register_buffer("cluster_table", uniform)
        self.register_buffer("center", torch.zeros(problem.projection_dim))

    def prepare(self, samples: Samples) -> None:
        """Estimate the class frequencies, where that is asked for."""
        estimate_prior(self.alignment, self.config, samples, self.problem)

    def estimated_prior(self) -> Tensor | None:
        """Class frequencies that predictions are aligned to, where they were estimated."""
        return self.alignment.prior if self.config.class_prior == "estimated" else None

    def step(self, network: Forward, teacher: Forward, batch: Batch, progress: Progress) -> Step:
        """One iteration of Algorithm 1: assign, refine, and the four losses."""
        if progress.epoch == 0:
            return self._first_epoch_step(network, teacher, batch)
        labelled, weak, (strong,) = self.forward_views(network, teacher, batch)
        seen = self._judge(weak)
        losses = {
            "loss_x": supervised_loss(labelled.logits, batch.targets) * batch.labelled_share,
            "loss_u": unlabelled_loss(strong.logits, seen.refined, seen.reliable) * batch.share,
            "loss_p": self._prototypical(labelled, strong, seen, batch),
            "loss_c": self._self_supervised(weak, strong, seen, batch),
        }
        weights = (1.0, self.config.lambda_u, self.config.lambda_p, self.config.lambda_c)
        loss = sum(
            (w * term for w, term in zip(weights, losses.values(), strict=True) if w > 0),
            # Zero times the projector keeps its gradients defined, as distributed training requires.
            start=0.0 * strong.embeddings.sum(),
        )
        judged = self.judge_labelled(teacher, batch, labelled)
        return Step(loss, self._log(losses, seen, batch), self._rows(judged, weak, seen, batch))

    def _first_epoch_step(self, network: Forward, teacher: Forward, batch: Batch) -> Step:
        """Epoch 0 fills the banks; labels are learnt from only if `first_epoch` says so."""
        with torch.no_grad():
            weak = teacher(batch.weak)
        learn = self.config.first_epoch == "supervised"
        with torch.set_grad_enabled(learn):
            labelled = network(batch.labelled)
        seen = self._judge(weak)
        loss_x = supervised_loss(labelled.logits, batch.targets) * batch.labelled_share
        # Zero times the projector: see `step`.
        loss = loss_x + 0.0 * labelled.embeddings.sum() if learn else None
        judged = self.judge_labelled(teacher, batch, labelled)
        return Step(loss, self._log({"loss_x": loss_x}, seen, batch), self._rows(judged, weak, seen, batch))

    def _judge(self, weak: Outputs) -> _Opinions:
        """The two opinions on each weak view, and their mixture (Eq. 4-5, 9)."""
        probs = weak.logits.softmax(-1)
        assigned = self.kmeans.assign(weak.embeddings)
        cluster = self._cluster_opinion(assigned.index)
        aligned = self._align(probs)
        refined = refine(aligned, cluster.to(aligned.dtype), self.config.alpha)
        judged = refined
        if self.config.confidence == "relative":
            judged = refined / ceiling(cluster.to(aligned.dtype), self.config.alpha)[:, None]
        confidence, label = judged.max(-1)
        return _Opinions(
            probs=probs,
            refined=refined,
            cluster=cluster,
            judged=judged,
            label=label,
            confidence=confidence,
            reliable=self._reliable(confidence, label),
            assignment=assigned.index,
            similarity=assigned.similarity,
        )

    def _reliable(self, confidence: Tensor, label: Tensor) -> Tensor:
        """Which labels are learnt from as they are: those that reach the threshold, or that of their class."""
        if self.class_thresholds is None:
            return self.threshold.reliable(confidence)
        thresholds: Tensor = self.class_thresholds()
        return confidence >= thresholds[label]

    def _align(self, probs: Tensor) -> Tensor:
        """DA(p^w) of Eq. 9."""
        aligned: Tensor = probs if self.config.alignment == "none" else self.alignment(probs)
        return aligned

    def _cluster_opinion(self, assignment: Tensor) -> Tensor:
        """Last epoch's label of each sample's cluster, averaged over the heads, (n, C)."""
        heads = [table[assignment[:, head]] for head, table in enumerate(self.cluster_table)]
        return torch.stack(heads).mean(0)

    def _prototypical(self, labelled: Outputs, strong: Outputs, seen: _Opinions, batch: Batch) -> Tensor:
        """L_p on all unlabelled images (Eq. 2); options add labelled ones, mask or soften."""
        prototypes = self.prototypes.prototypes
        loss = batch.share * prototypical_loss(
            strong.embeddings,
            prototypes,
            seen.refined if self.config.prototype_target == "soft" else seen.label,
            temperature=self.config.temperature,
            mask=seen.reliable if self.config.prototype_reliable_only else None,
        )
        if self.config.prototype_labelled:
            loss = loss + batch.labelled_share * prototypical_loss(
                labelled.embeddings, prototypes, batch.targets, temperature=self.config.temperature
            )
        return loss

    def _self_supervised(self, weak: Outputs, strong: Outputs, seen: _Opinions, batch: Batch) -> Tensor:
        """L_c on images below the threshold (Eq. 12), or the loss that the paper compares it with."""
        if self.config.self_supervision == "instance-discrimination":
            return instance_discrimination_loss(
                gather_with_gradient(weak.embeddings),
                gather_with_gradient(strong.embeddings),
                temperature=self.config.temperature,
            )
        return batch.share * consistency_loss(
            weak.embeddings,
            strong.embeddings,
            seen.reliable,
            temperature=self.config.temperature,
            sharpening=self.config.sharpening,
            center=self.center if self.config.center else None,
        )

    def _log(self, losses: dict[str, Tensor], seen: _Opinions, batch: Batch) -> dict[str, Tensor]:
        agree = seen.probs.argmax(-1) == seen.cluster.argmax(-1)
        return {name: term.detach() for name, term in losses.items()} | {
            "retention": seen.reliable.float().mean() * batch.share,
            "agreement": agree.float().mean() * batch.share,
        }

    def _rows(self, judged: Outputs, weak: Outputs, seen: _Opinions, batch: Batch) -> dict[str, Tensor]:
        return {
            "index": batch.index,
            "embeddings": weak.embeddings,
            "probs": seen.probs,
            "classifier": seen.probs.argmax(-1),
            "cluster": seen.cluster.argmax(-1),
            "refined": seen.label,
            "confidence": seen.confidence,
            **({"judged": seen.judged} if self.config.thresholds == "adaptive" else {}),
            "reliable": seen.reliable,
            "assignment": seen.assignment,
            "similarity": seen.similarity,
            "labelled_embeddings": judged.embeddings,
            "labelled_targets": batch.targets,
        }

    def commit(self, rows: dict[str, Tensor], progress: Progress) -> None:
        """Write banks, duals and sums; move centroids while the warm-up lasts."""
        self.bank.write(
            rows["index"],
            label=rows["refined"],
            reliable=rows["reliable"],
            assignment=rows["assignment"],
            similarity=rows["similarity"],
        )
        self.kmeans.update(rows["embeddings"], rows["assignment"], move_centroids=self._warming_up(progress))
        self.prototypes.add(rows["embeddings"], rows["refined"], rows["reliable"])
        self.prototypes.add(rows["labelled_embeddings"], rows["labelled_targets"])
        self.alignment.update(rows["probs"])
        self.threshold.update(rows["confidence"])
        if isinstance(self.class_thresholds, FlexibleThresholds):
            self.class_thresholds.update(rows["index"], label=rows["refined"], confidence=rows["confidence"])
        elif self.class_thresholds is not None:
            self.class_thresholds.update(rows["judged"])
        if self.config.center:
            self.center.lerp_(rows["embeddings"].mean(0), 1.0 - self.config.center_momentum)

    def end_epoch(self, progress: Progress) -> dict[str, float]:
        """Publish prototypes (Eq. 1) and cluster labels (Eq. 8), and move centroids after the warm-up."""
        self.prototypes.publish()
        for head in range(self.config.heads):
            self.cluster_table[head] = cluster_labels(
                self.bank.label,
                self.bank.assignment[:, head],
                self.bank.similarity[:, head],
                clusters=self.sizes.clusters,
                classes=self.problem.classes,
                fraction=self.config.history_fraction,
                key=(self.problem.seed * 1_000_003 + progress.epoch) * 64 + head,
            )
        self.kmeans.end_epoch(move_centroids=not self._warming_up(progress))
        members = self.cluster_sizes()
        return {
            "clusters_in_use": int((members > 0).sum(1).min()),
            "smallest_cluster": int(members.min()),
            "largest_cluster": int(members.max()),
            "largest_dual": float(self.kmeans.duals.max()),
            "prototype_similarity": self.prototypes.similarity(),
            **self.threshold.end_epoch(),
            **self._threshold_range(),
        }

    def _threshold_range(self) -> dict[str, float]:
        """Lowest and highest threshold of a class, where each has its own."""
        if self.class_thresholds is None:
            return {}
        thresholds = self.class_thresholds()
        return {"lowest_threshold": float(thresholds.min()), "highest_threshold": float(thresholds.max())}

    def remark(self) -> str | None:
        """Whether the threshold left τ, or came back."""
        return self.threshold.remark()

    def cluster_sizes(self) -> Tensor:
        """Members of each cluster in the bank, (H, K)."""
        assignment = self.bank.assignment.long()
        return torch.stack(
            [torch.bincount(column[column >= 0], minlength=self.sizes.clusters) for column in assignment.unbind(1)]
        )

    def _warming_up(self, progress: Progress) -> bool:
        return progress.epoch < self.config.centroid_warmup

    def opinions(self, probs: Tensor, index: Tensor) -> dict[str, Tensor]:
        """The classifier's opinion, the last known cluster's, and their mixture."""
        cluster = self._cluster_opinion(self.bank.assignment[index].long())
        return {
            "classifier": probs,
            "cluster": cluster,
            "refined": refine(self._align(probs), cluster, self.config.alpha),
        }

    def prototype_scores(self, embeddings: Tensor) -> Tensor | None:
        """Cosines to the prototypes that the last epoch published."""
        return embeddings.to(self.prototypes.prototypes.dtype) @ self.prototypes.prototypes.T

    def held(self) -> dict[str, Tensor]:
        """The bank's labels and assignments, and the clusters' labels."""
        return {
            "label": self.bank.label,
            "assignment": self.bank.assignment,
            "cluster_table": self.cluster_table,
        }

    def summary(self) -> dict[str, int | float]:
        """K, n, γ and λ as resolved, and the bank's memory."""
        return {
            "clusters": self.sizes.clusters,
            "neighbours": self.sizes.neighbours,
            "gamma": self.sizes.gamma,
            "dual_rate": self.sizes.dual_rate,
            "bank_bytes": self.bank.bytes(),
            "cluster_table_bytes": self.cluster_table.numel() * self.cluster_table.element_size(),
        }


def _class_thresholds(config: ResolvedProtoCon, problem: Problem) -> FlexibleThresholds | SelfAdaptiveThresholds | None:
    """A threshold per class, where that is asked for."""
    if config.thresholds == "flexible":
        return FlexibleThresholds(problem.unlabelled, classes=problem.classes, threshold=config.threshold)
    if config.thresholds == "adaptive":
        return SelfAdaptiveThresholds(problem.classes, momentum=config.threshold_momentum)
    return None
