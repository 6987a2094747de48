"""`train photos --labels labels.csv --frozen`, interrupted at any stage and resumed, ends as if it had not been."""

import csv
import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial, partialmethod
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
import yaml

from protocon.cli import main
from protocon.engine.labelling import cross_check
from protocon.engine.labelling.judgement import judge
from protocon.engine.labelling.side_by_side import SideBySide
from protocon.engine.labelling.triage import Judgement
from protocon.engine.loop.checkpoint import newest_checkpoint
from protocon.engine.loop.trainer import Trainer
from protocon.errors import ConfigError
from protocon.features.feature_table import FeatureTable
from protocon.networks.packaged import locate
from protocon.runs.run_folder import RunFolder
from protocon.runs.trained import load_run
from tests.engine.kills import assert_same_run
from tests.engine.photos import IMAGES, LABELS, PACKAGE, arguments, install, make_package, make_photos

AGAIN = ("--resume", "auto")
Run = Callable[..., int | str | None]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    make_photos(folder)
    return folder


@pytest.fixture(scope="module")
def patch(place: Path) -> Iterator[pytest.MonkeyPatch]:
    """The package of weights installed, features kept in three chunks, a report that is not worth drawing."""
    with pytest.MonkeyPatch.context() as context:
        install(place / "packages", context)
        context.setattr("protocon.report.page.build_page", lambda *_args, **_kwargs: "<html>")
        context.setattr(FeatureTable, "__init__", partialmethod(FeatureTable.__init__, chunk=16))
        yield context


def start(patch: pytest.MonkeyPatch, place: Path, out: Path, *more: str) -> int | str | None:
    """`protocon train photos --labels labels.csv --frozen …` in a folder with a cache of its own; its exit code."""
    patch.setenv("XDG_CACHE_HOME", str(out / "cache"))
    patch.setattr(sys, "argv", ["protocon", *arguments(place, out, *more)])
    try:
        main()
    except SystemExit as stop:
        return stop.code
    return 0


@pytest.fixture
def run(place: Path, patch: pytest.MonkeyPatch) -> Run:
    return partial(start, patch, place)


@pytest.fixture(scope="module")
def whole(place: Path, patch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The uninterrupted run."""
    out = tmp_path_factory.mktemp("whole")
    assert not start(patch, place, out)
    return out / "run"


class Interruption(KeyboardInterrupt):  # what Ctrl-C is
    """The process died here."""


def interrupt(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """Make the run die in the middle of a stage."""
    calls = 0

    def dying(function: Callable[..., Any], at: int) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise Interruption
            return function(*args, **kwargs)

        return call

    match stage:
        case "features":
            monkeypatch.setattr(FeatureTable, "write", dying(FeatureTable.write, 2))
        case "training":
            monkeypatch.setattr(Trainer, "train_step", dying(Trainer.train_step, 5))
        case "held-out labels":
            monkeypatch.setattr(cross_check, "judge", dying(judge, 2))
        case "report":
            monkeypatch.setattr("protocon.report.page.build_page", dying(lambda: None, 1))


@pytest.mark.parametrize("stage", ["features", "training", "held-out labels", "report"])
def test_interrupted_and_resumed_it_ends_the_same(
    stage: str, run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, stage)
        assert run(tmp_path) == 130
    folder = tmp_path / "run"
    if stage in ("held-out labels", "report"):
        assert (folder / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
        assert load_run(folder).class_names == ("across", "down", "none")
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, folder)
    assert (folder / "cross_check.csv").read_bytes() == (whole / "cross_check.csv").read_bytes()


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8-sig") as text:
        return list(csv.DictReader(text))


def test_before_the_check_is_done_labels_are_there_and_none_is_accepted(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, "held-out labels")
        run(tmp_path)
    folder = RunFolder(tmp_path / "run")
    early, late = rows_of(folder.labels_file), rows_of(whole / "labels.csv")
    assert [(row["file"], row["label"]) for row in early] == [(row["file"], row["label"]) for row in late]
    unlabelled = [row for row in early if not row["given"]]
    assert len(unlabelled) == IMAGES - LABELS
    assert {row["triage"] for row in unlabelled} == {"review"}
    assert not folder.finished()
    kept = sorted(file.name for file in folder.held_out.iterdir())
    assert kept == ["group-01.json"]


def test_finished_groups_are_not_repeated_but_damaged_or_outdated_ones_are(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    groups = sorted((tmp_path / "run" / "held_out").iterdir())
    assert len(groups) == 3
    (tmp_path / "run" / "result.json").unlink()
    content = json.loads(groups[1].read_text())
    content["rows"]["found"][0] ^= 1  # damaged
    groups[1].write_text(json.dumps(content))
    content = json.loads(groups[2].read_text()) | {"key": "0" * 64}  # of other settings
    groups[2].write_text(json.dumps(content))
    judged = []

    def counted(*args: Any) -> Judgement:
        judged.append(args)
        return judge(*args)

    monkeypatch.setattr(cross_check, "judge", counted)
    assert not run(tmp_path, *AGAIN)
    assert len(judged) == 2
    assert (tmp_path / "run" / "cross_check.csv").read_bytes() == (whole / "cross_check.csv").read_bytes()


def test_a_signal_at_any_stage_says_what_is_kept_and_how_to_resume(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def signalling(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            os.kill(os.getpid(), signal.SIGTERM)
            return function(*args, **kwargs)

        return call

    for owner, name, kept in (
        (FeatureTable, "write", "in the cache"),
        (Trainer, "train_step", "all of it is saved"),
        (SideBySide, "train_epoch", "the model and its labels are saved"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, signalling(getattr(owner, name)))
            capsys.readouterr()
            assert run(tmp_path, *AGAIN) == 128 + signal.SIGTERM
            said = capsys.readouterr().err
        assert kept in said
        assert f"protocon train --resume {tmp_path / 'run'}" in said
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, tmp_path / "run")


def test_a_second_process_is_kept_out_at_every_stage(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command once more, while the first is computing features, training, holding out labels, drawing."""
    tried: list[str] = []

    def once(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if stage not in tried:
                tried.append(stage)
                capsys.readouterr()
                assert run(tmp_path, *AGAIN) == 1, stage
                assert f"in use by process {os.getpid()}" in capsys.readouterr().err, stage
            return function(*args, **kwargs)

        return call

    stages = {
        "features": (FeatureTable, "write"),
        "training": (Trainer, "train_step"),
        "held-out labels": (SideBySide, "train_epoch"),
    }
    for stage, (owner, name) in stages.items():
        monkeypatch.setattr(owner, name, once(stage, getattr(owner, name)))
    monkeypatch.setattr("protocon.report.page.build_page", once("report", lambda *_args, **_kwargs: "<html>"))
    assert not run(tmp_path, *AGAIN)
    assert tried == [*stages, "report"]
    assert_same_run(whole, tmp_path / "run")


def test_a_cache_that_cannot_be_written_leaves_no_run_folder_behind(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("a file where the cache's folder should be")
    for _ in range(2):
        assert run(tmp_path) == 1
        assert "run.cache=FOLDER" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == [in_the_way]
    in_the_way.unlink()
    with monkeypatch.context() as patch:
        interrupt(patch, "training")
        run(tmp_path)
    shutil.rmtree(tmp_path / "cache")
    in_the_way.write_text("again")
    assert run(tmp_path, *AGAIN) == 1  # a run that had begun stays
    in_the_way.unlink()
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, tmp_path / "run")


def test_weights_are_recorded_by_package_and_digest_so_that_a_run_can_be_moved(
    run: Run, place: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, "training")
        run(tmp_path)
    recorded = yaml.safe_load((tmp_path / "run" / "resolved.yaml").read_text())["network"]
    assert recorded["weights"] == f"package:{PACKAGE}"
    assert len(recorded["weights_sha256"]) == 64
    assert str(place / "packages").encode() not in (whole / "model.safetensors").read_bytes()
    elsewhere = tmp_path / "site-packages"
    make_package(elsewhere, seed=1)
    with monkeypatch.context() as patch:  # another version of the package
        patch.setattr(sys, "path", [str(elsewhere), *sys.path])
        invalidate_caches()
        assert run(tmp_path, *AGAIN) not in (0, None)
    shutil.copy(place / "packages" / PACKAGE / "models" / "tiny.pth", elsewhere / PACKAGE / "models" / "tiny.pth")
    monkeypatch.setattr(
        sys, "path", [str(elsewhere), *(entry for entry in sys.path if entry != str(place / "packages"))]
    )
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, tmp_path / "run")


def test_a_run_of_version_0_1_recorded_a_path_and_resumes_where_the_package_lies_elsewhere(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, "training")
        run(tmp_path)
    file = tmp_path / "run" / "resolved.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["network"]["weights"] = f"/somewhere/else/{PACKAGE}/models/tiny.pth"
    del settings["network"]["weights_sha256"]
    file.write_text(yaml.safe_dump(settings))
    assert not run(tmp_path, *AGAIN)
    for name in ("metrics.jsonl", "labels.csv", "cross_check.csv"):
        assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.parametrize("weights", ["package:something_else", "package:os.path"])
def test_no_other_package_is_looked_into(weights: str) -> None:
    with pytest.raises(ConfigError, match="unknown package of weights"):
        locate(Path(weights))


def fill_up(monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    """There is no room left when a file of such a name is to be written."""
    opened = Path.open

    def refused(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if fnmatch(self.name, pattern) and mode not in ("r", "rb"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refused)


@pytest.mark.parametrize(
    "file",
    ["features.npy", ".epoch-*.writing", ".model.*.writing", ".group-02.*.writing", ".labels.csv.writing"],
)
def test_a_disk_that_is_full_at_any_stage_stops_the_run_and_it_is_resumed(
    file: str,
    run: Run,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patch:
        fill_up(patch, file)
        for _ in range(2):  # still full: no harm in trying
            capsys.readouterr()
            assert run(tmp_path, *AGAIN) == 1
            assert "No space left on device" in capsys.readouterr().err
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, tmp_path / "run")


def test_a_disk_that_is_full_when_the_report_is_drawn_loses_nothing_else(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        fill_up(patch, ".report.html.writing")
        assert not run(tmp_path, *AGAIN)
        assert "No space left on device" in capsys.readouterr().err
    assert not (tmp_path / "run" / "report.html").exists()
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, tmp_path / "run")


def test_damaged_features_are_computed_again(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, "training")
        run(tmp_path)
    for file in (tmp_path / "cache").rglob("features.npy"):
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
    written: list[int] = []
    write = FeatureTable.write

    def counted(table: FeatureTable, number: int, *given: Any) -> None:
        written.append(number)
        write(table, number, *given)

    monkeypatch.setattr(FeatureTable, "write", counted)
    assert not run(tmp_path, *AGAIN)
    assert written == [2]  # the last of three chunks
    assert_same_run(whole, tmp_path / "run")


def test_a_damaged_checkpoint_is_passed_over(
    run: Run, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt(patch, "held-out labels")
        run(tmp_path)
    newest, _ = newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert newest is not None
    newest.write_bytes(newest.read_bytes()[:-100])
    assert not run(tmp_path, *AGAIN)
    assert_same_run(whole, tmp_path / "run")
