"""The page in a real browser, by keyboard alone, wide and narrow: nothing fails, nothing is loaded from elsewhere."""

import csv
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocon.export.label_formats import LABEL_FORMATS
from tests.features.tiny import NAME, SIDE, save_weights
from tests.labeller.folders import labeller, make_folder, wait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
SCRIPT = "<script>alert(1)</script>"
SLOW_HISTORY = """() => {
  const real = window.fetch;
  const pause = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));
  window.fetch = async (address, more) => {
    if (String(address).includes("api/history")) await pause(2000);
    return real(address, more);
  };
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS.split(), "--no-first-run"])
        yield found
        found.close()


class Watched:
    """A page whose complaints and requests are noted."""

    def __init__(self, browser: Any, url: str, width: int = 1280) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        self.page.wait_for_selector("#picture:not([hidden])")
        self.host = url.split("/?")[0]

    def caption(self) -> str:
        return str(self.page.inner_text("#caption"))

    def press(self, *keys: str) -> None:
        """Keys, one after the other, until the next image is there."""
        before = self.caption()
        for key in keys:
            self.page.keyboard.press(key)
        self.page.wait_for_function("name => document.getElementById('caption').textContent !== name", arg=before)

    def type(self, text: str) -> None:
        before = self.caption()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.page.wait_for_function("name => document.getElementById('caption').textContent !== name", arg=before)

    def close(self) -> None:
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(self.host)] == []
        self.page.close()


def test_a_session_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    truth = make_folder(tmp_path / "photos", 40)
    with labeller(tmp_path / "photos", tmp_path) as server:
        seen = Watched(browser, server.url)
        names: list[str] = []
        answers: dict[str, str] = {}
        for _ in range(10):
            name = seen.caption()
            colour = truth[name]
            answers[name] = colour
            if colour in names:
                seen.press(str(names.index(colour) + 1))
            else:
                names.append(colour)
                seen.type(colour)
        assert server.labels() == answers
        last = list(answers)[-1]
        seen.press("Backspace")
        assert seen.caption() == last  # asked about again
        assert last not in server.labels()
        seen.type(truth[last][:2])  # search for a class that is there
        assert server.labels() == answers
        name = seen.caption()
        seen.press("0")
        seen.press("Space")
        assert name not in server.labels()
        assert [entry.do for entry in server.log.entries][-2:] == ["none", "skip"]
        seen.page.keyboard.press("+")
        assert seen.page.get_attribute("#do-zoom", "aria-pressed") == "true"
        before = seen.caption()
        seen.page.reload()
        seen.page.wait_for_selector("#picture:not([hidden])")
        assert seen.caption() == before
        seen.close()


def test_a_late_reply_does_not_clear_what_is_being_typed(browser: Any, tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 24)
    held: list[Any] = []

    def hold(request: Any) -> None:
        held.append(request)

    with labeller(tmp_path / "photos", tmp_path) as server:
        page = browser.new_page()

        def oldest() -> Any:
            for _ in range(600):
                if held:
                    return held.pop(0)
                page.wait_for_timeout(50)
            raise AssertionError("the page asks for no image")

        page.route("**/api/next*", hold)
        page.goto(server.url)
        oldest().fulfill(json={"next": None, "waiting": True, "ahead": []})
        answered = oldest()
        page.wait_for_timeout(1200)  # in which a page that asks by two clocks asks again
        answered.continue_()
        page.wait_for_selector("#picture:not([hidden])")
        page.keyboard.type("gre")
        for late in held:
            late.continue_()
        page.wait_for_timeout(500)
        assert page.input_value("#entry") == "gre"
        page.close()


def test_a_group_of_look_alikes_with_one_key(browser: Any, tmp_path: Path) -> None:
    truth = make_folder(tmp_path / "photos", 40)
    with labeller(tmp_path / "photos", tmp_path) as server:
        seen = Watched(browser, server.url)
        for _ in range(6):
            seen.type(truth[seen.caption()])
        wait(lambda: server.desk.opinion.known.version == server.desk.version)
        seen.page.click("#tab-grid")
        seen.page.wait_for_selector("#grid .tile")
        count = seen.page.locator("#grid .tile").count()
        colour = seen.page.input_value("#grid-class")
        seen.page.locator("#grid .tile").first.focus()
        seen.page.keyboard.press("ArrowRight")
        out = seen.page.evaluate("document.activeElement.getAttribute('aria-label')")
        seen.page.keyboard.press("Space")
        assert seen.page.inner_text("#grid-accept") == f"Accept {count - 1}"
        seen.page.keyboard.press("Enter")
        wait(lambda: len(server.labels()) == 6 + count - 1)
        labels = server.labels()
        assert out not in labels
        assert all(truth[name] == label for name, label in labels.items())
        assert list(labels.values()).count(colour) >= count - 1
        seen.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_fits_and_names_are_text(browser: Any, tmp_path: Path, width: int) -> None:
    truth = make_folder(tmp_path / "photos", 24)
    long = "a class with quite a long name, as people give them when they are in no hurry at all"[:80]
    with labeller(tmp_path / "photos", tmp_path, classes=[SCRIPT, long]) as server:
        seen = Watched(browser, server.url, width)
        for _ in range(6):
            seen.type({"red": SCRIPT, "green": long}.get(truth[seen.caption()], "blue"))
        seen.press("0")  # so that all notes of the bar are there
        seen.press("Space")
        wait(lambda: server.desk.opinion.known.version == server.desk.version)
        for view in ("label", "grid", "review", "classes", "finish"):
            seen.page.click(f"#tab-{view}")
            panel = seen.page.locator(f"#view-{view}")
            panel.wait_for()
            seen.page.wait_for_timeout(150)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
            assert seen.page.locator(f"#tab-{view}").get_attribute("aria-selected") == "true"
        seen.page.click("#tab-classes")
        assert SCRIPT in seen.page.inner_text("#class-table")
        seen.page.click("#tab-review")
        for pill in seen.page.query_selector_all("#pills button"):
            pill_text = pill.inner_text()
            seen.page.get_by_role("button", name=pill_text, exact=True).click()
            seen.page.wait_for_timeout(80)
        unnamed = seen.page.evaluate(
            """() => [...document.querySelectorAll('button, input, select')].filter((node) =>
                 !node.innerText && !node.getAttribute('aria-label') && !(node.labels && node.labels.length)).length"""
        )
        assert unnamed == 0
        seen.close()


def test_the_page_waits_for_a_server_that_was_away(browser: Any, tmp_path: Path) -> None:
    truth = make_folder(tmp_path / "photos", 24)
    server = labeller(tmp_path / "photos", tmp_path).start()
    seen = Watched(browser, server.url)
    seen.type(truth[seen.caption()])
    server.stop()
    name = seen.caption()
    seen.page.keyboard.type("red")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_selector("#banner:not([hidden])")
    with labeller(tmp_path / "photos", tmp_path) as server:
        wait(lambda: server.labels().get(name) == "red")
        seen.page.wait_for_function("name => document.getElementById('caption').textContent !== name", arg=name)
        seen.said = [text for text in seen.said if "ERR_CONNECTION_REFUSED" not in text]
        seen.close()


def test_one_button_makes_the_full_run_the_report_and_the_exports(browser: Any, tmp_path: Path) -> None:
    truth = make_folder(tmp_path / "photos", 36)
    save_weights(tmp_path / "weights.safetensors")
    settings = [
        *(f"network.encoder={NAME}", f"network.weights={tmp_path / 'weights.safetensors'}", f"data.image_size={SIDE}"),
        *(
            "network.components=8",
            "network.hidden=16",
            "tensorboard=false",
            "epochs=3",
            "batch_size=4",
            "run.cross_check=3",
        ),
    ]
    with labeller(tmp_path / "photos", tmp_path, settings=settings) as server:
        seen = Watched(browser, server.url)
        for _ in range(15):
            seen.type(truth[seen.caption()])
        page = seen.page
        page.click("#tab-finish")
        page.click("#run-start")
        page.wait_for_selector("#run-stop:not([hidden])")
        page.wait_for_selector("#run a", timeout=120_000)
        assert page.locator("#run-start").is_enabled()
        links = {link.inner_text(): link.get_attribute("href") for link in page.query_selector_all("#run a")}
        assert set(links) == {"Open the report", "Download labels.csv of all images", "Download the model"}
        with page.expect_popup() as opened:
            page.click("text=Open the report")
        opened.value.wait_for_load_state()
        assert opened.value.locator("h1").count() == 1
        assert "labelled-1" in opened.value.content()
        with page.expect_download() as saved:
            page.click("text=Download labels.csv")
        rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8-sig"))))
        labels = {row["file"]: row["label"] for row in rows}
        assert labels.keys() == truth.keys()
        assert all(labels[name] == label for name, label in server.labels().items())
        assert sum(labels[name] == label for name, label in truth.items()) >= 30
        exported = page.locator("#run .exports code").all_inner_texts()
        assert {Path(folder).name.removeprefix("labels-") for folder in exported} == set(LABEL_FORMATS)
        classes = {p.name for p in (tmp_path / "runs" / "labelled-1" / "labels-folders").iterdir()}
        assert classes <= {"red", "green", "blue"}
        assert classes
        seen.close()


def test_a_server_that_is_gone_while_something_is_fetched_is_no_error_of_the_page(browser: Any, tmp_path: Path) -> None:
    make_folder(tmp_path / "photos", 12)
    with labeller(tmp_path / "photos", tmp_path, classes=["red", "green", "blue"]) as server:
        seen = Watched(browser, server.url)
        seen.page.route("**/api/history*", lambda route: route.abort())
        with seen.page.expect_event("requestfailed"):
            seen.page.click("#tab-classes")
        seen.page.wait_for_timeout(200)
        assert not [text for text in seen.said if "Failed to fetch" in text]
        seen.page.unroute("**/api/history*")
        seen.page.click("#tab-label")
        seen.page.click("#tab-classes")  # it is asked for again
        seen.page.wait_for_selector("#class-table b:text-is('green')")


def test_a_wrong_label_is_found_and_corrected_and_classes_are_renamed_merged_and_restored(
    browser: Any, tmp_path: Path
) -> None:
    truth = make_folder(tmp_path / "photos", 40)
    with labeller(tmp_path / "photos", tmp_path, classes=["red", "green", "blue"]) as server:
        seen = Watched(browser, server.url)
        planted = ""
        for _ in range(12):
            name = seen.caption()
            wrong = not planted and len(server.labels()) > 8
            planted = name if wrong else planted
            seen.type({"red": "green", "green": "blue", "blue": "red"}[truth[name]] if wrong else truth[name])
        wait(lambda: server.desk.opinion.known.version == server.desk.version)
        page = seen.page
        page.click("#tab-review")
        page.get_by_role("button", name="Your labels that look wrong").click()
        page.locator("#review .tile").first.click()
        page.wait_for_selector("#do-back:not([hidden])")
        assert seen.caption() == planted
        page.keyboard.press(str(1 + ["red", "green", "blue"].index(truth[planted])))
        page.wait_for_selector("#view-review:not([hidden])")
        assert server.labels()[planted] == truth[planted]

        page.evaluate(SLOW_HISTORY)  # clicks must count while it is still being fetched
        page.click("#tab-classes")
        page.get_by_label("New name of red").fill("crimson")
        page.get_by_role("button", name="Rename red").click()
        page.wait_for_selector("#class-table b:text-is('crimson')")
        before = server.labels()
        assert "crimson" in before.values()
        page.get_by_label("Merge crimson into").select_option(label="blue")
        page.get_by_role("button", name="Merge crimson").click()
        page.wait_for_selector("#class-table b:text-is('crimson')", state="detached")
        assert "crimson" not in server.labels().values()
        page.get_by_role("button", name="Undo: merged into blue").click()
        page.wait_for_selector("#class-table b:text-is('crimson')")
        assert server.labels() == before
        assert [entry.do for entry in server.log.entries][-3:] == ["rename", "merge", "undo"]
        seen.close()
