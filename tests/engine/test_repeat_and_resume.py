"""Same seed, same bits; stopped and resumed, the same bits again."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.precision import MixedPrecision

from protocon.engine.loop import saver as saving
from protocon.engine.loop.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from protocon.engine.loop.trainer import Trainer, build_trainer
from protocon.engine.run import resume_run
from protocon.engine.setup.session import prepare
from protocon.errors import RunError
from protocon.methods import METHODS
from protocon.runs.run_folder import RunFolder
from tests.engine.kills import has_labels
from tests.engine.runs import quiet, small_config, tiny_run
from tests.methods.harness import is_plain
from tests.methods.toys import TOYS

PLAIN = [name for name in METHODS if is_plain(METHODS[name])]
EPOCHS = 4
# Both centroid schedules are in the run, and the form of alignment that `auto` uses here.
OVERRIDES = (f"epochs={EPOCHS}", f"centroid_warmup={EPOCHS // 2}", "method.alignment=dual")


class StoppedError(Exception):
    """The process died."""


def stop_after(monkeypatch: pytest.MonkeyPatch, epochs: int) -> None:
    """Make training die right after the checkpoint of this many epochs was written."""
    save = save_checkpoint

    def save_and_die(folder: Path, epoch: int, *args: Any, **kwargs: Any) -> Path:
        path = save(folder, epoch, *args, **kwargs)
        if epoch == epochs:
            raise StoppedError
        return path

    monkeypatch.setattr(saving, "save_checkpoint", save_and_die)


def assert_same_run(first: Path, second: Path, *, epochs: int = EPOCHS) -> None:
    """Every tensor of the last checkpoint, and every file that has no time in it."""
    ours = load_checkpoint(first / "checkpoints" / f"epoch-{epochs:05d}.safetensors")
    theirs = load_checkpoint(second / "checkpoints" / f"epoch-{epochs:05d}.safetensors")
    assert ours.facts == theirs.facts
    assert ours.tensors.keys() == theirs.tensors.keys()
    for name, tensor in ours.tensors.items():
        assert torch.equal(tensor, theirs.tensors[name]), name
    for file in ("metrics.jsonl", "split.json", "config.yaml", "model.safetensors"):
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    for file in ("labels.csv", "opinions.csv"):  # of methods that learn from labels
        assert (first / file).is_file() == (second / file).is_file() == has_labels(first)
        assert not (first / file).is_file() or (first / file).read_bytes() == (second / file).read_bytes(), file
    for file in ("classes.jsonl", "clusters.json"):  # of methods that have clusters
        assert (first / file).is_file() == (second / file).is_file() == ("method.cluster_table" in ours.tensors)
        assert not (first / file).is_file() or (first / file).read_bytes() == (second / file).read_bytes(), file


def test_protocon_has_the_same_bits_whenever_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = OVERRIDES
    whole = Path(tiny_run(tmp_path / "whole", *overrides)["run"])
    for epochs in (1, 3):
        out = tmp_path / f"stopped-{epochs}"
        with monkeypatch.context() as patch:
            stop_after(patch, epochs)
            with pytest.raises(StoppedError):
                tiny_run(out, *overrides)
        resumed = Path(tiny_run(out, *overrides, resume=True)["run"])
        assert_same_run(whole, resumed)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        *((method, (f"teacher={teacher}",)) for method in PLAIN for teacher in ("student", "eman")),
        *((method, ("mu=2",)) for method in METHODS if method not in PLAIN),
        *((method, ()) for method in TOYS),
        # State that only options have.
        ("protocon", ("center=true", "heads=2", "method.alignment=mean", "thresholds=flexible")),
        ("protocon", ("thresholds=adaptive", "confidence=relative", "class_prior=running")),
        ("fixmatch-da", ("alignment_momentum=0.9",)),
        ("fixmatch-da", ("method.alignment=dual",)),
        ("comatch", ("queue_size=100",)),  # wraps round before the checkpoint and after it
    ],
)
@pytest.mark.usefixtures("toys")
def test_same_seed_same_bits_and_resuming_changes_nothing(
    method: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = ["epochs=2", *options]
    whole = Path(tiny_run(tmp_path / "whole", *overrides, method=method)["run"])
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            tiny_run(tmp_path / "stopped", *overrides, method=method)
    resumed = Path(tiny_run(tmp_path / "stopped", *overrides, method=method, resume=True)["run"])
    assert_same_run(whole, resumed, epochs=2)


def test_two_runs_are_identical_and_another_seed_is_not(tmp_path: Path) -> None:
    runs = [
        Path(tiny_run(tmp_path / name, f"epochs={EPOCHS}", f"seed={seed}")["run"])
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    assert_same_run(runs[0], runs[1])
    assert (runs[0] / "metrics.jsonl").read_bytes() != (runs[2] / "metrics.jsonl").read_bytes()


def test_the_scale_of_half_precision_is_saved() -> None:
    """It grows and shrinks during training; 16-mixed itself needs a GPU, its scaler does not."""

    def trainer_with_scale(scale: float) -> Trainer:
        fabric = Fabric(accelerator="cpu", devices=1)
        trainer = build_trainer(prepare(small_config(method="supervised")), fabric)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        scaler.scale(torch.ones(1))  # makes its tensors
        fabric.strategy.precision = MixedPrecision("16-mixed", "cuda", scaler)
        return trainer

    first, second = trainer_with_scale(512.0), trainer_with_scale(4.0)
    facts = json.loads(json.dumps(first.facts()))
    state = {f"{part}.{name}": t for part, tensors in first.state().items() for name, t in tensors.items()}
    second.load(Checkpoint(state, facts))
    assert second.facts() == first.facts()
    assert facts["precision"]["scale"] == 512.0


def test_checkpoint_holds_all_state(tmp_path: Path) -> None:
    run = Path(tiny_run(tmp_path / "runs", "epochs=2", "method.alignment=dual")["run"])
    names = set(load_checkpoint(run / "checkpoints" / "epoch-00002.safetensors").tensors)
    for part in (
        "network.encoder.stem.weight",
        "averaged.projector.0.weight",
        "optimizer.0.momentum_buffer",
        "method.bank.label",
        "method.bank.similarity",
        "method.kmeans.centroids",
        "method.kmeans.duals",
        "method.kmeans.counts",
        "method.prototypes.prototypes",
        "method.prototypes.sums",
        "method.alignment.bias",
        "method.cluster_table",
    ):
        assert part in names


def test_finished_run_is_not_repeated_and_never_overwritten(tmp_path: Path) -> None:
    first = tiny_run(tmp_path / "runs", "epochs=2", method="supervised")
    before = (Path(first["run"]) / "metrics.jsonl").stat().st_mtime_ns
    again = tiny_run(tmp_path / "runs", "epochs=2", method="supervised", resume=True)
    assert again == RunFolder(Path(first["run"])).result()
    assert (Path(first["run"]) / "metrics.jsonl").stat().st_mtime_ns == before
    fresh = tiny_run(tmp_path / "runs", "epochs=2", method="supervised")
    assert fresh["run"] == f"{first['run']}-2"


def test_a_named_run_is_resumed_even_if_there_is_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StoppedError):
            tiny_run(tmp_path / "runs", "epochs=2", method="supervised")
    (named,) = (tmp_path / "runs").iterdir()
    newer = Path(tiny_run(tmp_path / "runs", "epochs=2", method="supervised")["run"])
    assert newer.name == f"{named.name}-2"
    assert resume_run(RunFolder(named), quiet())["run"] == str(named)
    assert (named / "model.safetensors").read_bytes() == (newer / "model.safetensors").read_bytes()


def test_resume_refuses_other_settings(tmp_path: Path) -> None:
    tiny_run(tmp_path / "runs", "epochs=2", method="supervised")
    with pytest.raises(RunError, match=r"finished[\s\S]*optim\.lr: 'auto' → 0\.5"):
        tiny_run(tmp_path / "runs", "epochs=2", "lr=0.5", method="supervised", resume=True)


def test_damaged_checkpoint_is_noticed_and_the_one_before_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = OVERRIDES
    whole = Path(tiny_run(tmp_path / "whole", *overrides)["run"])
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        with pytest.raises(StoppedError):
            tiny_run(tmp_path / "stopped", *overrides)
    newest = next((tmp_path / "stopped").glob("*/checkpoints/epoch-00003.safetensors"))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(bytes(content))
    assert_same_run(whole, Path(tiny_run(tmp_path / "stopped", *overrides, resume=True)["run"]))
