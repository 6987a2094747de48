"""A process that dies or hangs ends the job with an error in words; any number of processes can go on."""

from pathlib import Path

import pytest

from tests.distributed.cases import EPOCHS, config_of, train
from tests.distributed.launch import torchrun
from tests.distributed.test_one_process_or_two import assert_same_run, metrics
from tests.engine.zygote import Zygote

# Seconds between torchrun's looks at its processes: time for the survivor to speak before it is stopped.
PATIENT = "--monitor-interval=3"


@pytest.mark.timeout(400)
def test_a_killed_process_ends_the_job_and_one_process_goes_on(data: Path, tmp_path: Path) -> None:
    job = torchrun("killed", data, tmp_path, PATIENT)
    assert job.code != 0
    assert job.at - float((tmp_path / "died.txt").read_text()) < 60
    assert "Signal 9 (SIGKILL)" in job.text
    assert "error: process 0 of 2 cannot reach the others: one of them has ended or does not answer" in job.text
    assert "Traceback" not in job.text.split("error: process 0")[0]
    assert [row["epoch"] for row in metrics(tmp_path / "run")] == [0]  # it died in the second epoch

    config = config_of(data, "protocon", ())
    train(config, tmp_path, "run", resume=True)
    assert len(metrics(tmp_path / "run")) == EPOCHS
    train(config, tmp_path, "whole")
    assert_same_run(tmp_path / "whole", tmp_path / "run", tolerance=1e-9)


@pytest.mark.timeout(400)
def test_a_process_that_does_not_answer_ends_the_job_after_the_time_set(
    data: Path, zygote: Zygote, tmp_path: Path
) -> None:
    job = zygote.job("hanging", data, tmp_path, processes=2)
    assert job.code != 0
    assert "error: process 0 of 2 cannot reach the others" in job.output
    assert [row["epoch"] for row in metrics(tmp_path / "run")] == [0]
