"""A signal to one process of a job stops all of them after the same step, and the run goes on to the bit."""

import json
from pathlib import Path

import pytest

from tests.distributed.signalled import STEP
from tests.engine.kills import assert_same_run
from tests.engine.zygote import Zygote


@pytest.mark.timeout(600)
def test_a_signal_to_one_process_stops_both_and_they_go_on_as_if_nothing_had_happened(
    data: Path, zygote: Zygote, tmp_path: Path
) -> None:
    job = zygote.job("signalled", data, tmp_path, processes=2)
    assert job.code == 0, job.output
    seen = [json.loads((tmp_path / f"stopped-{rank}.json").read_text()) for rank in (0, 1)]
    assert "another process" in seen[0]["message"]
    assert "SIGTERM" in seen[1]["message"]
    # Seven steps make an epoch: two of the second are done and the third was finished.
    assert seen[0]["checkpoints"] == ["epoch-00001", f"epoch-00001-step-{STEP - 6:06d}"]
    assert_same_run(tmp_path / "whole", tmp_path / "stopped")
