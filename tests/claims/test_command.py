"""`protocon claims` on the command line."""

from pathlib import Path

import pytest

from protocon.claims.table import CLAIMS
from tests.commands import run_command


def test_claims_are_listed_with_their_places(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = run_command(monkeypatch, capsys, "claims", "--json").json["claims"]
    assert list(listed) == list(CLAIMS)
    assert all(claim["place"] and claim["test"] for claim in listed.values())
    assert "16 moderate" in run_command(monkeypatch, capsys, "claims").out


def test_a_claim_is_run_from_a_comparisons_table_and_leaves_result_and_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = ("protocon", "fixmatch", "fixmatch-da", "comatch", "simmatch", "debiaspl")
    rows = [
        f"{method},{labels},{seed},{0.9 - 0.1 * (method != 'protocon') + 0.001 * seed * labels * len(method)}"
        for method in methods
        for labels in (2, 4, 8)
        for seed in range(3)
    ]
    table = tmp_path / "cells.csv"
    table.write_text("method,labels,seed,accuracy\n" + "\n".join(rows) + "\n", encoding="utf-8")
    arguments = ("claims", "run", "ahead", "--cells", str(table), "--results", str(tmp_path / "results"))
    done = run_command(monkeypatch, capsys, *arguments)
    assert done.code == 0
    assert "ahead on digits: supported" in done.out
    assert (tmp_path / "results" / "ahead-digits.svg").read_text().startswith("<?xml")
    (result,) = run_command(monkeypatch, capsys, *arguments, "--json").json["results"]
    assert result["command"].startswith("protocon claims run ahead")
    assert result["seeds"] == 3
    assert "epochs" not in result  # of the comparison, which this cannot know


def test_an_unknown_claim_or_field_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = run_command(monkeypatch, capsys, "claims", "run", "aheat")
    assert wrong.code == 1
    assert "did you mean ahead" in wrong.err
    assert run_command(monkeypatch, capsys, "claims", "run", "memory", "--data", "cifar").code == 1
