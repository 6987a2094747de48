"""Damaged checkpoints are noticed: the one before is used, or the error is clear; a difference is never silent."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from protocon.engine.loop.checkpoint import load_checkpoint, newest_checkpoint
from protocon.engine.run import fit, resume_run
from protocon.errors import RunError
from protocon.runs.run_folder import RunFolder
from tests.engine.kills import assert_same_run, moments
from tests.engine.runs import quiet
from tests.engine.test_pins import begun, config_for

PLACES = 200


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFolder]:
    """A run that died after two of four epochs, with two checkpoints."""
    with pytest.MonkeyPatch.context() as patch:
        yield begun(tmp_path_factory.mktemp("stopped"), patch)


def damages(content: bytes) -> Iterator[bytes]:
    """The content with a bit flipped, cut short, lengthened, or with a part zeroed or repeated, at random places."""
    chance = moments(seed=3)
    for number in range(PLACES):
        place = int(next(chance) * len(content))
        match number % 5:
            case 0 | 1:
                flipped = content[place] ^ (1 << int(next(chance) * 8))
                yield content[:place] + bytes([flipped]) + content[place + 1 :]
            case 2:
                yield content[:place]
            case 3:
                zeros = min(1 + int(next(chance) * 4096), len(content) - place)
                yield content[:place] + b"\xff" * zeros + content[place + zeros :]
            case 4:
                yield content[:place] + content[place : place + 64] + content[place:]


def test_damage_at_two_hundred_places_is_always_noticed_and_the_one_before_used(stopped: RunFolder) -> None:
    older, newest = sorted(stopped.checkpoints.iterdir())
    whole = newest.read_bytes()
    try:
        for damaged in damages(whole):
            assert damaged != whole
            newest.write_bytes(damaged)
            found, wrong = newest_checkpoint(stopped.checkpoints)
            assert found == older
            assert list(wrong) == [newest]
            with pytest.raises(RunError, match=r"damaged|cannot be read"):
                load_checkpoint(newest)
    finally:
        newest.write_bytes(whole)


def test_a_run_goes_on_from_the_one_before_saying_so_and_keeps_two_good_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_for(tmp_path)

    whole = Path(fit(config, out=tmp_path / "whole", name="run", console=quiet())["run"])
    run = begun(tmp_path, monkeypatch)
    newest = run.checkpoints / "epoch-00002.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    console = Console(file=(tmp_path / "said").open("w"), width=500)
    resume_run(run, console)
    console.file.close()
    said = (tmp_path / "said").read_text()
    assert "epoch-00002.safetensors is damaged" in said
    assert "the one before it is used" in said
    assert_same_run(whole, run.path)
    names = sorted(path.name for path in run.checkpoints.iterdir())
    assert names == ["epoch-00002.safetensors.damaged", "epoch-00003.safetensors", "epoch-00004.safetensors"]


def test_if_both_are_damaged_the_run_stops_with_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path, monkeypatch)
    for path in run.checkpoints.iterdir():
        path.write_bytes(path.read_bytes()[1:])
    with pytest.raises(RunError, match=r"no checkpoint .* can be read"):
        resume_run(run, quiet())
    assert len(list(run.checkpoints.iterdir())) == 2  # left for whoever looks into it
    assert len(run.metrics()) == 2
