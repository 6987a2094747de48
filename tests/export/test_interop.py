"""What `export` writes is opened by the programs themselves: Label Studio's SDK and FiftyOne's own reader.

Both bring many packages, so they are in an extra of their own, `interop`, and these tests skip without it. Hugging
Face's `datasets` is opened in `test_labels.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from protocon.export.label_formats import export_labels
from tests.export.test_labels import NAMES, TAKEN
from tests.export.test_labels import run as run  # a fixture

_INSTALL = "is not installed: pip install 'protocon[interop]'"


@pytest.mark.filterwarnings("ignore")  # of the SDK's own packages
def test_label_studio_accepts_the_tasks_and_finds_every_label(run: Path, tmp_path: Path) -> None:
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason=f"label-studio-sdk {_INSTALL}")
    export_labels(run, file_format="label-studio", out=tmp_path / "ls")
    view = sdk.LabelInterface((tmp_path / "ls" / "labels.xml").read_text())
    view.validate()
    assert sorted(view.get_control("label").labels) == sorted(NAMES)
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    assert len(tasks) == len(TAKEN)
    for task in tasks:
        assert view.validate_task({"data": task["data"]})
        assert all(view.validate_annotation(said) for said in task.get("annotations", ()))
        assert [view.validate_prediction(said, return_errors=True) for said in task.get("predictions", ())] in (
            [],
            [[]],
        )
    broken = json.loads(json.dumps(tasks[1]["predictions"][0]))
    broken["result"][0]["value"]["choices"] = ["a class that there is not"]
    assert not view.validate_prediction(broken)


@pytest.mark.filterwarnings("ignore")
def test_label_studios_converter_reads_annotations_and_predictions(run: Path, tmp_path: Path) -> None:
    converter = pytest.importorskip("label_studio_sdk.converter", reason=f"label-studio-sdk {_INSTALL}")
    export_labels(run, file_format="label-studio", out=tmp_path / "ls")
    config = (tmp_path / "ls" / "labels.xml").read_text()
    tasks: list[dict[str, Any]] = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    (tmp_path / "in").mkdir()
    # The converter reads what people said; a prediction that somebody accepts becomes an annotation.
    said = [
        {**task, "id": n, "annotations": task.get("annotations") or task["predictions"]} for n, task in enumerate(tasks)
    ]
    (tmp_path / "in" / "tasks.json").write_text(json.dumps(said))
    made = converter.Converter(config, str(tmp_path), download_resources=False)
    made.convert_to_json_min(str(tmp_path / "in"), str(tmp_path / "out"), is_dir=True)
    found = json.loads((tmp_path / "out" / "result.json").read_text())
    assert {row["image"].removeprefix("/data/local-files/?d=photos/"): row["label"] for row in found} == TAKEN


_FIFTYONE = """
import json, sys
import fiftyone.utils.data as data
importer = data.FiftyOneImageClassificationDatasetImporter(dataset_dir=sys.argv[1], compute_metadata=False)
with importer:
    rows = {path.rsplit("/", 1)[-1]: label.label for path, _, label in importer}
print(json.dumps({"rows": rows, "info": importer.get_dataset_info()}))
"""
"""FiftyOne's reader of this format. It needs no database, unlike a dataset of FiftyOne's."""


def test_fiftyone_reads_every_label(run: Path, tmp_path: Path) -> None:
    from importlib.util import find_spec

    if find_spec("fiftyone") is None:
        pytest.skip(f"fiftyone {_INSTALL}")
    export_labels(run, file_format="fiftyone", out=tmp_path / "fo")
    without_database = {"FIFTYONE_DISABLE_SERVICES": "1", "FIFTYONE_DO_NOT_TRACK": "true"}
    environment = {**os.environ, **without_database, "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _FIFTYONE, str(tmp_path / "fo")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rows"] == {name.replace("/", "__"): label for name, label in TAKEN.items()}
