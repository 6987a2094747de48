"""Make the pictures of README's first hour anew: its commands in a real terminal, and the page that they lead to.

    python -m benchmarks.first_hour --work FOLDER

400 pictures of Fashion-MNIST, enlarged, and 30 labels, one of them wrong, are put into the folder. The commands of the
README are typed into tmux there, whose screen becomes `docs/images/first-hour-terminal.svg`; Chromium takes pictures of
the first run's report, 1,280 and 390 pixels wide. It needs tmux, Chromium, Playwright and Fashion-MNIST's files.
"""

import argparse
import csv
import io
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from rich.console import Console
from rich.text import Text

from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions

README = Path(__file__).parents[1] / "README.md"
PICTURES = README.parent / "docs" / "images"
CLASSES = {"trouser": 1, "coat": 4, "sandal": 5, "bag": 8, "boot": 9}
"""Their numbers in Fashion-MNIST."""
IMAGES, LABELS_PER_CLASS, SIDE = 400, 6, 112
WRONG = ("IMG_0012.jpg", "sandal", "bag")
"""The image that gets a wrong label, what it is, and what the label says."""
WIDTH, HEIGHT = 100, 60
PROMPT = r"\[\e[1;32m\]$ \[\e[0m\]"
PATIENCE_SECONDS = 1200


def make_photos(work: Path) -> None:
    """`photos/` and `labels.csv`."""
    pixels, kinds = fashion()
    draw = np.random.default_rng(7)
    chosen = draw.permutation(np.flatnonzero(np.isin(kinds, list(CLASSES.values()))))[:IMAGES]
    place = int(WRONG[0][4:8]) - 1
    sandal = next(n for n in range(IMAGES) if kinds[chosen[n]] == CLASSES[WRONG[1]])
    chosen[[place, sandal]] = chosen[[sandal, place]]
    names = {number: name for name, number in CLASSES.items()}
    (work / "photos").mkdir(parents=True)
    rows: list[tuple[str, str]] = []
    for number, position in enumerate(chosen, 1):
        file, kind = f"IMG_{number:04}.jpg", names[int(kinds[position])]
        picture = ImageOps.invert(Image.fromarray(pixels[position])).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        picture.convert("RGB").save(work / "photos" / file, quality=95)
        if sum(label == kind for _, label in rows) < LABELS_PER_CLASS:
            rows.append((file, kind))
    told = [(file, WRONG[2] if file == WRONG[0] else kind) for file, kind in rows]
    with (work / "labels.csv").open("w", newline="", encoding="utf-8") as table:
        csv.writer(table).writerows([("file", "label"), *told])


def fashion() -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 28, 28) and classes (N,) of the training set."""
    images = DATASETS["fashion-mnist"](SourceOptions()).train
    return images.read(np.arange(len(images)))[:, 0].numpy(), np.asarray(images.labels)


def commands() -> list[str]:
    """Those of README's first hour, from the first `protocon` on, but for the look at the page."""
    text = README.read_text(encoding="utf-8").split("## The first hour\n")[1].split("```text\n")[1].split("```")[0]
    lines = [line.split("      #")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line.startswith(("protocon ", "sed "))]


class Terminal:
    """A shell in tmux, into which commands are typed.

    Args:
        work: the folder it is in.
    """

    def __init__(self, work: Path) -> None:
        self.name = f"first-hour-{os.getpid()}"
        settings = {"XDG_CACHE_HOME": str(work / "cache"), "PS1": PROMPT, "COLORTERM": "truecolor"}
        shell = shlex.join(["env", *(f"{key}={value}" for key, value in settings.items()), "bash", "--norc"])
        self.tmux("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(work), shell)
        self.wait()

    def tmux(self, *arguments: str) -> str:
        """What a command of tmux prints."""
        return subprocess.run(["tmux", "-L", self.name, *arguments], check=True, capture_output=True, text=True).stdout

    def type(self, command: str) -> None:
        """Type a command and wait for its end."""
        self.tmux("send-keys", "-l", command)
        self.tmux("send-keys", "Enter")
        self.wait()

    def wait(self) -> None:
        """Until the prompt is back."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_SECONDS:
            time.sleep(1)
            shown = self.tmux("capture-pane", "-p").rstrip()
            if shown.splitlines()[-1:] == ["$"]:
                return
        raise TimeoutError(shown)

    def screen(self) -> str:
        """All that was shown, with its colours, without the last prompt."""
        return self.tmux("capture-pane", "-p", "-e", "-S", "-").rstrip().rpartition("\n")[0]

    def close(self) -> None:
        """End the shell."""
        self.tmux("kill-server")


def draw_terminal(screen: str, file: Path) -> None:
    """The screen as a picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip()))
    file.write_text(console.export_svg(title="protocon"), encoding="utf-8")


def draw_page(page: Path, chromium: str) -> None:
    """The top of the report, on a desktop and on a phone."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width, height in ((1280, 1130), (390, 1130)):
            view = browser.new_page(viewport={"width": width, "height": height})
            view.goto(page.resolve().as_uri())
            view.screenshot(path=PICTURES / f"first-hour-report-{width}.png")
        browser.close()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="A folder for photos, labels and runs; must be new.")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    make_photos(options.work)
    terminal = Terminal(options.work.resolve())
    try:
        for command in commands():
            terminal.type(command)
        screen = terminal.screen()
    finally:
        terminal.close()
    draw_terminal(screen, PICTURES / "first-hour-terminal.svg")
    first = next(shlex.split(line)[-1] for line in commands() if line.startswith("sed "))
    draw_page(options.work / Path(first).parent / "report.html", options.chromium)
    sys.stdout.write(Text.from_ansi(screen).plain + "\n")


if __name__ == "__main__":
    main()
