"""Ten thousand inputs that nobody would write, through every way into the package.

    python -m benchmarks.fuzz
    python -m benchmarks.fuzz --seed 1 --only labels.csv labels.xlsx "folders of files" "folders with labels"

The second form puts all inputs through the readers of labels and folders. `--seed` makes other inputs; without it they
are the same every time.

None may end in anything but a result or one of our own errors, take longer than 20 seconds, or write a file elsewhere.
Prints one JSON object; the first finding stops it with the smallest input that shows it.
"""

import argparse
import faulthandler
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.running import SECONDS, nothing_else_written, throw
from tests.fuzz.targets import TARGETS


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), help="targets that share the inputs evenly")
    parser.add_argument("--seed", type=int, help="of other inputs than the usual ones")
    asked = parser.parse_args()
    counts = {name: target.share * asked.inputs // 100 for name, target in TARGETS.items()}
    if asked.only:
        counts = dict.fromkeys(asked.only, -(-asked.inputs // len(asked.only)))
    rows: dict[str, dict[str, Any]] = {}
    for name, count in counts.items():
        faulthandler.dump_traceback_later(3600, exit=True)  # code in C that never returns gets no other end
        with tempfile.TemporaryDirectory() as empty, nothing_else_written(Path(empty)):
            tally = throw(TARGETS[name], count, seed=asked.seed)
        rows[name] = {
            "inputs": tally.results + tally.errors,
            "accepted": tally.results,
            "our_errors": tally.errors,
            "by_kind": tally.kinds,
            "under_seconds": SECONDS,
        }
    faulthandler.cancel_dump_traceback_later()
    total = sum(row["inputs"] for row in rows.values())
    none = {"tracebacks": 0, "hangs": 0, "written_elsewhere": 0}  # any would have stopped this with an error
    print(json.dumps({"inputs": total, "seed": asked.seed, **none, "targets": rows}, indent=2))


if __name__ == "__main__":
    main()
