"""The page in a real browser: nothing is loaded, nothing fails, everything is visible, on screens large and small."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocon.report.page import build_page
from tests.engine.layouts import save_class
from tests.report.folders import label, pictures, write_json, write_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NAMES = ("ant", "a class with quite a long name, as folders often have", "cow")

BOXES = """
[...document.images].map(i => i.getBoundingClientRect()).map(b => [b.left, b.right, b.width, b.height])
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def page_of(folder: Path, kind: str) -> str:
    rows = [label(f"{'long-name-' * 9}{i}.png", NAMES[i % 3], 0.9, truth=NAMES[i % 3]) for i in range(60)]
    for rank, row in enumerate(rows[:20], start=1):
        row |= {"cluster": NAMES[rank % 3], "triage": "review", "review_rank": str(rank)}
    images = pictures([row["file"] for row in rows], NAMES)
    if kind == "unfinished":
        return build_page([write_run(folder / "run", NAMES, None)])
    if kind == "no truth":
        rows = [row | {"truth": ""} for row in rows]
        return build_page([write_run(folder / "run", NAMES, rows, truth=False, test=False)], images=lambda _: images)
    count = 2 if kind == "two runs" else 1
    runs = [write_run(folder / f"run{i}", NAMES, rows) for i in range(count)]
    return build_page(runs, images=lambda _: images)


@pytest.mark.parametrize("kind", ["finished", "no truth", "unfinished", "two runs"])
def test_everything_is_visible_and_nothing_is_loaded(browser: Any, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(tmp_path, kind), encoding="utf-8")
    page = browser.new_page()
    said: list[str] = []
    loaded: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: loaded.append(request.url))
    page.goto(file.as_uri())
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("document.querySelectorAll('details.fold').forEach(fold => fold.open = false)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.evaluate("document.querySelectorAll('details.fold').forEach(fold => fold.open = true)")
        page.wait_for_function("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
        boxes = page.evaluate(BOXES)
        assert len(boxes) >= (4 if kind == "unfinished" else 30)
        for left, right, across, down in boxes:
            assert across > 0
            assert down > 0
            assert left >= 0
            assert right <= width + 1
    assert said == []
    assert [url for url in loaded if not url.startswith("data:")] == [file.as_uri()]
    page.close()


def test_tables_open_without_pushing_the_page_aside(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page_of(tmp_path, "finished"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(file.as_uri())
    for summary in page.query_selector_all("summary"):
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert all(table.bounding_box()["height"] > 0 for table in page.query_selector_all("table"))
    page.close()


def test_images_beyond_the_budget_come_from_their_folder_when_they_come_into_view(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = tmp_path / "my photos #1"
    save_class(photos, 0, 40)
    rows = [label(f"{i:03}.png", NAMES[i % 3], 0.5, triage="review", review_rank=str(i + 1)) for i in range(40)]
    run = write_run(tmp_path / "run", NAMES, rows, truth=False, test=False)
    write_json(run / "data.json", {"data": "folder", "root": str(photos)})
    monkeypatch.setattr("protocon.report.page.THUMBNAIL_BYTES", 3000)
    (run / "report.html").write_text(build_page([run], images=lambda _: pictures([row["file"] for row in rows], NAMES)))
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((run / "report.html").as_uri())
    last = page.query_selector("#run1 ol.review li:last-child img")
    assert last.get_attribute("src") == (photos / "039.png").as_uri()
    last.scroll_into_view_if_needed()
    page.wait_for_function("i => i.complete && i.naturalWidth === 16", arg=last)
    assert page.query_selector("#run1 ol.review a").get_attribute("href") == (photos / "000.png").as_uri()
    page.close()
