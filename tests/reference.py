"""Every equation of the paper once more: slow, plain, float64, written without looking at `protocon.core`.

Where a formula has a sum, there is a loop. Nothing here is shared with the package, so an agreement between
the two is evidence. Names follow the paper: N samples, B rows of a batch, K clusters, C classes, H heads,
d dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


# --------------------------------------------------------------------------------------------------------
# Elementary pieces


def softmax(scores: Floats) -> Floats:
    """SM(·) of one vector (d,)."""
    shifted = np.exp(scores - scores.max())
    return np.asarray(shifted / shifted.sum(), dtype=np.float64)


def log_softmax(scores: Floats) -> Floats:
    """The logarithm of SM(·) of one vector (d,)."""
    largest = scores.max()
    return np.asarray(scores - largest - math.log(np.exp(scores - largest).sum()), dtype=np.float64)


def cross_entropy(target: Floats, scores: Floats) -> float:
    """CE(target, SM(scores)) = −Σ_c target_c · log SM(scores)_c."""
    logs = log_softmax(scores)
    return -sum(float(target[c]) * float(logs[c]) for c in range(len(target)))


def entropy(probs: Floats) -> float:
    """−Σ p log p of one distribution."""
    return -sum(float(p) * math.log(float(p)) for p in probs if p > 0)


def one_hot(label: int, classes: int) -> Floats:
    """The vector y of a class label."""
    row = np.zeros(classes)
    row[label] = 1.0
    return row


def unit(vector: Floats) -> Floats:
    """The ℓ2-norm layer, v / ‖v‖₂."""
    return np.asarray(vector / math.sqrt(float((vector * vector).sum())), dtype=np.float64)


# --------------------------------------------------------------------------------------------------------
# Prototypes


def prototypes(embeddings: Floats, labels: Ints, mask: Bools | None = None, *, previous: Floats) -> Floats:
    """Eq. 1: the normalised mean projection of each class's members; no member keeps the `previous` (C, d).

    `embeddings` (n, d) and `labels` (n,) are those of a whole epoch: labelled images and weak views together.
    Only rows with `mask` true are members (all labelled images; reliable unlabelled ones).
    """
    result = previous.astype(np.float64).copy()
    for c in range(len(previous)):
        members = [embeddings[i] for i in range(len(labels)) if labels[i] == c and (mask is None or bool(mask[i]))]
        if members:
            mean = np.sum(np.stack(members).astype(np.float64), axis=0) / len(members)
            result[c] = unit(mean)
    return result


def prototypical_loss(
    strong: Floats, protos: Floats, labels: Ints | Floats, *, temperature: float, mask: Bools | None = None
) -> float:
    """Eq. 2: contrast of each strong projection with all prototypes; labels (B,) are hard or (B, C) soft.

    The divisor is the number of rows, μB, whatever the optional mask leaves out.
    """
    total = 0.0
    for i in range(len(strong)):
        if mask is not None and not mask[i]:
            continue
        scores = np.array([float(strong[i] @ protos[c]) / temperature for c in range(len(protos))])
        target = one_hot(int(labels[i]), len(protos)) if labels.ndim == 1 else labels[i]
        total += cross_entropy(np.asarray(target, dtype=np.float64), scores)
    return total / len(strong)


# --------------------------------------------------------------------------------------------------------
# Online constrained K-means


def kmeans_objective(embeddings: Floats, centroids: Floats, assignment: Ints) -> float:
    """Eq. 3: Σ_i ‖q_i − c_a(i)‖² (the value; its constraint is `cluster_sizes` ≥ γ)."""
    return sum(float(((embeddings[i] - centroids[assignment[i]]) ** 2).sum()) for i in range(len(embeddings)))


def cluster_sizes(assignment: Ints, clusters: int) -> Ints:
    """Left side of Eq. 3's constraint: Σ_i μ_ik for every k."""
    return np.array([sum(1 for a in assignment if a == k) for k in range(clusters)], dtype=np.int64)


def similarity(embeddings: Floats, centroids: Floats) -> Floats:
    """s_ik = q_i · c_k (the text under Eq. 4), (B, K)."""
    return np.array(
        [[float(embeddings[i] @ centroids[k]) for k in range(len(centroids))] for i in range(len(embeddings))]
    ).reshape(len(embeddings), len(centroids))


def assignment_value(scores: Floats, duals: Floats, mu: Floats) -> float:
    """Eq. 4: Σ_k s_k μ_k + Σ_k ρ_k μ_k of one sample's (relaxed) assignment μ in the simplex."""
    return sum(float(scores[k] * mu[k] + duals[k] * mu[k]) for k in range(len(mu)))


def assign(scores: Floats, duals: Floats) -> Ints:
    """Eq. 5: the cluster with the largest s + ρ, (B,); the best vertex of Eq. 4's simplex."""
    clusters = len(duals)
    return np.array(
        [max(range(clusters), key=lambda k: assignment_value(row, duals, one_hot(k, clusters))) for row in scores],
        dtype=np.int64,
    )


def assignment_margin(scores: Floats, duals: Floats) -> Floats:
    """How far the winner of Eq. 5 is ahead of the runner-up, (B,): under float32's step it is a coin toss."""
    if len(duals) == 1:
        return np.full(len(scores), np.inf)
    ranked = np.sort(scores + duals, axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2], dtype=np.float64)


def project_duals(duals: Floats, bound: float) -> Floats:
    """Appendix Eq. 1's Π: the nearest point of {ρ ≥ 0, ‖ρ‖₁ ≤ δ}, by bisection on the shift.

    The KKT conditions give max(0, ρ − θ) with θ = 0 where that is in the set, else with the θ > 0 at which
    the sum is δ.
    """

    def mass(shift: float) -> float:
        return sum(max(0.0, float(r) - shift) for r in duals)

    low, high = 0.0, max(0.0, float(duals.max()))
    if mass(0.0) <= bound:
        high = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if mass(middle) > bound:
            low = middle
        else:
            high = middle
    return np.array([max(0.0, float(r) - high) for r in duals])


def update_duals(
    duals: Floats, assignment: Ints, *, gamma: float, population: int, rate: float, bound: float | None = None
) -> Floats:
    """Eq. 6, or the appendix's projected form where a `bound` δ is given."""
    batch_size = len(assignment)
    moved = np.zeros(len(duals))
    for k in range(len(duals)):
        total = 0.0
        for a in assignment:
            total += (1.0 if a == k else 0.0) - gamma / population
        moved[k] = float(duals[k]) - rate * total / batch_size
    if bound is not None:
        return project_duals(moved, bound)
    return np.array([max(0.0, float(r)) for r in moved])


def update_centroids(centroids: Floats, embeddings: Floats, assignment: Ints) -> Floats:
    """Eq. 7: normalised mean of each cluster's members among the m instances received so far this epoch.

    Call it after each mini-batch with all of the epoch's instances until now (warm-up), or once with the
    whole epoch's. A cluster with no member keeps its place.
    """
    result = centroids.astype(np.float64).copy()
    for k in range(len(centroids)):
        members = [embeddings[i] for i in range(len(assignment)) if assignment[i] == k]
        if members:
            result[k] = unit(np.sum(np.stack(members).astype(np.float64), axis=0) / len(members))
    return result


# --------------------------------------------------------------------------------------------------------
# Cluster labels and refinement


def cluster_labels(
    labels: Ints,
    assignment: Ints,
    scores: Floats,
    *,
    clusters: int,
    classes: int,
    kept: Bools | None = None,
) -> Floats:
    """Eq. 8: each cluster's class distribution, its members' hard labels weighted by s (without the dual).

    A label of −1 is no member. A negative s weighs 0. A cluster with no mass has a uniform label. `kept` (N,)
    restricts the members to a subset, as in the paper's "half (quarter) of the samples in each cluster".
    """
    mass = np.zeros((clusters, classes))
    for i in range(len(labels)):
        if labels[i] < 0 or (kept is not None and not kept[i]):
            continue
        mass[assignment[i], labels[i]] += max(0.0, float(scores[i]))
    result = np.full((clusters, classes), 1.0 / classes)
    for k in range(clusters):
        if mass[k].sum() > 0:
            result[k] = mass[k] / mass[k].sum()
    return result


def subset_size(members: int, fraction: float) -> int:
    """How many of a cluster's members a `fraction` of Eq. 8 uses: at least that share, in whole samples."""
    return math.ceil(fraction * members)


def align(probs: Floats, marginal: Floats, prior: Floats | None = None) -> Floats:
    """DA(·), the footnote at Eq. 9: p / p̄ (times the class prior), made to sum to one again; rows (B, C)."""
    result = np.zeros(probs.shape)
    for i in range(len(probs)):
        for c in range(len(marginal)):
            result[i, c] = float(probs[i, c]) / float(marginal[c])
            if prior is not None:
                result[i, c] *= float(prior[c])
        result[i] /= result[i].sum()
    return result


def refine(aligned: Floats, cluster: Floats, alpha: float) -> Floats:
    """Eq. 9: α · DA(p^w) + (1 − α) · z, row by row."""
    result = np.zeros(aligned.shape)
    for i in range(len(aligned)):
        for c in range(aligned.shape[1]):
            result[i, c] = alpha * float(aligned[i, c]) + (1.0 - alpha) * float(cluster[i, c])
    return result


def window_marginal(batch_means: Sequence[Floats], *, classes: int, window: int) -> Floats:
    """p̄ as the mean over the last `window` batches' means; uniform before the first."""
    if not batch_means:
        return np.full(classes, 1.0 / classes)
    recent = list(batch_means)[-window:]
    return np.asarray(np.sum(recent, axis=0) / len(recent), dtype=np.float64)


def momentum_marginal(batch_means: Sequence[Floats], *, classes: int, momentum: float) -> Floats:
    """p̄ as an exponential running mean that starts uniform."""
    running = np.full(classes, 1.0 / classes)
    for mean in batch_means:
        running = momentum * running + (1.0 - momentum) * mean
    return running


# --------------------------------------------------------------------------------------------------------
# Losses


def unlabelled_loss(strong_logits: Floats, targets: Floats, reliable: Bools) -> float:
    """Eq. 10: η_i · CE(p̂_i, p^s_i), over all μB rows."""
    total = sum(cross_entropy(targets[i], strong_logits[i]) for i in range(len(strong_logits)) if bool(reliable[i]))
    return total / len(strong_logits)


def supervised_loss(logits: Floats, targets: Ints) -> float:
    """Eq. 11: mean CE(y_i, p^x_i)."""
    classes = logits.shape[1]
    return sum(cross_entropy(one_hot(int(targets[i]), classes), logits[i]) for i in range(len(logits))) / len(logits)


def consistency_loss(
    weak: Floats,
    strong: Floats,
    reliable: Bools,
    *,
    temperature: float,
    sharpening: float = 5.0,
    center: Floats | None = None,
) -> float:
    """Eq. 12: (1 − η_i) · CE(SM(q^w / (T/5)), SM(q^s / T)), over all μB rows.

    The paper prints q^w / 5T but says the target is sharpened *more* than the source: hence T/5.
    """
    shift = np.zeros(weak.shape[1]) if center is None else center
    total = 0.0
    for i in range(len(weak)):
        if not reliable[i]:
            target = softmax((weak[i] - shift) / (temperature / sharpening))
            total += cross_entropy(target, strong[i] / temperature)
    return total / len(weak)


def instance_discrimination_loss(first: Floats, second: Floats, *, temperature: float) -> float:
    """SimCLR's NT-Xent, the paper's alternative to Eq. 12: mean over all 2B views.

    −log exp(v·v⁺/T) / Σ_{u ≠ v} exp(v·u/T), where v⁺ is the other view of the same image.
    """
    views = np.concatenate([first, second]).astype(np.float64)
    rows = len(first)
    total = 0.0
    for i in range(2 * rows):
        others = [j for j in range(2 * rows) if j != i]
        scores = np.array([float(views[i] @ views[j]) / temperature for j in others])
        positive = others.index((i + rows) % (2 * rows))
        total -= float(log_softmax(scores)[positive])
    return total / (2 * rows)


# --------------------------------------------------------------------------------------------------------
# Algorithm 1: the bookkeeping of one epoch


@dataclass(frozen=True)
class Settings:
    """The constants of Algorithm 1."""

    classes: int
    clusters: int
    gamma: float
    population: int
    dual_rate: float
    threshold: float
    alpha: float
    window: int = 32
    move_every_batch: bool = True
    dual_bound: float | None = None
    prior: Floats | None = None


@dataclass
class State:
    """What Algorithm 1 carries from step to step and from epoch to epoch."""

    centroids: Floats
    """Q, (H, K, d)."""
    duals: Floats
    """ρ, (H, K)."""
    prototypes: Floats
    """P, (C, d)."""
    cluster_labels: Floats
    """CPL, each head's z from the previous epoch, (H, K, C)."""
    label: Ints
    """PH, hard pseudo-labels, (N,); −1 where a sample was never seen."""
    reliable: Bools
    """η, (N,)."""
    assignment: Ints
    """CA's first column, (N, H)."""
    similarity: Floats
    """CA's second column, (N, H)."""
    batch_means: list[Floats] = field(default_factory=list)
    """Mean p^w of every batch so far: what p̄ is made of."""


@dataclass(frozen=True)
class StepInput:
    """What the network says in one step: labelled q and y; weak p and q, and which samples these are."""

    labelled_embeddings: Floats
    targets: Ints
    weak_probs: Floats
    weak_embeddings: Floats
    index: Ints


@dataclass(frozen=True)
class StepRecord:
    """What one step of Algorithm 1 decides."""

    assignment: Ints
    """(B, H)."""
    margin: Floats
    """Smallest lead of Eq. 5's winner over the heads, (B,)."""
    cluster: Floats
    """z^a(i), mean over heads, (B, C)."""
    refined: Floats
    """p̂^w, (B, C)."""
    reliable: Bools
    centroids: Floats
    """After the step, (H, K, d)."""
    duals: Floats
    """After the step, (H, K)."""


def fresh_state(centroids: Floats, *, classes: int, population: int) -> State:
    """Algorithm 1 before its first epoch: no duals, no prototypes, uniform cluster labels, nothing seen."""
    heads, clusters, dim = centroids.shape
    return State(
        centroids=centroids.astype(np.float64).copy(),
        duals=np.zeros((heads, clusters)),
        prototypes=np.zeros((classes, dim)),
        cluster_labels=np.full((heads, clusters, classes), 1.0 / classes),
        label=np.full(population, -1, dtype=np.int64),
        reliable=np.zeros(population, dtype=np.bool_),
        assignment=np.zeros((population, heads), dtype=np.int64),
        similarity=np.zeros((population, heads)),
    )


def run_epoch(state: State, steps: Sequence[StepInput], settings: Settings) -> list[StepRecord]:
    """One epoch of Algorithm 1 (Eq. 1, 5–9) on given network outputs; changes `state`.

    Everything a step reads (centroids, duals, cluster labels, running average) is as the previous step left
    it, and z comes from the previous epoch's banks.
    """
    heads = len(state.centroids)
    seen_q: list[Floats] = []
    seen_a: list[Ints] = []
    members_q: list[Floats] = []
    members_y: list[Ints] = []
    records = []
    for step in steps:
        record = _step(state, step, settings)
        seen_q.append(step.weak_embeddings)
        seen_a.append(record.assignment)
        if settings.move_every_batch:
            _move(state, np.concatenate(seen_q), np.concatenate(seen_a))
        # Eq. 1: labelled images are all members, weak views where reliable.
        members_q += [step.labelled_embeddings, step.weak_embeddings[record.reliable]]
        members_y += [step.targets, state.label[step.index][record.reliable]]
        # The arrays of `state` are overwritten by later steps: keep this step's values.
        records.append(replace(record, centroids=state.centroids.copy(), duals=state.duals.copy()))
    if not settings.move_every_batch:
        _move(state, np.concatenate(seen_q), np.concatenate(seen_a))
    state.prototypes = prototypes(np.concatenate(members_q), np.concatenate(members_y), previous=state.prototypes)
    for h in range(heads):
        state.cluster_labels[h] = cluster_labels(
            state.label,
            state.assignment[:, h],
            state.similarity[:, h],
            clusters=settings.clusters,
            classes=settings.classes,
        )
    return records


def _step(state: State, step: StepInput, settings: Settings) -> StepRecord:
    """Eq. 5, 6, 8's look-up and 9 for one batch; writes banks and duals, leaves the centroids alone."""
    heads, rows = len(state.centroids), len(step.index)
    assignment = np.zeros((rows, heads), dtype=np.int64)
    margin = np.full(rows, np.inf)
    cluster = np.zeros((rows, settings.classes))
    for h in range(heads):
        scores = similarity(step.weak_embeddings, state.centroids[h])
        assignment[:, h] = assign(scores, state.duals[h])
        margin = np.minimum(margin, assignment_margin(scores, state.duals[h]))
        state.duals[h] = update_duals(
            state.duals[h],
            assignment[:, h],
            gamma=settings.gamma,
            population=settings.population,
            rate=settings.dual_rate,
            bound=settings.dual_bound,
        )
        for i in range(rows):
            cluster[i] += state.cluster_labels[h, assignment[i, h]] / heads
            state.assignment[step.index[i], h] = assignment[i, h]
            state.similarity[step.index[i], h] = scores[i, assignment[i, h]]
    marginal = window_marginal(state.batch_means, classes=settings.classes, window=settings.window)
    refined = refine(align(step.weak_probs, marginal, settings.prior), cluster, settings.alpha)
    state.batch_means.append(np.asarray(step.weak_probs.sum(axis=0) / rows, dtype=np.float64))
    reliable = np.array([bool(row.max() >= settings.threshold) for row in refined], dtype=np.bool_)
    for i in range(rows):
        state.label[step.index[i]] = int(np.argmax(refined[i]))
        state.reliable[step.index[i]] = reliable[i]
    return StepRecord(assignment, margin, cluster, refined, reliable, state.centroids, state.duals)


def _move(state: State, embeddings: Floats, assignment: Ints) -> None:
    """Eq. 7 for every head from the instances received so far."""
    for h in range(len(state.centroids)):
        state.centroids[h] = update_centroids(state.centroids[h], embeddings, assignment[:, h])
