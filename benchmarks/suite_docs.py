"""The suite's tables in the docs, drawn from its stored cells: `python -m benchmarks.suite_docs` writes them again.

    cat suite/results/*.jsonl > benchmarks/results/suite.jsonl      # after `python -m benchmarks.suite`
    python -m benchmarks.suite_docs

docs/frozen.md has three tables between marks (four labels per class, other labels, parts of the method), README.md one.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.suite import OURS, TUNING
from benchmarks.suite_cells import Result, read_results
from benchmarks.suite_tables import difference

ROOT = Path(__file__).resolve().parents[1]
CELLS = ROOT / "benchmarks" / "results" / "suite.jsonl"
FOLDERS = (*TUNING, "seedlings", "art", "food", "hieroglyphs")
ROWS = {
    "logistic-regression": "logistic regression",
    "logistic-regression-views": "logistic regression, components and both views",
    "label-spreading": "label spreading, scikit-learn's",
    "label-spreading-cosine": "label spreading, cosines",
    "mixture-graph": "Gaussian mixture + graph",
    "supervised": "heads, labels only",
    "pseudo-label": "Pseudo-Label",
    "fixmatch": "FixMatch",
    "fixmatch-da": "FixMatch + DA",
    "debiaspl": "DebiasPL",
    "comatch": "CoMatch",
    "simmatch": "SimMatch",
    "flexmatch": "FlexMatch",
    "freematch": "FreeMatch",
    "softmatch": "SoftMatch",
    "protocon": "ProtoCon",
    OURS: "**protocon-frozen (auto)**",
}
PARTS = {
    "held_out_groups=0": "held-out labels that say whom to trust",
    "smoothing=0": "graph of neighbours",
    "shaped_neighbours=false": "neighbours in the space that prototypes shape",
    "sharpness=0": "Gaussians (prototypes)",
    "lambda_u=0": "the neighbourhood's labels as targets: heads learn from the given labels only",
    "aligned=false": "opinions aligned to the estimated class frequencies",
    "class_prior=uniform": "the estimate of those frequencies: aligned to uniform ones instead",
    "views.cached_mirror=false": "mirror image",
    "network.second_look=0": "second look of the encoder",
    "network.colour_shares=false": "colours beside the encoder's features",
    "network.pooled_blocks=0": "pooled blocks of the encoder",
    "network.encoder=tf_efficientnet_lite0": "the larger encoder at 192 pixels: lite0 at its 128 instead",
}
ELSEWHERE = {
    "fixmatch-da+class_prior=uniform": "in FixMatch + DA, estimated class frequencies",
    "protocon+class_prior=uniform": "in ProtoCon, estimated class frequencies",
    "protocon+lambda_c=0": "in ProtoCon, the self-supervised loss L_c",
}
"""Parts of other methods that `auto` does without."""
OTHER = {"2": "2 per class", "8": "8 per class", "r4": "random, 4 per class on average"}


def pair(cells: Sequence[Result], folders: Sequence[str]) -> str:
    """Mean accuracy / macro accuracy over folders; empty where one has no cell."""
    by_folder = [[cell for cell in cells if cell.folder == folder] for folder in folders]
    if not all(by_folder):
        return ""
    accuracy = statistics.fmean(statistics.fmean(cell.accuracy for cell in own) for own in by_folder)
    macro = statistics.fmean(statistics.fmean(cell.macro for cell in own) for own in by_folder)
    return f"{100 * accuracy:.1f} / {100 * macro:.1f}"


def draws_of(cells: Sequence[Result]) -> str:
    """How many draws of labels the folders have."""
    counts = {sum(cell.folder == folder for cell in cells) for folder in {cell.folder for cell in cells}}
    return str(max(counts)) if len(counts) == 1 else f"{min(counts)}–{max(counts)}"


def four_per_class(results: Sequence[Result]) -> str:
    """All methods, folder by folder."""
    chosen = [result for result in results if result.draw == "4"]
    columns = f"{' | '.join(FOLDERS)} | mean | draws | protocon-frozen is ahead by (same draws) | least ahead on"
    lines = [f"| method | {columns} |", "|---" * (len(FOLDERS) + 5) + "|"]
    for method, title in ROWS.items():
        own = [result for result in chosen if result.method == method]
        if not own:
            continue
        cells = [pair(own, [folder]) or "–" for folder in FOLDERS]
        ahead, least = ("", "") if method == OURS else difference(chosen, OURS, method)
        lines.append(f"| {title} | {' | '.join([*cells, pair(own, FOLDERS), draws_of(own), ahead, least])} |")
    return "\n".join(lines)


def other_labels(results: Sequence[Result]) -> str:
    """References and ours with fewer, more and random labels: means; lead; smallest lead."""
    lines = [f"| | {' | '.join(OTHER.values())} |", "|---" * (len(OTHER) + 1) + "|"]
    for method, title in ROWS.items():
        cells = []
        for draw in OTHER:
            chosen = [result for result in results if result.draw == draw]
            own = [result for result in chosen if result.method == method]
            folders = [folder for folder in FOLDERS if any(result.folder == folder for result in chosen)]
            ahead = "" if method == OURS or not own else "; " + "; ".join(difference(chosen, OURS, method))
            cells.append(f"{pair(own, folders)}{ahead}" if own else "–")
        if any(cell != "–" for cell in cells):
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parts(results: Sequence[Result]) -> str:
    """A whole method minus the method without a part."""
    lines = [
        "| without | folders × draws | accuracy / macro accuracy, what the part brings | brings least on |",
        "|---|---|---|---|",
    ]
    chosen = [result for result in results if result.draw == "4"]
    for name, title in ({f"{OURS}+{change}": title for change, title in PARTS.items()} | ELSEWHERE).items():
        whole, _, change = name.partition("+")
        count = sum(result.method == name for result in chosen)
        if count:
            ahead, least = difference(chosen, whole, name)
            lines.append(f"| {title} (`{change}`) | {count} | {ahead} | {least} |")
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """The README's table: rows that have all folders."""
    chosen = [result for result in results if result.draw == "4"]
    lines = ["| | mean over nine folders | draws | `auto` is ahead by | smallest lead |", "|---|---|---|---|---|"]
    for method, title in ROWS.items():
        own = [result for result in chosen if result.method == method]
        if own and pair(own, FOLDERS):
            ahead, least = ("", "") if method == OURS else difference(chosen, OURS, method)
            lines.append(f"| {title} | {pair(own, FOLDERS)} | {draws_of(own)} | {ahead} | {least} |")
    return "\n".join(lines)


PLACES = {
    "suite-4": (ROOT / "docs" / "frozen.md", four_per_class),
    "suite-other": (ROOT / "docs" / "frozen.md", other_labels),
    "suite-parts": (ROOT / "docs" / "frozen.md", parts),
    "suite-summary": (ROOT / "README.md", summary),
}
"""Marks, and what stands between them."""


def drawn(page: str, mark: str, shown: str) -> str:
    """A page with this table between its marks.

    Args:
        page: the page's text.
        mark: `<!-- MARK begin -->` and `<!-- MARK end -->` stand in it.
        shown: the table.
    """
    before, rest = page.split(f"<!-- {mark} begin -->")
    after = rest.split(f"<!-- {mark} end -->")[1]
    return f"{before}<!-- {mark} begin -->\n{shown}\n<!-- {mark} end -->{after}"


def main() -> None:
    """Write all tables."""
    results = read_results(CELLS)
    for mark, (file, table) in PLACES.items():
        file.write_text(drawn(file.read_text(encoding="utf-8"), mark, table(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
