"""The page of evidence says what the stored results say."""

from pathlib import Path

from benchmarks.evidence import drawn
from protocon.claims.claim import verdict_of
from protocon.claims.evidence import page
from protocon.claims.figure import svg
from protocon.claims.results import effects_of, load, result_of, save
from protocon.claims.table import CLAIMS
from tests.claims.fakes import FIELD, made_up

ROOT = Path(__file__).parents[2]


def test_the_page_in_the_docs_is_the_one_that_the_results_give() -> None:
    results = load(ROOT / "benchmarks" / "results" / "claims")
    assert results
    assert (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8") == drawn(), "run `make evidence`"
    for result in results:
        assert verdict_of(effects_of(result)) == result["verdict"]
        assert (ROOT / "docs" / "images" / "claims" / f"{result['claim']}-{result['data']}.svg").is_file()


def test_negative_results_come_first_and_claims_without_a_result_are_named(tmp_path: Path) -> None:
    needs = [need for name in ("start", "heads") for need in CLAIMS[name].needs(FIELD)]
    outcome = made_up(tmp_path / "runs", needs, lambda need: {"protocon+lambda_c=0": 0.9}.get(need.variant, 0.5))
    for name in ("heads", "start"):
        save(result_of(CLAIMS[name], outcome, command="protocon claims run heads start"), tmp_path / "results")
    text = page(load(tmp_path / "results"), images="images")
    assert (
        text.index("## Claims: not supported") < text.index(CLAIMS["start"].test) < text.index("## Claims: supported")
    )
    assert "`ahead`" in text.partition("Not run on any data yet")[2].splitlines()[0]
    assert "| 15 | `heads`: On small data one clustering head is sufficient. | supported |" in text


def test_a_result_draws_the_same_figure_every_time(tmp_path: Path) -> None:
    claim = CLAIMS["convergence"]
    outcome = made_up(tmp_path, list(claim.needs(FIELD)), lambda _need: 0.5)
    result = result_of(claim, outcome, command="")
    assert svg(result) == svg(result)
    assert "protocon − comatch" in svg(result)
