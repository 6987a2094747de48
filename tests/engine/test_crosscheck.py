"""Hidden labels: dealt evenly, really hidden, and what they tell of the others."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from protocon.data.labels.label_split import Split
from protocon.engine.labelling.held_out import MIN_CASES, HeldOutLabels, without_groups
from protocon.engine.run import fit
from protocon.engine.setup.session import prepare
from protocon.report.outcome import CHECK, outcome_lines
from protocon.settings.config import RunConfig, build_config
from tests.engine.runs import quiet
from tests.features.tiny import NAME, SIDE, save_weights, striped_images


def split_of(labels: list[int], size: int = 100) -> Split:
    positions = np.arange(len(labels)) * 3
    names = tuple("abcdef"[: max(labels) + 1])
    return Split(
        labelled=positions,
        labels=np.array(labels),
        ids=tuple(f"i{p}" for p in positions),
        unlabelled=np.setdiff1d(np.arange(size), positions),
        class_names=names,
        size=size,
        dataset="test",
        fingerprint="",
        rule="all known labels",
        seed=0,
    )


def held_out_labels(confidence: list[float], right: list[bool], undisputed: list[bool] | None = None) -> HeldOutLabels:
    count = len(right)
    return HeldOutLabels(
        groups=4,
        position=np.arange(count),
        given=np.zeros(count, dtype=np.int64),
        found=np.where(right, 0, 1),
        confidence=np.array(confidence),
        undisputed=np.ones(count, dtype=bool) if undisputed is None else np.array(undisputed),
        left_out=0,
    )


def test_every_label_is_held_out_once_and_no_class_ever_loses_all() -> None:
    whole = split_of([0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3])
    parts = list(without_groups(whole, 4))
    hidden = [np.setdiff1d(whole.labelled, part.labelled) for part in parts]
    assert sorted(np.concatenate(hidden).tolist()) == whole.labelled[:-1].tolist()  # class 3 has a single label
    assert {len(rows) for rows in hidden} <= {2, 3, 4}
    for part in parts:
        assert part.counts.min() >= 1
        assert sorted([*part.labelled, *part.unlabelled]) == list(range(100))
        assert part.ids == tuple(f"i{p}" for p in part.labelled)
        assert (part.labels == whole.labels[np.searchsorted(whole.labelled, part.labelled)]).all()


def test_two_labels_a_class_make_as_many_groups_as_there_is_something_to_hide() -> None:
    parts = list(without_groups(split_of([0, 0, 1, 1]), 4))
    assert [len(part.labelled) for part in parts] == [3, 2, 3]  # class 1 begins one group later
    assert not list(without_groups(split_of([0, 1, 2]), 4))


def test_the_threshold_rises_to_where_nine_of_ten_are_right() -> None:
    confidence = [0.96] * 10 + [0.98] * 20 + [0.5] * 30
    right = [False] * 5 + [True] * 5 + [True] * 19 + [False] + [False] * 30
    found = held_out_labels(confidence, right)
    assert found.trusted_from(0.95) == pytest.approx(0.98)  # 24 of 30 at 0.95, 19 of 20 from 0.98 on
    summary = found.summary(0.95)
    assert (summary["held_out"], summary["found"]) == (60, 24)
    assert (summary["accepted"], summary["accepted_right"]) == (20, 19)
    assert (summary["accepted_before"], summary["accepted_right_before"]) == (30, 24)
    assert held_out_labels([0.96] * 10 + [0.98] * 20, [True] * 28 + [False] * 2).trusted_from(0.95) == 0.95


def test_sure_and_wrong_everywhere_accepts_nothing() -> None:
    found = held_out_labels([0.99] * 20, [True, False] * 10)
    assert found.trusted_from(0.95) == math.inf
    assert found.summary(0.95)["threshold"] is None
    assert found.summary(0.95)["accepted"] == 0


def test_too_few_cases_change_nothing_and_disputed_ones_do_not_count() -> None:
    wrong = [False] * (MIN_CASES - 1)
    assert held_out_labels([0.99] * len(wrong), wrong).trusted_from(0.95) == 0.95
    disputed = [False] * 20 + [True] * 10
    assert held_out_labels([0.99] * 30, [False] * 20 + [True] * 10, disputed).trusted_from(0.95) == 0.95


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three kinds of stripes, four labels each, the rest unknown; and an encoder's weights."""
    folder = tmp_path_factory.mktemp("crosscheck")
    save_weights(folder / "weights.safetensors")
    images, truth = striped_images(90)
    np.savez(folder / "whole.npz", x=images, y=np.where(np.arange(90) < 12, truth, -1))
    return folder


def config_for(place: Path, name: str, *overrides: str) -> RunConfig:
    return build_config(
        settings={
            "data": {"name": "arrays", "root": place / name, "image_size": SIDE},
            "network": {"encoder": NAME, "weights": place / "weights.safetensors", "frozen": True},
            "run": {"cache": place / "cache", "tensorboard": False, "report": False},
        },
        overrides=("epochs=3", "batch_size=4", "components=20", *overrides),
    )


def rows_of(file: Path) -> dict[str, dict[str, str]]:
    with file.open(newline="", encoding="utf-8-sig") as text:
        return {row["file"]: row for row in csv.DictReader(text)}


def test_a_held_out_label_is_judged_as_in_a_run_that_never_had_it(place: Path, tmp_path: Path) -> None:
    config = config_for(place, "whole.npz", "run.cross_check=4")
    result: dict[str, Any] = fit(config, out=tmp_path, name="whole", console=quiet())
    checked = rows_of(tmp_path / "whole" / "cross_check.csv")
    assert (len(checked), result["cross_check"]["held_out"], result["cross_check"]["groups"]) == (12, 12, 4)
    assert result["cross_check"]["found"] == sum(row["given"] == row["found"] for row in checked.values())
    content = dict(np.load(place / "whole.npz"))
    # Image i is of class i mod 3: the first group hides the first label of class 0, the last of 1, the third of 2.
    group = [0, 10, 8]
    content["y"][group] = -1
    np.savez(place / "part.npz", **content)
    fit(config_for(place, "part.npz", "run.cross_check=0"), out=tmp_path, name="part", console=quiet())
    separate = rows_of(tmp_path / "part" / "labels.csv")
    for name in (list(separate)[position] for position in group):
        assert separate[name]["given"] == ""
        assert (checked[name]["found"], checked[name]["confidence"]) == (
            separate[name]["label"],
            separate[name]["confidence"],
        )
    assert not (tmp_path / "part" / "cross_check.csv").exists()
    # And the run itself is not changed by having been checked.
    fit(config_for(place, "whole.npz", "run.cross_check=0"), out=tmp_path, name="alone", console=quiet())
    alone, whole = (load_file(tmp_path / name / "model.safetensors") for name in ("alone", "whole"))
    assert all(torch.equal(alone[key], whole[key]) for key in whole)


def test_labels_that_look_wrong_are_named_first(place: Path, tmp_path: Path) -> None:
    """Two planted mistakes among 36 labels: in the result, in labels.csv and on the terminal."""
    images, truth = striped_images(90)
    labels = np.where(np.arange(90) < 36, truth, -1)
    labels[[4, 20]] = (labels[[4, 20]] + 1) % 3
    np.savez(place / "planted.npz", x=images, y=labels)
    config = config_for(place, "planted.npz", "run.cross_check=2", "epochs=20")
    result = fit(config, out=tmp_path, name="planted", console=quiet())
    found = result["labels_that_look_wrong"]
    assert sorted(row["file"] for row in found) == ["20", "4"]
    for row in found:
        assert int(row["given"]) == labels[int(row["file"])]
        assert int(row["looks_like"]) == truth[int(row["file"])]
        assert row["confidence"] >= 0.95
    written = rows_of(tmp_path / "planted" / "labels.csv")
    assert {row["file"] for row in written.values() if row["review_rank"] in ("1", "2")} == {"4", "20"}
    wrong = written["4"]
    assert (wrong["triage"], wrong["looks_like"]) == ("review", str(truth[4]))
    assert wrong["why"].startswith(f"labelled {labels[4]}, looks like {truth[4]} (")
    assert "2 of yours look wrong" in "\n".join(outcome_lines(result))


def test_labels_that_the_others_do_not_predict_are_named_where_nothing_is_accepted(place: Path, tmp_path: Path) -> None:
    """Nobody is sure after one epoch: no label looks wrong for certain, and the planted one is among those to check."""
    images, truth = striped_images(90)
    labels = np.where(np.arange(90) < 36, truth, -1)
    labels[4] = (labels[4] + 1) % 3
    np.savez(place / "unsure.npz", x=images, y=labels)
    config = config_for(place, "unsure.npz", "run.cross_check=2", "epochs=2", "lr=0.001")
    result = fit(config, out=tmp_path, name="unsure", console=quiet())
    assert result["triage"]["accepted"] == 0
    assert result["labels_that_look_wrong"] == []
    found = result["labels_predicted_otherwise"]
    held = {row["file"]: row for row in rows_of(tmp_path / "unsure" / "cross_check.csv").values()}
    assert {row["file"] for row in found} == {name for name, row in held.items() if row["given"] != row["found"]}
    assert [row["confidence"] for row in found] == sorted((row["confidence"] for row in found), reverse=True)
    (planted,) = [row for row in found if row["file"] == "4"]
    assert (int(planted["given"]), planted["looks_like"]) == (labels[4], held["4"]["found"])
    lines = outcome_lines(result)
    assert lines[lines.index(CHECK) + 1].strip().startswith(f"{found[0]['file']} says {found[0]['given']}, looks like")
    assert CHECK not in outcome_lines(result | {"triage": result["triage"] | {"accepted": 3}})


def test_a_run_killed_while_labels_are_held_out_ends_as_any_other(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(place, "whole.npz", "run.cross_check=2")
    fit(config, out=tmp_path, name="whole", console=quiet())

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("protocon.engine.labelling.cross_check.judge", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(config, out=tmp_path, name="stopped", console=quiet())
    assert not (tmp_path / "stopped" / "result.json").exists()
    fit(config, out=tmp_path, name="stopped", resume=True, console=quiet())
    for file in ("cross_check.csv", "labels.csv", "metrics.jsonl"):
        assert (tmp_path / "stopped" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file


def test_only_labels_of_ones_own_on_a_frozen_encoder_are_held_out_by_default(place: Path) -> None:
    own = config_for(place, "whole.npz")
    assert prepare(own).config.run.cross_check == 10
    trained = own.model_copy(update={"network": own.network.model_copy(update={"frozen": False})})
    assert prepare(trained).config.run.cross_check == 0
    drawn = own.model_copy(update={"data": own.data.model_copy(update={"labels_per_class": 2})})
    assert prepare(drawn).config.run.cross_check == 0
