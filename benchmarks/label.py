"""Labelling in the browser: a scripted labeller drives the real page; how quickly the page answers.

    python -m benchmarks.label session --folder cifar --truth truth.csv
    python -m benchmarks.label latency --images 10000 --json benchmarks/results/label_latency.json
    python -m benchmarks.label latency --images 100000 --json benchmarks/results/label_latency.json

`session` needs Chromium and playwright: 60 answers by keyboard with 2 % mistakes, a new class in the middle, an undo, a
reload, a kill -9 and a restart; then the full run by its button, the share of labels that are right (the page's own,
and those of the full run), and whether all answers are there. `latency` sends what the page sends to a server of its
own, with features made up for so many images.
"""

import argparse
import csv
import http.client
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from PIL import Image

_FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
_CLASSES = 10


class Server:
    """`protocon label` as a process of its own."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        if self.process.stdout is None:
            raise RuntimeError("no output")
        self.url = self.process.stdout.readline().strip()
        return self.process

    def get(self, path: str) -> Any:
        """The answer."""
        return self.call("GET", path)[0]

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[Any, float]:
        """The answer, and how long it took in milliseconds."""
        parts = urlsplit(self.url)
        headers = {"X-ProtoCon-Token": parts.query.removeprefix("token="), "Content-Type": "application/json"}
        began = time.perf_counter()
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        taken = 1000 * (time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {content[:300]!r}")
        return (json.loads(content) if "json" in str(answer.headers["content-type"]) else content), taken

    def kill(self) -> None:
        """As the kernel does when memory runs out; then start again."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._start()

    def stop(self) -> None:
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=120)


def wait_for(condition: Any, seconds: float = 900) -> float:
    """Seconds until it is true."""
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > seconds:
            raise RuntimeError("waited in vain")
        time.sleep(0.01)
    return time.perf_counter() - began


# ---- a scripted labeller ----


class Labeller:
    """Answers by keyboard: the truth, but for 2 % mistakes."""

    def __init__(self, page: Any, truth: dict[str, str], seed: int) -> None:
        self.page = page
        self.truth = truth
        self.rng = random.Random(seed)
        self.known: list[str] = []
        self.given: dict[str, str] = {}
        self.milliseconds: list[float] = []
        self.mistakes = 0

    def caption(self) -> str:
        """Name of the image that is shown."""
        return str(self.page.inner_text("#caption"))

    def settle(self) -> None:
        """Until there is an image."""
        self.page.wait_for_selector("#picture:not([hidden])", timeout=900_000)

    def answer(self) -> None:
        """Answer the image that is shown."""
        name = self.caption()
        label = self.truth[name]
        if self.rng.random() < 0.02 and len(self.known) > 1:
            label = self.rng.choice([other for other in self.known if other != label])
            self.mistakes += 1
        began = time.perf_counter()
        if label in self.known and self.known.index(label) < 9:
            self.page.keyboard.press(str(self.known.index(label) + 1))
        else:
            if label not in self.known:
                self.known.append(label)
            self.page.keyboard.type(label)
            began = time.perf_counter()
            self.page.keyboard.press("Enter")
        self.changed(name)
        self.milliseconds.append(1000 * (time.perf_counter() - began))
        self.given[name] = label

    def changed(self, name: str) -> None:
        """Until another image is there, decoded."""
        self.page.wait_for_function(
            """name => document.getElementById('caption').textContent !== name
                 && document.getElementById('picture').complete""",
            arg=name,
            timeout=60_000,
            polling=2,
        )

    def undo(self) -> None:
        """Undo the last answer; its image is shown again."""
        now, last = self.caption(), list(self.given)[-1]
        self.page.keyboard.press("Backspace")
        self.changed(now)
        if self.caption() != last:
            raise RuntimeError(f"undo shows {self.caption()}; expected {last}")
        del self.given[last]


def session(args: argparse.Namespace) -> dict[str, Any]:
    """A whole labelling in the browser."""
    from playwright.sync_api import sync_playwright

    with args.truth.open(encoding="utf-8") as file:
        truth = {row[0]: row[1] for row in csv.reader(file)}
    for name in ("labels.jsonl", "labels.csv", ".labels.csv.ours"):
        (args.folder / name).unlink(missing_ok=True)
    command = [sys.executable, "-m", "protocon", "label", str(args.folder), "--no-browser", *args.settings]
    server = Server([*command, *(["--cache", str(args.cache)] if args.cache else [])])
    said: list[str] = []
    asked: list[str] = []
    try:
        features = wait_for(lambda: _all_seen(server), 7200)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=args.chromium, args=[*_FLAGS.split(), "--no-first-run"])
            page = browser.new_page(viewport={"width": 1280, "height": 820})
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto(server.url)
            who = Labeller(page, truth, args.seed)
            _work(who, server, args.answers)
            _screenshot(page, args.pictures, "session.png")
            wait_for(lambda: bool(server.get("/api/status")["whole"]))
            status = server.get("/api/status")
            labels = _final_labels(server, status)
            page.click("#tab-finish")
            page.click("#run-start")
            page.wait_for_selector("#run a", timeout=7_200_000)
            _screenshot(page, args.pictures, "finish.png")
            final = _labels_of_run(server)
            browser.close()
    finally:
        server.stop()
    with (args.folder / "labels.csv").open(encoding="utf-8") as file:
        saved = {row["file"]: row["label"] for row in csv.DictReader(file)}
    host = server.url.split("/?")[0]
    # What the browser itself says of requests that the killed server left unanswered, or half answered.
    away = (
        *("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_SOCKET_NOT_CONNECTED"),
        "ERR_CONTENT_LENGTH_MISMATCH",
    )
    errors = [text for text in said if not any(word in text for word in away)]
    return {
        "images": len(truth),
        "answers": len(who.given),
        "mistakes": who.mistakes,
        "right_on_the_page": sum(truth[name] == label for name, label in labels.items()) / len(truth),
        "right": sum(truth[name] == label for name, label in final.items()) / len(truth),
        "audit": status["audit"],
        "coverage": status["coverage"],
        "agreement": status["agreement"],
        "advice": status["advice"]["verdict"],
        "answers_lost": sum(saved.get(name) != label for name, label in who.given.items()),
        "console_errors": errors,
        "requests_elsewhere": [url for url in asked if not url.startswith((host, "data:"))],
        "milliseconds_to_next_image": _percentiles(who.milliseconds),
        "seconds_until_all_features": round(features, 1),
    }


def _all_seen(server: Server) -> bool:
    status = server.get("/api/status")
    return bool(status["features"] == status["images"] and status["round"] > 0)


def _work(who: Labeller, server: Server, answers: int) -> None:
    """The answers, with everything that may happen on the way."""
    who.settle()
    while len(who.given) < answers:
        who.answer()
        if len(who.given) == answers // 3:
            who.answer()
            who.undo()
            who.answer()
        if len(who.given) == answers // 2:
            before = who.caption()
            who.page.reload()
            who.settle()
            if who.caption() != before:
                raise RuntimeError("another image after a reload")
        if len(who.given) == 2 * answers // 3:
            server.kill()
            wait_for(lambda: _all_seen(server))
            who.page.wait_for_timeout(2500)  # the page notices by itself


def _final_labels(server: Server, status: dict[str, Any]) -> dict[str, str]:
    """Every image's label: as given, else as predicted."""
    names = {c["id"]: c["name"] for c in status["classes"]}
    labels: dict[str, str] = {}
    views = [f"view=class&class_id={c}" for c in names] + ["view=mine"]
    for view in views:
        page, more = 0, True
        while more:
            content = server.get(f"/api/browse?{view}&page={page}")
            labels |= {i["name"]: names[i["label"] or i["guess"]] for i in content["images"]}
            page, more = page + 1, content["more"]
    return labels


def _labels_of_run(server: Server) -> dict[str, str]:
    """Every image's label by the full run, as the page gives it out."""
    content = server.get("/run/labels").decode("utf-8-sig")
    return {row["file"]: row["label"] for row in csv.DictReader(io.StringIO(content))}


def _screenshot(page: Any, folder: Path | None, name: str) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / name)


# ---- latency ----

_SYNTHETIC = '''
import sys
from pathlib import Path
import numpy as np
from protocon.base.parts import look
from protocon.labeller.security import Bucket
from protocon.labeller.server import Labeller
from protocon.labeller.sight import Sight

class Made(Sight):
    """Features that are made up: ten clusters in the dimensions of two looks, in the precision of the cache."""
    parts = 2 * look(1280, 768)
    def look(self, deliver):
        fresh = [n for n in range(len(self.photos)) if n not in self._delivered]
        if not fresh:
            return
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(10, 4096)).astype(np.float32)
        kinds = np.array([int(Path(self.photos.files[n].path).stem.split("-")[1]) for n in fresh])
        for start in range(0, len(fresh), 8192):
            part = kinds[start:start + 8192]
            noise = rng.normal(size=(len(part), 4096)).astype(np.float32)
            deliver(np.array(fresh[start:start + 8192]), np.maximum(centres[part] + 2.5 * noise, 0).astype(np.float16))
        self._delivered.update(fresh)

import protocon.labeller.server as server
server.Sight = Made
labeller = Labeller(Path(sys.argv[1]), cache=Path(sys.argv[2]), encoder=(lambda: None, 32),
                    bucket=Bucket(rate=1e6, burst=1e6))
print(labeller.url, flush=True)
labeller.serve()
'''


def latency(args: argparse.Namespace) -> dict[str, Any]:
    """How quickly a page gets what it asks for."""
    scratch = Path(tempfile.mkdtemp(dir=args.scratch))
    folder = scratch / "photos"
    truth = _make_images(folder, args.images)
    server = Server([sys.executable, "-c", _SYNTHETIC, str(folder), str(scratch / "cache")])
    try:
        ready = wait_for(lambda: _all_seen(server), 1800)
        process = psutil.Process(server.process.pid)
        asked, pictures, learnt = [], [], []
        item = server.get("/api/next?tab=bench")["next"]
        for number in range(args.answers):
            body = {
                "key": f"bench-{number:08}",
                "tab": "bench",
                "do": "label",
                "why": item["why"],
                "name": truth[item["name"]],
                "images": [{"number": item["number"], "stamp": item["stamp"]}],
            }
            content, taken = server.call("POST", "/api/answer", body)
            item = content["next"]
            picture = server.call("GET", f"/image/{item['number']}?size=large")[1]
            asked.append(taken + picture)
            pictures.append(picture)
            if number % 4 == 3:  # a batch is answered: until the predictions know of it
                learnt.append(wait_for(lambda: not server.get("/api/status")["learning"], 120))
            else:
                time.sleep(args.pause)
        status = server.get("/api/status")
        memory = process.memory_info().rss / 2**20
    finally:
        server.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    return {
        "images": args.images,
        "answers": args.answers,
        "seconds_until_ready": round(ready, 1),
        "milliseconds_from_key_to_next_image": _percentiles(asked),
        "milliseconds_of_them_for_the_picture": _percentiles(pictures),
        "seconds_to_new_predictions": _percentiles(learnt),
        "memory_mib": round(memory),
        "audit": status["audit"],
        "load": os.getloadavg()[0],
    }


def _make_images(folder: Path, count: int) -> dict[str, str]:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    contents = []
    for kind in range(_CLASSES):
        place = folder / f"kind-{kind}.png"
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(place)
        contents.append(place.read_bytes())
        place.unlink()
    names = {}
    for number in range(count):
        kind = number * 7 % _CLASSES
        name = f"{number:06}-{kind}.png"
        (folder / name).write_bytes(contents[kind] + number.to_bytes(4, "little"))  # no two files alike
        names[name] = f"kind {kind}"
    return names


def _percentiles(values: list[float]) -> dict[str, float]:
    found = np.percentile(values, [50, 95, 100])
    return dict(zip(("median", "p95", "worst"), (round(float(v), 2) for v in found), strict=True))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("session")
    one.add_argument("--folder", type=Path, required=True, help="images, all in one folder; its labels are removed")
    one.add_argument("--truth", type=Path, required=True, help="CSV of file,class")
    one.add_argument("--answers", type=int, default=60)
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--cache", type=Path)
    one.add_argument("--pictures", type=Path, help="folder for screenshots")
    one.add_argument("--chromium", default="/usr/bin/chromium")
    one.add_argument("settings", nargs="*", help="of the encoder, key=value")
    one.set_defaults(run=session)
    two = commands.add_parser("latency")
    two.add_argument("--images", type=int, default=10_000)
    two.add_argument("--answers", type=int, default=60)
    two.add_argument("--pause", type=float, default=0.3, help="seconds between two answers")
    two.add_argument("--scratch", type=Path)
    two.set_defaults(run=latency)
    for command in (one, two):
        command.add_argument("--json", type=Path, help="write the figures here; other sizes' figures stay")
    args = parser.parse_args()
    found = args.run(args)
    print(json.dumps(found, indent=2))
    if args.json is not None:
        before = json.loads(args.json.read_text(encoding="utf-8")) if args.json.is_file() else []
        kept = [figures for figures in before if isinstance(figures, dict) and figures.get("images") != found["images"]]
        args.json.write_text(json.dumps([*kept, found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
