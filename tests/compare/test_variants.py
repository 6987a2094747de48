"""Variants of a method: rows of their own, with the same labels and everything else the same."""

from pathlib import Path

import pytest
from rich.console import Console

from protocon.compare.cells import split_of
from protocon.compare.grid import compare
from protocon.compare.request import build_request, conflicts, names_in, request_from_yaml, request_to_yaml
from protocon.compare.variants import read_variant
from protocon.errors import ConfigError

GRID = "protocon, protocon+lambda_c=0, protocon + alpha=0.5 + lambda_p=0, fixmatch"


def settings(*overrides: str) -> dict[str, tuple[float, float, float]]:
    request = build_request(methods=names_in(GRID), labels_per_class=[2], seeds=1, overrides=overrides)
    configs = {name: config.method.model_dump() for name, config in request.configs.items() if name != "fixmatch"}
    return {name: (s["alpha"], s["lambda_c"], s["lambda_p"]) for name, s in configs.items()}


def test_each_variant_is_a_row_with_its_change_and_nothing_else() -> None:
    assert settings() == {
        "protocon": (0.8, 1.0, 1.0),
        "protocon+lambda_c=0": (0.8, 0.0, 1.0),
        "protocon+alpha=0.5+lambda_p=0": (0.5, 1.0, 0.0),
    }


def test_an_override_reaches_the_method_and_its_variants_and_the_variant_has_the_last_word() -> None:
    found = settings("protocon.alpha=0.9", "lambda_c=0.5")
    assert found["protocon"] == (0.9, 0.5, 1.0)
    assert found["protocon+lambda_c=0"] == (0.9, 0.0, 1.0)
    assert found["protocon+alpha=0.5+lambda_p=0"] == (0.5, 0.5, 0.0)


def test_the_file_of_a_request_keeps_variants() -> None:
    request = build_request(methods=names_in(GRID), labels_per_class=[2], seeds=1)
    assert conflicts(request_from_yaml(request_to_yaml(request), "grid.yaml"), request) == []
    other = build_request(methods=["protocon", "fixmatch"], labels_per_class=[2], seeds=1)
    assert "method protocon+lambda_c=0: left out" in conflicts(request, other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("protocn+alpha=0.5", "protocon"),
        ("protocon+alpa=0.5", "did you mean alpha"),
        ("protocon+alpha", "expected METHOD"),
        ("protocon+lr=0.1", "the others are the same for all methods"),
        ("label-spreading+alpha=0.5", "setting of label-spreading"),
        ("protocon+class_prior=[a/b]", "name of a folder"),
    ],
)
def test_a_wrong_variant_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_variant(text)


def test_a_variant_given_twice_is_refused_however_it_is_written() -> None:
    with pytest.raises(ConfigError, match="given twice"):
        build_request(methods=["protocon+alpha=0.5", "protocon + method.alpha = 0.5"], labels_per_class=[2], seeds=1)


def test_variants_train_on_the_same_labels_and_differ(tmp_path: Path) -> None:
    quick = ["data.image_size=8", "epochs=2", "batch_size=32", "tensorboard=false", "report=false"]
    methods = ["protocon", "protocon+lambda_p=0", "protocon+lambda_p=1"]
    request = build_request(methods=methods, labels_per_class=[2], seeds=1, overrides=quick)
    found = compare(request, out=tmp_path / "grid", workers=1, console=Console(quiet=True))
    runs = {record.method: Path(record.run or "") for record in found.records}
    metrics = {name: (run / "metrics.jsonl").read_text() for name, run in runs.items()}
    assert len({split_of(run) for run in runs.values()}) == 1
    assert metrics["protocon"] == metrics["protocon+lambda_p=1"] != metrics["protocon+lambda_p=0"]
    assert "| protocon+lambda_p=0 |" in (tmp_path / "grid" / "table.md").read_text()
