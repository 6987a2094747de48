"""Draw docs/evidence.md and its figures from the results in results/claims.

python benchmarks/evidence.py
"""

from pathlib import Path

from protocon.claims.evidence import page
from protocon.claims.figure import draw
from protocon.claims.results import load

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "claims"
DOCS = HERE.parent / "docs"
IMAGES = "images/claims"


def main() -> None:
    """Write the page and its figures."""
    results = load(RESULTS)
    for result in results:
        draw(result, DOCS / IMAGES / f"{result['claim']}-{result['data']}.svg")
    (DOCS / "evidence.md").write_text(page(results, images=IMAGES), encoding="utf-8")


if __name__ == "__main__":
    main()
