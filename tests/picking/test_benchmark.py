"""benchmarks/picks.py: every rule gives as many different images as asked for, and figures that make sense."""

import numpy as np
import pytest

from benchmarks.picks import RULES, Folder, Pool, measure, tables
from tests.picking.blobs import blobs


@pytest.fixture(scope="module")
def pool() -> Pool:
    features, groups = blobs((60, 40, 20, 10), spread=0.5)
    test, test_groups = blobs((60, 40, 20, 10), spread=0.5)
    return Pool(Folder("blobs", np.abs(features), groups, np.abs(test), test_groups), seed=1)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_gives_different_images(pool: Pool, rule: str) -> None:
    chosen = RULES[rule](pool, 12)
    assert len(set(chosen.tolist())) == len(chosen) == 12
    assert (chosen == RULES[rule](pool, 12)).all()


def test_figures(pool: Pool) -> None:
    cells = [measure(pool, rule, 2, pipeline=False) for rule in ("random", "coverage, 3 rounds")]
    picked = cells[1]
    assert picked.found == 1
    assert picked.accuracy > 0.95
    assert picked.prior < picked.uniform
    assert f"| {100 * picked.accuracy:.1f} |" in tables(cells, [2])
