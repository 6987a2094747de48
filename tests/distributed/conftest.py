"""One job of two processes, which all tests of its results share."""

import os
import time
from pathlib import Path

import pytest

from tests.distributed.cases import config_of, train, write_data
from tests.distributed.stopping import StoppedError, before_step, die
from tests.engine.zygote import Zygote


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(scope="session")
def together(data: Path, zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the worker's part `together` left its results; workers of pytest-xdist wait for the first one's job."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "two-processes"
    outcome = folder / "outcome.txt"
    try:
        folder.mkdir()
    except FileExistsError:
        while not outcome.is_file():
            time.sleep(0.2)
    else:
        stop_in_second_epoch(data, folder)
        job = zygote.job("together", data, folder, processes=2)
        aside = folder / "outcome.part"
        aside.write_text(f"{job.code}\n{job.output}")
        aside.rename(outcome)
    code, _, text = outcome.read_text().partition("\n")
    assert code == "0", text
    return folder


def stop_in_second_epoch(data: Path, out: Path) -> None:
    """A run of one process for two to go on with."""
    with before_step(10, die), pytest.raises(StoppedError):
        train(config_of(data, "protocon", ()), out, "resumed")
