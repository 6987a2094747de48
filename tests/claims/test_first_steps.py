"""`benchmarks.first_steps`: what it tells of a run that was stopped."""

import json
from pathlib import Path

import pytest

from benchmarks.first_steps import digest, find_run, rows_of


@pytest.mark.parametrize(("loss", "finite"), [(0.5, True), (float("nan"), False), (float("inf"), False)])
def test_the_digest_counts_steps_and_sees_what_is_not_finite(tmp_path: Path, loss: float, finite: bool) -> None:
    run = tmp_path / "run"
    run.mkdir()
    assert find_run(tmp_path) is None
    (run / "config.yaml").write_text("")
    (run / "resolved.yaml").write_text("optim: {total_steps: 1000}\n")
    rows = [{"epoch": 0, "step": 112, "loss": 1.0}, {"epoch": 1, "step": 224, "loss": loss, "clusters_in_use": 200}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "timings.jsonl").write_text('{"epoch": 0, "seconds": 2.0}\n{"epoch": 1, "seconds": 3.0}\n')
    (run / "warnings.jsonl").write_text('{"epoch": 1, "kind": "k"}\n')
    assert find_run(tmp_path) == run
    assert len(rows_of(run)) == 2
    found = digest(run, "table1/cifar10-40/protocon", 200)
    assert (found["steps"], found["epochs"], found["total_steps"], found["seconds"]) == (224, 2, 1000, 5.0)
    assert found["all_finite"] is finite
    assert found["clusters_in_use"] == [None, 200]
    assert len(found["warnings"]) == 1
