"""What the constraint is for, on a real run: every cluster has members; without it, clusters starve."""

from pathlib import Path

from tests.engine.runs import small_run

EPOCHS = "epochs=30"


def test_constraint_keeps_clusters_in_use_and_without_it_they_are_lost(tmp_path: Path) -> None:
    held = small_run(tmp_path, EPOCHS)
    assert held["clusters_in_use"] >= 0.95 * held["clusters"]
    assert held["smallest_cluster"] >= 0.5 * held["gamma"]
    free = small_run(tmp_path, EPOCHS, "size_ratio=0")
    assert free["gamma"] == 0
    assert free["clusters"] == held["clusters"]
    assert free["clusters_in_use"] <= 0.8 * held["clusters_in_use"]
