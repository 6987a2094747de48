"""Tables of the suite: means over folders, wins, paired differences and worst cases."""

import statistics
from collections.abc import Callable, Sequence

from benchmarks.suite_cells import Result

_Z = 1.96


def title(draw: str) -> str:
    """A draw in words."""
    if draw.startswith("r"):
        return f"{draw[1:]} labels per class on average, images drawn at random, at least one of each class"
    return f"{draw} labels per class"


def table(results: Sequence[Result], draw: str, ours: str) -> str:
    """Accuracy / macro accuracy by folder, their means, folders won, and how far `ours` is ahead, with its interval."""
    chosen = [result for result in results if result.draw == draw]
    folders = list(dict.fromkeys(result.folder for result in chosen))
    methods = list(dict.fromkeys(result.method for result in chosen))
    cells = {(m, f): [r for r in chosen if (r.method, r.folder) == (m, f)] for m in methods for f in folders}
    complete = [method for method in methods if all(cells[method, folder] for folder in folders)]
    best = {folder: max(_mean(cells[method, folder], _accuracy) for method in complete) for folder in folders}
    lines = [
        f"{title(draw)}: accuracy / macro accuracy in %, mean over draws of labels",
        "",
        f"| method | {' | '.join(folders)} | mean | draws | folders won | {ours} is ahead by | worst folder |",
        "|---" * (len(folders) + 6) + "|",
    ]
    for method in methods:
        shown = [_pair(cells[method, folder]) for folder in folders]
        whole = "" if method not in complete else _pair_of_means([cells[method, folder] for folder in folders])
        won = sum(method in complete and _mean(cells[method, f], _accuracy) == best[f] for f in folders)
        draws = min(len(cells[method, folder]) for folder in folders)
        ahead, worst = "", ""
        if method != ours and (ours in methods):
            ahead, worst = difference(chosen, ours, method)
        lines.append(f"| {method} | {' | '.join(shown)} | {whole} | {draws} | {won} | {ahead} | {worst} |")
    return "\n".join(lines)


def difference(results: Sequence[Result], ours: str, other: str) -> tuple[str, str]:
    """Mean paired differences of accuracy / macro accuracy with 95 % intervals over draws, folders fixed; the worst.

    Only cells that both have count. Where a folder has one draw only there is no interval.
    """
    texts, worst = [], ""
    for value in (_accuracy, _macro):
        by_folder, variance, repeated = {}, 0.0, True
        for folder in dict.fromkeys(result.folder for result in results):
            mine, theirs = (_by_draw(results, method, folder, value) for method in (ours, other))
            both = [mine[key] - theirs[key] for key in mine if key in theirs]
            if not both:
                continue
            by_folder[folder] = statistics.fmean(both)
            repeated = repeated and len(both) > 1
            variance += statistics.variance(both) / len(both) if len(both) > 1 else 0.0
        if not by_folder:
            return "", ""
        half = f" ± {100 * _Z * variance**0.5 / len(by_folder):.1f}" if repeated else ""
        texts.append(f"{100 * statistics.fmean(by_folder.values()):+.1f}{half}")
        least = min(by_folder, key=lambda folder: by_folder[folder])
        worst = worst or f"{least} {100 * by_folder[least]:+.1f}"
    return " / ".join(texts), worst


def _accuracy(result: Result) -> float:
    return result.accuracy


def _macro(result: Result) -> float:
    return result.macro


def _by_draw(
    results: Sequence[Result], method: str, folder: str, value: Callable[[Result], float]
) -> dict[tuple[str, int], float]:
    return {(r.draw, r.seed): value(r) for r in results if (r.method, r.folder) == (method, folder)}


def _mean(cells: Sequence[Result], value: Callable[[Result], float]) -> float:
    return statistics.fmean(value(cell) for cell in cells)


def _pair(cells: Sequence[Result]) -> str:
    return f"{100 * _mean(cells, _accuracy):.1f} / {100 * _mean(cells, _macro):.1f}" if cells else ""


def _pair_of_means(folders: Sequence[Sequence[Result]]) -> str:
    accuracy, macro = (statistics.fmean(_mean(cells, value) for cells in folders) for value in (_accuracy, _macro))
    return f"{100 * accuracy:.1f} / {100 * macro:.1f}"
