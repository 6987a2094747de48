"""Ideas for ProtoCon that were tried, as a part of the page of evidence: each against ProtoCon, draw by draw."""

from dataclasses import dataclass

from protocon.claims.scratch_tables import AUTO, signed
from protocon.compare.comparison import Comparison
from protocon.compare.statistics import Difference, paired_difference

IDEAS = {
    f"{AUTO}+thresholds=flexible": "FlexMatch's thresholds by class, on the refined label",
    f"{AUTO}+thresholds=adaptive": "FreeMatch's thresholds by class, on the refined label",
    f"{AUTO}+confidence=relative": "confidence divided by its ceiling, α + (1 − α) · max z",
    f"{AUTO}+thresholds=flexible+confidence=relative": "FlexMatch's thresholds on confidence divided by its ceiling",
    f"{AUTO}+threshold=0.7": "a lower threshold, that of the paper's recipe for ImageNet",
    f"{AUTO}+threshold=0.7+neighbours=16": "the same with half as many neighbours",
    f"{AUTO}+thresholds=flexible+neighbours=16": "FlexMatch's thresholds and half as many neighbours",
    f"{AUTO}+thresholds=flexible+prototype_target=soft": "FlexMatch's thresholds, prototypical loss with soft labels",
    f"{AUTO}+thresholds=flexible+alpha=0.5": "FlexMatch's thresholds, both opinions count the same",
    f"{AUTO}+class_prior=running": "class frequencies estimated while training",
    f"{AUTO}+min_retention=0.5": "a threshold that half of the images reach",
    f"{AUTO}+prototype_reliable_only=true": "prototypical loss on reliable images alone",
    f"{AUTO}+prototype_target=soft": "prototypical loss with the soft label",
    "protocon": "alignment by the running mean, as published",
    "flexmatch": "for comparison: FlexMatch itself",
    "fixmatch-da+alignment=dual": "for comparison: FixMatch with ProtoCon's alignment",
}
"""Variants in words."""


@dataclass(frozen=True)
class IdeasTable:
    """Ideas on one field's validation images."""

    comparison: Comparison
    about: str
    command: str


def ideas_section(ideas: IdeasTable | None) -> str:
    """The table as Markdown; '' where none was tried."""
    if ideas is None:
        return ""
    comparison = ideas.comparison
    variants = [method for method in comparison.methods if method != AUTO]
    own = [method for method in variants if method.startswith("protocon")]
    winners = [method for method in own if _wins(comparison, method)]
    if winners:
        verdict = (
            f"Clearly better, in every column: {', '.join(f'`{method}`' for method in winners)}. "
            "`train` does not do it by itself yet: the tables above would have to be measured again with it."
        )
    else:
        verdict = "None is clearly better in every column, so none of them became `auto`."
    lines = [
        "## Ideas tried",
        "",
        f"{len(own)} changes of ProtoCon, each minus ProtoCon as `train` runs it (`{AUTO}`), in points of accuracy, "
        "paired by the draw of the labels, with its 95 % interval. Choices must not see the test images: these runs "
        "are tested on further images of the training part.",
        "",
        f"**{verdict}**",
        "",
        "| change | | " + " | ".join(f"{labels} per class" for labels in comparison.labels) + " |",
        "|---|---|" + "---|" * len(comparison.labels),
        "| none | `" + AUTO + "` | " + " | ".join(_level(comparison, labels) for labels in comparison.labels) + " |",
    ]
    for method in sorted(variants, key=lambda name: -_sum(comparison, name)):
        cells = [_difference(_against(comparison, method, labels)) for labels in comparison.labels]
        lines.append(f"| {IDEAS.get(method, '')} | `{method}` | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{ideas.about}. Command: `{ideas.command}`", ""])


def _against(comparison: Comparison, method: str, labels: int) -> Difference:
    return paired_difference(comparison.by_seed(method, labels), comparison.by_seed(AUTO, labels))


def _wins(comparison: Comparison, method: str) -> bool:
    """Whether the interval lies above 0 in every column."""
    found = [_against(comparison, method, labels).low for labels in comparison.labels]
    return all(low is not None and low > 0 for low in found)


def _sum(comparison: Comparison, method: str) -> float:
    return sum(_against(comparison, method, labels).mean or 0.0 for labels in comparison.labels)


def _level(comparison: Comparison, labels: int) -> str:
    found = comparison.accuracy(AUTO, labels)
    return "–" if found.mean is None else f"{100 * found.mean:.1f} % (n = {found.n})"


def _difference(found: Difference) -> str:
    if found.mean is None:
        return "–"
    interval = "" if found.low is None or found.high is None else f" [{signed(found.low)}, {signed(found.high)}]"
    return f"{signed(found.mean)}{interval}" + (f" (n = {found.n})" if found.n else "")
