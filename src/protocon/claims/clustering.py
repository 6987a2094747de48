"""Claims about the clustering: its constraint, its updates, and what it costs in memory."""

from collections.abc import Sequence
from functools import cache

from protocon.claims.accuracy import OURS
from protocon.claims.claim import Claim, Effect, Need, effect
from protocon.claims.claim_outcome import Outcome, Rows, last_of
from protocon.claims.field import Field
from protocon.compare.statistics import mean_interval, paired_difference
from protocon.core.bank import SampleBank

_FREE = f"{OURS}+size_ratio=0"
_FEW = 50.0
"""Percent of the clusters: 'only a few' are fewer than this (the paper's 20 of 250 are 8)."""
IMAGENET = {"samples": 1_200_000, "classes": 1000, "clusters": 4800, "dim": 128}
"""The paper's figures; n = 250, d = 128."""
_PAPER_RATIO = 15.5
"""What is printed as 16."""


def _constraint_needs(field: Field) -> list[Need]:
    return [Need(OURS, field.scarce), Need(_FREE, field.scarce)]


def _constraint(outcome: Outcome) -> Sequence[Effect]:
    ours, free = _constraint_needs(outcome.field)
    clusters = {seed: int(folder.result()["clusters"]) for seed, folder in outcome.folders[free].items()}
    used = outcome.read(free, last_of("clusters_in_use"))
    share = {seed: 100 * used[seed] / clusters[seed] for seed in used}
    kept = {
        seed: 100 * value / clusters[seed] for seed, value in outcome.read(ours, last_of("clusters_in_use")).items()
    }
    return [
        effect("clusters in use, γ = 0.9 n − γ = 0", "points", paired_difference(kept, share)),
        effect(
            "half of all clusters − those in use with γ = 0",
            "points",
            mean_interval([_FEW - s for s in share.values()]),
        ),
        effect("accuracy, γ = 0.9 n − γ = 0", "points", outcome.ahead(ours, free)),
    ]


def _update_needs(field: Field) -> list[Need]:
    ways = (field.epochs // 3, field.epochs, 0)  # warm-up, mini-batches throughout, epochs throughout
    return [Need(f"{OURS}+centroid_warmup={warmup}", field.scarce) for warmup in ways]


def _updates(outcome: Outcome) -> Sequence[Effect]:
    both, batches, epochs = _update_needs(outcome.field)
    early = {
        need: {seed: _early_purity(rows) for seed, rows in outcome.classes(need).items()} for need in (both, epochs)
    }
    what = "purity in the first third, mini-batch − epoch updates"
    return [
        effect("accuracy, warm-up then epochs − mini-batches throughout", "points", outcome.ahead(both, batches)),
        effect("accuracy, warm-up then epochs − epochs throughout", "points", outcome.ahead(both, epochs)),
        effect(what, "points", paired_difference(early[both], early[epochs])),
    ]


def _early_purity(rows: Rows) -> float:
    first = rows[: max(1, len(rows) // 3)]
    return 100 * float(sum(row["mean_purity"] for row in first)) / len(first)


@cache
def _bytes_held() -> int:
    """Bytes of the banks and the table of cluster labels at ImageNet's size, as they are allocated."""
    bank = SampleBank(IMAGENET["samples"], classes=IMAGENET["classes"], clusters=IMAGENET["clusters"], heads=1)
    return bank.bytes() + 4 * IMAGENET["clusters"] * IMAGENET["classes"]


def _memory(_outcome: Outcome) -> Sequence[Effect]:
    samples = IMAGENET["samples"]
    numbers = samples * IMAGENET["dim"] / (4 * samples + IMAGENET["clusters"] * IMAGENET["classes"])
    measured = 4 * samples * IMAGENET["dim"] / _bytes_held()
    return [
        Effect(
            "numbers: embeddings ÷ what ProtoCon holds, at ImageNet's size", "×", 0, numbers, None, None, _PAPER_RATIO
        ),
        Effect("bytes: the same as allocated (embeddings in float32)", "×", 0, measured, None, None, _PAPER_RATIO),
    ]


CLAIMS = (
    Claim(
        "constraint",
        "Without a smallest cluster size (γ = 0) only a few clusters stay in use, and accuracy suffers.",
        "appendix A, 'Constrained vs unconstrained clustering'",
        "Share of clusters in use with and without the constraint; with γ = 0 it must be below a half; accuracy.",
        _constraint_needs,
        _constraint,
    ),
    Claim(
        "updates",
        "Centroids that move with every mini-batch at first and once per epoch later are best.",
        "appendix A, 'Mini-batch updates vs Epoch updates'",
        "A warm-up of a third of the epochs minus mini-batch updates throughout and epoch updates throughout: "
        "accuracy, and purity of the clusters in the first third.",
        _update_needs,
        _updates,
    ),
    Claim(
        "memory",
        "ProtoCon holds a sixteenth of what the embeddings of all images would take.",
        "section 3.1, 'Memory Analysis': 9.6M memory units against 153.6M",
        "Numbers by the paper's count, and bytes of the banks as allocated, for 1.2 million images, 4,800 clusters, "
        "1,000 classes, d = 128. No training.",
        lambda _field: [],
        _memory,
    ),
)
