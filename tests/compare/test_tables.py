"""The tables of a comparison: every number, the bold ones, and what shows where a cell is missing."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from protocon.compare.comparison import Comparison
from protocon.compare.tables import cells_to_csv, show, to_csv, to_latex, to_markdown, write_tables
from tests.compare.records import ACCURACIES, comparison

MARKDOWN = """\
### Test accuracy on digits in %: mean ± standard deviation over 3 seeds

| method | 2 per class | 4 per class |
|---|---|---|
| fixmatch | 83.00 ± 3.00 | **97.00 ± 0.00** |
| supervised | 71.00 ± 1.41 (n = 2) | – |
| protocon | **92.00 ± 2.00** | 96.00 ± 1.00 |
| delta against best baseline | +9.00 | −1.00 |

### protocon minus each method on the same labels, in points: mean of the paired differences [95 % interval]

| method | 2 per class | 4 per class |
|---|---|---|
| fixmatch | +9.00 [+2.43, +15.57] | −1.00 [−3.48, +1.48] |
| supervised | +21.00 [+8.29, +33.71] (n = 2) | – |

### Cost of a run

| method | runs | seconds (median) | memory in MiB (peak) |
|---|---|---|---|
| fixmatch | 6 | 11.0 | 504 |
| supervised | 2 | 11.0 | 502 |
| protocon | 6 | 11.0 | 504 |

### Cells without a result

| cell | error |
|---|---|
| supervised-2pc-seed1 | error: loss_x \\| is not finite |
| supervised-4pc-seed0 | error: loss_x \\| is not finite |
| supervised-4pc-seed1 | error: loss_x \\| is not finite |
| supervised-4pc-seed2 | error: loss_x \\| is not finite |
"""

LATEX = r"""
% Test accuracy on digits in %: mean ± standard deviation over 3 seeds; \usepackage{booktabs}
\begin{tabular}{lcc}
\toprule
method & 2 per class & 4 per class \\
\midrule
fixmatch & 83.00$\pm$3.00 & \textbf{97.00$\pm$0.00} \\
supervised & 71.00$\pm$1.41 ($n$ = 2) & -- \\
\midrule
protocon & \textbf{92.00$\pm$2.00} & 96.00$\pm$1.00 \\
\emph{delta against best baseline} & +9.00 & $-$1.00 \\
\bottomrule
\end{tabular}

% protocon minus each method on the same labels, in points: mean of the paired differences [95 % interval]; \usepackage{booktabs}
\begin{tabular}{lcc}
\toprule
method & 2 per class & 4 per class \\
\midrule
fixmatch & +9.00 [+2.43, +15.57] & $-$1.00 [$-$3.48, +1.48] \\
supervised & +21.00 [+8.29, +33.71] ($n$ = 2) & -- \\
\bottomrule
\end{tabular}

% Cost of a run; \usepackage{booktabs}
\begin{tabular}{lccc}
\toprule
method & runs & seconds (median) & memory in MiB (peak) \\
\midrule
fixmatch & 6 & 11.0 & 504 \\
supervised & 2 & 11.0 & 502 \\
\midrule
protocon & 6 & 11.0 & 504 \\
\bottomrule
\end{tabular}

% Cells without a result; \usepackage{booktabs}
\begin{tabular}{ll}
\toprule
cell & error \\
\midrule
supervised-2pc-seed1 & error: loss\_x | is not finite \\
supervised-4pc-seed0 & error: loss\_x | is not finite \\
supervised-4pc-seed1 & error: loss\_x | is not finite \\
supervised-4pc-seed2 & error: loss\_x | is not finite \\
\bottomrule
\end{tabular}
"""  # noqa: E501


def test_markdown_by_hand() -> None:
    assert to_markdown(comparison()) == MARKDOWN


def test_latex_by_hand() -> None:
    assert to_latex(comparison()) == LATEX.lstrip()


def test_csv_has_every_number_of_the_tables() -> None:
    rows = {(row["method"], row["labels"]): row for row in csv.DictReader(io.StringIO(to_csv(comparison())))}
    assert list(rows) == [(m, n) for m in ("fixmatch", "supervised", "protocon") for n in ("2", "4")]
    numbers = {key: float(value) for key, value in rows["fixmatch", "2"].items() if value and key != "method"}
    expected = {"labels": 2, "n": 3, "mean": 0.83, "std": 0.03, "best": 0, "seconds": 11, "memory": 502}
    apart = {"difference": 0.09, "difference_low": 0.0243, "difference_high": 0.1557}
    assert numbers == pytest.approx(expected | apart, abs=5e-5)
    ours = rows["protocon", "4"]
    assert ours["best_baseline"] == "fixmatch"
    assert float(ours["delta"]) == pytest.approx(-0.01)
    assert (ours["difference"], ours["best"], rows["fixmatch", "4"]["best"]) == ("", "0", "1")
    nothing = rows["supervised", "4"]
    assert nothing["n"] == "0"
    assert {nothing[key] for key in ("mean", "std", "difference", "seconds", "memory")} == {""}


def test_macro_accuracy_has_a_table_where_it_is_another_number() -> None:
    plain = comparison()

    def with_macro(less: float) -> Comparison:
        records = (replace(r, macro_accuracy=None if r.accuracy is None else r.accuracy - less) for r in plain.records)
        return replace(plain, records=tuple(records))

    for same in (plain, with_macro(0.005)):
        assert "Macro accuracy" not in to_markdown(same)
    text = to_markdown(with_macro(0.1))
    table = text.split("### ")[2]
    assert table.startswith("Macro accuracy on digits in %")
    assert "| protocon | 82.00 ± 2.00 | 86.00 ± 1.00 |" in table
    assert "| supervised | 61.00 ± 1.41 (n = 2) | – |" in table
    found = {(row["method"], row["labels"]): row["mean"] for row in with_macro(0.1).content()["macro_accuracy"]}
    assert found["protocon", 2] == pytest.approx(0.82)
    assert found["supervised", 4] is None


def test_cells_have_a_line_each() -> None:
    rows = list(csv.DictReader(io.StringIO(cells_to_csv(comparison()))))
    assert len(rows) == 18
    assert rows[4] == {
        "method": "protocon",
        "labels": "4",
        "seed": "1",
        "accuracy": "0.96",
        "macro_accuracy": "",
        "seconds": "11.0",
        "memory": "504.0",
        "run": "cells/protocon-4pc-seed1",
    }
    missing = [row for row in rows if row["accuracy"] == ""]
    assert len(missing) == 4
    assert {row["run"] for row in missing} == {""}


def test_terminal_shows_the_same_numbers_with_the_best_in_bold() -> None:
    text = io.StringIO()
    show(comparison(out=Path("runs/x")), Console(file=text, width=200, force_terminal=True, color_system="standard"))
    shown = text.getvalue()
    assert re.search(r"\x1b\[1m *92\.00 ± 2\.00", shown)
    assert not re.search(r"\x1b\[1m *96\.00 ± 1\.00", shown)
    for words in (
        "71.00 ± 1.41 (n = 2)",
        "+9.00 [+2.43, +15.57]",
        "supervised-4pc-seed2",
        "memory in MiB",
        "504",
        "runs/x",
    ):
        assert words in shown


def test_a_lucky_part_of_the_seeds_is_not_the_best() -> None:
    lucky = comparison({("protocon", 2): (0.8, 0.9), ("fixmatch", 2): (0.99, None), ("supervised", 2): (0.7, 0.7)})
    assert lucky.best(2) == {"protocon"}
    assert lucky.delta(2) == ("supervised", (0.8 + 0.9) / 2 - 0.7)
    unfinished = comparison({("protocon", 2): (0.8, None), ("fixmatch", 2): (0.7, 0.7)})
    assert unfinished.best(2) == {"fixmatch"}
    assert unfinished.delta(2) is None
    assert "| delta against best baseline | – |" in to_markdown(unfinished)


def test_means_that_look_equal_are_both_bold() -> None:
    equal = comparison({("protocon", 2): (0.800001,), ("fixmatch", 2): (0.8,), ("supervised", 2): (0.79,)})
    text = to_markdown(equal)
    assert text.count("**80.00**") == 2
    assert "| delta against best baseline | 0.00 |" in text
    assert "over 1 seed\n" in text


def test_without_protocon_there_is_neither_delta_nor_difference() -> None:
    others = comparison({key: values for key, values in ACCURACIES.items() if key[0] != "protocon"})
    text = to_markdown(others)
    assert "delta" not in text
    assert "minus each" not in text
    assert "83.00 ± 3.00" in text
    content = others.content()
    assert content["delta"] == content["differences"] == []


def test_json_holds_everything(tmp_path: Path) -> None:
    content = json.loads(json.dumps(comparison(out=tmp_path).content()))
    accuracy = {(row["method"], row["labels"]): row for row in content["accuracy"]}
    assert accuracy["supervised", 2]["n"] == 2
    assert accuracy["supervised", 4]["mean"] is None
    assert [key for key, row in accuracy.items() if row["best"]] == [("fixmatch", 4), ("protocon", 2)]
    assert [(row["labels"], row["best_baseline"]) for row in content["delta"]] == [(2, "fixmatch"), (4, "fixmatch")]
    assert [row["delta"] for row in content["delta"]] == pytest.approx([0.09, -0.01])
    assert content["cost"][1] == {"method": "supervised", "runs": 2, "seconds": 11.0, "memory": 502.0}
    assert len(content["differences"]) == 4
    assert len(content["cells"]) == 18
    assert content["failed"][0] == {"cell": "supervised-2pc-seed1", "error": "error: loss_x | is not finite"}


def test_a_run_that_stood_still_does_not_change_the_cost() -> None:
    whole = comparison({("protocon", 2): (0.8, 0.9, 0.9)})
    slow = replace(whole.records[1], seconds=9000.0)
    interrupted = replace(whole, records=(whole.records[0], slow, whole.records[2]))
    assert interrupted.cost("protocon").seconds == 12.0  # of 10, 9000 and 12


def test_all_files_are_written(tmp_path: Path) -> None:
    write_tables(comparison(), tmp_path)
    texts = {"table.md": MARKDOWN, "table.tex": LATEX.lstrip()}
    texts |= {"table.csv": to_csv(comparison()), "cells.csv": cells_to_csv(comparison())}
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == texts
