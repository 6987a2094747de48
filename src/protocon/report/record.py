"""All that a run folder holds, as far as it is there: a stopped run has less than a finished one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from protocon.base.yaml_text import read_yaml
from protocon.errors import RunError
from protocon.runs import layout
from protocon.settings.legacy import with_current_result

Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """The files of one run; empty where a file is missing."""

    path: Path
    config: Row
    """Settings without `auto` where they are known, else as asked for."""
    asked: Row
    """Settings as asked for."""
    metrics: list[Row]
    """One row per epoch."""
    classes: list[Row]
    """Pseudo-label accuracy and purity by class, one row per epoch."""
    warnings: list[Row]
    seconds: float
    """Time spent training so far."""
    result: Row
    evaluation: Row
    clusters: Row
    environment: Row
    split: Row
    """Head of the split: dataset, size, rule, and how many images are labelled."""
    data: Row
    """Classes, counts, files that were skipped, and what `auto` chose and why."""
    feature_map: Row
    """Ids, classes and places of some images, of pre-training."""
    audit: Row
    """What a person answered for images drawn at random, and the estimate from it."""

    @property
    def finished(self) -> bool:
        """Whether the run got to its end."""
        return bool(self.result)

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self.config.get("method_name", "unknown"))

    @property
    def labels_file(self) -> Path:
        """Labels of every image; there once the run is finished."""
        return self.path / layout.LABELS

    @property
    def test_images(self) -> int | None:
        """Images of the test set with a known class; None where that is not on record."""
        if "images" in self.evaluation:
            return int(self.evaluation["images"])
        classes = self.data.get("classes")
        return sum(int(row["test"]) for row in classes) if classes else None

    @property
    def reasons(self) -> dict[str, str]:
        """What each `auto` became, and in brackets why."""
        return {key: str(text) for key, text in self.data.get("auto", {}).items()}

    def setting(self, section: str, key: str) -> Any:
        """One setting, or None."""
        content = self.config.get(section)
        return content.get(key) if isinstance(content, dict) else None


def read_record(path: Path) -> Record:
    """Read a run folder; raises RunError if it is none, or if one of its files is damaged."""
    if not (path / layout.CONFIG).is_file():
        raise RunError(f"{path} is not a run folder: it has no config.yaml. Give folders that protocon train made.")
    asked = _yaml(path / layout.CONFIG)
    split = _json(path / layout.SPLIT)
    return Record(
        path=path,
        config=_yaml(path / layout.RESOLVED) or _config_of_model(path / layout.MODEL) or asked,
        asked=asked,
        metrics=_lines(path / layout.METRICS),
        classes=_lines(path / layout.CLASSES),
        warnings=_lines(path / layout.WARNINGS),
        seconds=sum(float(row.get("seconds", 0.0)) for row in _lines(path / layout.TIMINGS)),
        result=with_current_result(_json(path / layout.RESULT)),
        evaluation=_json(path / layout.EVALUATION),
        clusters=_json(path / layout.CLUSTERS),
        environment=_json(path / layout.ENVIRONMENT),
        split={**split, "labelled": len(split.get("labelled", ()))} if split else {},
        data=_json(path / layout.DATA),
        feature_map=_json(path / layout.FEATURE_MAP),
        audit=_json(path / layout.AUDIT),
    )


def _json(file: Path) -> Row:
    if not file.is_file():
        return {}
    try:
        # A file name need not be valid UTF-8.
        content = json.loads(file.read_text(encoding="utf-8", errors="surrogateescape"))
    except ValueError as error:
        raise RunError(
            f"{file} is damaged: {error}. Restore it, or remove it to have the report without it."
        ) from error
    return content if isinstance(content, dict) else {}


def _yaml(file: Path) -> Row:
    if not file.is_file():
        return {}
    try:
        content = read_yaml(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError) as error:
        raise RunError(f"{file} is damaged: {error}. Restore it.") from error
    return content if isinstance(content, dict) else {}


def _lines(file: Path) -> list[Row]:
    """Rows of a JSONL file up to a line that a crash tore."""
    rows: list[Row] = []
    if not file.is_file():
        return rows
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:
                break
            if isinstance(row, dict):
                rows.append(row)
    return rows


def _config_of_model(file: Path) -> Row:
    """The settings inside model.safetensors: its head is JSON, and the weights need not be read."""
    if not file.is_file():
        return {}
    with file.open("rb") as content:
        length = int.from_bytes(content.read(8), "little")
        head = content.read(min(length, 2**26))
    try:
        config = json.loads(json.loads(head)["__metadata__"]["protocon"])["config"]
    except (ValueError, KeyError, TypeError):
        return {}
    return config if isinstance(config, dict) else {}
