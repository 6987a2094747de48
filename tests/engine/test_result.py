"""A run's result is the mean over its last ten epochs, of the averaged weights: neither the last nor the best."""

from pathlib import Path
from typing import Any

import pytest

from protocon.engine.loop.trainer import LAST_EPOCHS
from protocon.runs.run_folder import RunFolder
from tests.engine.runs import small_run

EPOCHS = 13


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    result = small_run(
        tmp_path_factory.mktemp("run"), f"epochs={EPOCHS}", "eval_every=2", method="supervised", labels_per_class=8
    )
    return result, RunFolder(Path(result["run"])).metrics()


def test_the_last_ten_epochs_are_always_measured_and_the_others_when_due(
    finished: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    _, rows = finished
    measured = [row["epoch"] for row in rows if "test_accuracy_ema" in row]
    assert measured == [1, *range(EPOCHS - LAST_EPOCHS, EPOCHS)]


def test_the_result_is_their_mean(finished: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    result, rows = finished
    for key, column in (("test_accuracy", "test_accuracy_ema"), ("test_accuracy_weights", "test_accuracy")):
        last = [row[column] for row in rows[-10:]]
        every = [row[column] for row in rows if column in row]
        assert result[key] == pytest.approx(sum(last) / 10, abs=1e-12)
        for other in (last[-1], max(every), sum(every) / len(every)):
            assert abs(result[key] - other) > 1e-4  # the test can tell them apart
    assert result["test_accuracy_last_epoch"] == rows[-1]["test_accuracy_ema"]
    assert abs(result["test_accuracy"] - result["test_accuracy_weights"]) > 1e-4
