"""One line per stage, with a remaining time that is true, on terminals, in notebooks and in logs."""

import io
import sys
import types
from typing import Any

import pytest
from rich.console import Console

from protocon.base import stage_bar
from protocon.base.stage_bar import StageBar
from protocon.engine.loop.display import Display


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stage_bar, "time", clock)
    return clock


def terminal(width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, _environ={})


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_remaining_time_leaves_out_the_slow_start_and_what_was_there_before(clock: Clock) -> None:
    with StageBar(terminal(), title="features", total=100, ready=20, unit="images") as bar:
        assert bar.remaining() is None
        clock.now = 60  # an encoder is compiled
        bar.update(30)
        assert bar.remaining() is None
        clock.now = 62
        bar.update(50)
        assert bar.remaining() == pytest.approx(5)  # ten images per second
        assert bar.text() == "50/100 images  0:00:05 left"
        clock.now = 67
        bar.update(100)
        assert bar.text() == "100/100 images  0:01:07"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_stage_leaves_one_line_on_a_terminal_of_any_width(clock: Clock, width: int) -> None:
    console = terminal(width)
    with Display(console, title="training", total_epochs=3, steps_per_epoch=4, details=False) as display:
        for epoch in range(3):
            for step in range(4):
                clock.now += 1
                assert display.wants_step()
                display.step(step + 1, {"loss_x": 0.5})
            display.epoch(epoch + 1, {"loss_x": 0.5, "clusters_in_use": 7.0})
    assert written(console).count("\n") == 1  # everything was drawn over
    last = written(console).split("\n")[0].split("\r")[-1]
    assert "training" in last
    assert "100 %" in last
    assert "Lx" not in written(console)
    assert "clusters" not in written(console)


def test_those_who_run_benchmarks_see_losses_beside_the_bar(clock: Clock) -> None:
    console = terminal()
    with Display(console, title="digits", total_epochs=2, steps_per_epoch=1) as display:
        clock.now = 1
        display.step(1, {"loss_x": 0.5})
    assert "Lx 0.50" in written(console)


def test_a_log_gets_a_line_every_ten_seconds_and_one_at_the_end(clock: Clock) -> None:
    console = Console(file=io.StringIO(), width=80)
    with Display(console, title="training", total_epochs=30, steps_per_epoch=1) as display:
        for epoch in range(30):
            clock.now += 1
            display.epoch(epoch + 1, {"loss_x": 1.0})
    assert written(console).splitlines() == [f"training: epoch {n}/30    Lx 1.00" for n in (11, 22, 30)]


def test_in_a_notebook_one_output_is_drawn_over(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, content: Any) -> None:
            shown[-1] = content.text

    def display(content: Any, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(content.text)
        return Handle()

    module = types.ModuleType("IPython.display")
    vars(module).update(Pretty=lambda text: types.SimpleNamespace(text=text), display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    console = Console(file=io.StringIO(), force_jupyter=True)
    with StageBar(console, title="training", total=4) as bar:
        for done in range(1, 5):
            clock.now += 1
            bar.update(done)
    assert len(shown) == 1
    assert shown[0].split() == ["training", "█" * 24, "100", "%", "0:00:04"]
    with StageBar(Console(quiet=True, force_jupyter=True), title="training", total=4) as bar:
        bar.update(4)
    assert len(shown) == 1
