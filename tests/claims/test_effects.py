"""Every claim on made-up runs: supported where the paper is right, not supported where the opposite is true."""

from pathlib import Path

import pytest

from protocon.claims.claim import Effect, Need, verdict_of
from protocon.claims.claims_runner import jobs_of
from protocon.claims.field import FIELDS
from protocon.claims.table import CLAIMS, chosen
from protocon.errors import ConfigError, RunError
from tests.claims.fakes import FIELD, made_up

LEADERS = {
    "moderate": "protocon+neighbours=4",
    "updates": "protocon+centroid_warmup=10",
}
"""The variant that the paper says is best, where that is not `protocon`."""


def as_the_paper_says(claim: str, need: Need) -> float:
    if need.variant == LEADERS.get(claim, "protocon"):
        return 0.9 if need.condition == "plain" else 0.85
    if "discrimination" in need.variant or "size_ratio" in need.variant:
        return 0.1
    if need.variant == "protocon+heads=2":
        return 0.9
    return 0.6 if need.condition == "plain" else 0.3


def the_opposite(claim: str, need: Need) -> float:
    if need.variant == "protocon+heads=2":
        return 0.6
    return 0.2 + 0.9 * (0.9 - as_the_paper_says(claim, need))


@pytest.mark.parametrize("name", [name for name in CLAIMS if name not in ("steady", "memory")])
def test_a_claim_is_supported_where_it_is_true_and_not_where_its_opposite_is(name: str, tmp_path: Path) -> None:
    claim = CLAIMS[name]
    needs = list(claim.needs(FIELD))
    true = claim.effects(made_up(tmp_path / "true", needs, lambda need: as_the_paper_says(name, need)))
    assert verdict_of(true) == "supported", [(one.what, one.mean, one.low) for one in true]
    assert all(one.n == 3 for one in true)
    if name in ("refinement", "purity"):  # about one method alone
        return
    false = claim.effects(made_up(tmp_path / "false", needs, lambda need: the_opposite(name, need)))
    assert verdict_of(false) == "not supported", [(one.what, one.mean, one.high) for one in false]


def test_the_spread_over_draws_is_a_ratio_with_an_interval_of_f(tmp_path: Path) -> None:
    needs = list(CLAIMS["steady"].needs(FIELD))
    outcome = made_up(tmp_path, needs, lambda _need: 0.5)
    first = CLAIMS["steady"].effects(outcome)[0]  # the fixmatch runs vary twice as much as ours
    assert first.mean == pytest.approx(2.0)
    assert first.low is not None
    assert first.high is not None
    assert first.low * first.high == pytest.approx(4.0)  # as many seeds on both sides
    assert first.low == pytest.approx(2 / 39**0.5)  # the 97.5 % point of F with 2 and 2 degrees of freedom is 39


def test_memory_is_counted_as_the_paper_does_and_measured(tmp_path: Path) -> None:
    numbers, measured = CLAIMS["memory"].effects(made_up(tmp_path, [], lambda _need: 0.0))
    assert numbers.mean == pytest.approx(153.6 / 9.6)
    assert numbers.verdict == "supported"
    assert measured.mean is not None
    assert measured.mean > 16


@pytest.mark.parametrize("field", FIELDS.values(), ids=str)
def test_every_run_that_a_claim_needs_is_a_valid_request(field: object, tmp_path: Path) -> None:
    chosen_field = next(one for one in FIELDS.values() if one is field)
    needs = {need for claim in CLAIMS.values() for need in claim.needs(chosen_field)}
    jobs = jobs_of(chosen_field, sorted(needs, key=str), tmp_path)
    assert len({(job.folder, job.cell.name) for job in jobs.values()}) == len(jobs) == len(needs) * chosen_field.seeds


@pytest.mark.parametrize(
    ("low", "high", "within", "verdict"),
    [
        (0.1, 2.0, False, "supported"),
        (-2.0, -0.1, False, "not supported"),
        (-0.1, 2.0, False, "undecided"),
        (None, None, False, "undecided"),
        (-0.5, 0.5, True, "supported"),
        (-1.5, 0.5, True, "undecided"),
        (1.5, 2.5, True, "not supported"),
    ],
)
def test_an_interval_decides(low: float | None, high: float | None, within: bool, verdict: str) -> None:
    one = Effect("x", "points", 3, 0.0, low, high, claimed=1.0 if within else 0.0, within=within)
    assert one.verdict == verdict


def test_one_effect_that_fails_is_enough_and_one_that_is_open_leaves_the_claim_open() -> None:
    yes, no, unclear = (Effect("x", "points", 3, 0.0, *interval) for interval in ((1, 2), (-2, -1), (-1, 1)))
    assert verdict_of([yes, yes]) == "supported"
    assert verdict_of([yes, unclear]) == "undecided"
    assert verdict_of([yes, unclear, no]) == "not supported"


def test_claims_go_by_name_or_number_and_a_wrong_name_is_an_error() -> None:
    assert [claim.id for claim in chosen(["5", "heads", "start"])] == ["start", "heads"]
    assert len(chosen(["all"])) == len(CLAIMS) == 16
    with pytest.raises(ConfigError, match="did you mean purity"):
        chosen(["purty"])


def test_a_claim_about_the_course_of_runs_says_that_a_table_is_not_enough(tmp_path: Path) -> None:
    from protocon.claims.claim_outcome import from_table

    table = tmp_path / "cells.csv"
    table.write_text("method,labels,seed,accuracy\nprotocon,2,0,0.9\n", encoding="utf-8")
    with pytest.raises(RunError, match="needs the course of its runs"):
        CLAIMS["refinement"].effects(from_table(FIELD, table))
