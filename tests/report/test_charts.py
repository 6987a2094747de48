"""Curves and counts as SVG: what is drawn lies where its numbers say, and any text is well-formed XML."""

import base64
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from protocon.report.charts import Line, lines, matrix, panels
from protocon.report.collect import Confusion, Curve
from protocon.report.svg_canvas import shade, ticks

SVG = "{http://www.w3.org/2000/svg}"


def drawn(uri: str) -> ET.Element:
    return ET.fromstring(base64.b64decode(uri.removeprefix("data:image/svg+xml;base64,")))


def curves(picture: ET.Element, colour: str) -> list[np.ndarray]:
    found = [part for part in picture.iter(f"{SVG}polyline") if part.get("stroke") == colour]
    return [np.array([[float(n) for n in p.split(",")] for p in (one.get("points") or "").split()]) for one in found]


def words(picture: ET.Element) -> list[str]:
    return [part.text or "" for part in picture.iter(f"{SVG}text")]


def line(values: list[float], label: str = "a", colour: str = "#0072B2") -> Line:
    return Line(label, Curve(np.arange(1.0, len(values) + 1), np.array(values)), colour)


def test_a_curve_is_as_high_as_its_values_on_the_axis_beside_it() -> None:
    picture = drawn(lines([line([0.0, 1.0, 0.5])], percent=True, legend=False))
    (points,) = curves(picture, "#0072B2")
    zero, full, half = points[:, 1]
    assert full < half < zero
    assert half == pytest.approx((zero + full) / 2, abs=0.11)
    heights = {part.text: float(part.get("y") or 0) for part in picture.iter(f"{SVG}text")}
    assert heights["0 %"] - heights["100 %"] == pytest.approx(zero - full, abs=0.2)
    assert points[1, 0] - points[0, 0] == pytest.approx(points[2, 0] - points[1, 0], abs=0.11)


def test_a_value_that_is_no_number_leaves_a_gap() -> None:
    picture = drawn(lines([line([1.0, 2.0, np.nan, 3.0, 4.0])], percent=False, legend=False))
    assert [len(piece) for piece in curves(picture, "#0072B2")] == [2, 2]


@pytest.mark.parametrize("values", [[0.3], [0.0, 0.0], [np.nan, np.nan], [1e-9, 2e-9], [5e8, 1e9]])
def test_any_values_can_be_drawn(values: list[float]) -> None:
    for percent in (True, False):
        drawn(lines([line(values), line(values, "b")], percent=percent, legend=True))


def test_every_frame_has_its_title_and_several_runs_their_names() -> None:
    found = words(drawn(panels([("one", [line([1.0, 2.0]), line([2.0, 1.0], "b")]), ("two", [line([3.0])])])))
    assert {"one", "two", "a", "b"} <= set(found)


def test_cells_hold_their_counts_and_darken_with_their_share() -> None:
    counts = np.array([[8, 0], [5, 5]])
    evil = '<b>"&\x00\udcff'
    found = Confusion(names=(evil, "cat"), counts=counts, pairs=(), rows="r", columns="c", of_truth=False, classes=2)
    picture = drawn(matrix(found))
    assert sorted(word for word in words(picture) if word.isdigit()) == ["5", "5", "8"]
    assert '<b>"&??' in words(picture)
    fills = [part.get("fill") for part in picture.iter(f"{SVG}rect")]
    assert fills == [shade(1.0), shade(0.0), shade(0.5), shade(0.5)]


def test_ticks_are_round_and_within_the_axis() -> None:
    assert ticks(0.0, 1.0, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(0.7, 3.3, 6, whole=True) == [1, 2, 3]
    for high in (1e-7, 0.13, 7.0, 123456.0):
        found = ticks(0.0, high, 6)
        assert 2 <= len(found) <= 7
        assert found[-1] <= high * (1 + 1e-9)


def test_the_way_of_a_frozen_run_imports_nothing_that_it_does_not_need() -> None:
    """Each of these takes a tenth of a second or more."""
    code = "import sys, protocon.cli, protocon.engine.run, protocon.report.page; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "torch" in loaded
    unwanted = {"matplotlib", "scipy.optimize", "scipy.special", "scipy.linalg", "torch.onnx", "pandas", "sklearn"}
    assert not loaded & (unwanted | {"timm", "torchvision", "lightning_fabric", "torch._dynamo"})
