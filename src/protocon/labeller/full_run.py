"""The full run: `protocon train` on the labels so far, as a process of its own, with its report, files and exports."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protocon.errors import ProtoConError, RunError
from protocon.export.label_formats import LABEL_FORMATS, export_labels

FILES = {
    "report": ("report.html", "text/html; charset=utf-8"),
    "labels": ("labels.csv", "text/csv; charset=utf-8"),
    "model": ("model.safetensors", "application/octet-stream"),
}
"""What a run leaves behind that the page offers, by the name in the address."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TAIL = 4000


class FullRun:
    """At most one run at a time.

    Args:
        root: folder of images.
        labels: file of labels.
        out: folder that holds run folders.
        options: further arguments of `protocon train`.
        cache: folder that holds features; None: the one of `train`.
    """

    def __init__(
        self, root: Path, labels: Path, out: Path, options: Sequence[str] = (), *, cache: Path | None = None
    ) -> None:
        self.root, self.labels, self.out = root, labels, out
        self.options = (*options, *([] if cache is None else [f"run.cache={cache}"]))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._after: threading.Thread | None = None
        self._exports: dict[str, dict[str, Any]] = {}
        self._folder: Path | None = None
        self._began = 0.0
        self._asked_to_stop = False

    def command(self, name: str) -> list[str]:
        """The same that a user could type."""
        return [
            sys.executable, "-m", "protocon", "train", "--data", "folder", "--root", str(self.root),
            "--labels", str(self.labels), "--frozen", "--out", str(self.out), "--name", name, "--json", *self.options,
        ]  # fmt: skip

    def start(self) -> None:
        """Begin; RunError if one is under way."""
        with self._lock:
            if self._busy():
                raise RunError("a run is under way already; stop it first, or wait for it")
            number = 1
            while (self.out / f"labelled-{number}").exists():
                number += 1
            name = f"labelled-{number}"
            self._folder = self.out / name
            self.out.mkdir(parents=True, exist_ok=True)
            said, result = self._said(name), self.out / f".{name}.json"
            environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
            with said.open("wb") as errors, result.open("wb") as output:
                self._process = subprocess.Popen(
                    self.command(name), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment
                )
            self._began, self._asked_to_stop, self._exports = time.monotonic(), False, {}
            self._after = threading.Thread(
                target=self._export, args=(self._process, self._folder), name="exports", daemon=True
            )
            self._after.start()

    def stop(self) -> None:
        """End a run that is under way, as Ctrl-C does."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._asked_to_stop = True
                self._process.terminate()
                try:
                    self._process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
            if self._after is not None:
                self._after.join()

    def _busy(self) -> bool:
        return self._after is not None and self._after.is_alive()

    def _export(self, process: subprocess.Popen[bytes], run: Path) -> None:
        """Once the run has succeeded, the labels that can be taken, as other programs read them."""
        if process.wait() != 0:
            return
        for name in LABEL_FORMATS:
            try:
                made = export_labels(run, file_format=name)
                self._exports[name] = {"folder": made["folder"], "images": made["images"]}
            except ProtoConError as error:  # such as: no label is sure enough
                self._exports[name] = {"problem": str(error)}

    def status(self) -> dict[str, Any]:
        """For the page: none, running, done, stopped or failed; what was said last; what there is to look at."""
        process, folder = self._process, self._folder
        if process is None or folder is None:
            return {"state": "none"}
        code = process.poll()
        said = self._tail(folder.name)
        if code is None:
            return {"state": "running", "seconds": round(time.monotonic() - self._began), "said": said[-1:]}
        if code != 0:
            state = "stopped" if self._asked_to_stop else "failed"
            return {"state": state, "said": said[-12:]}
        if self._busy():
            return {"state": "running", "seconds": round(time.monotonic() - self._began), "said": ["writing exports"]}
        files = [name for name, (file, _) in FILES.items() if (folder / file).is_file()]
        return {
            "state": "done",
            "folder": str(folder),
            "files": files,
            "exports": self._exports,
            "result": self._result(folder.name),
        }

    def file(self, name: str) -> tuple[Path, str] | None:
        """A file of the latest finished run, with its media type."""
        if self._folder is None or name not in FILES or self.status()["state"] != "done":
            return None
        path = self._folder / FILES[name][0]
        return (path, FILES[name][1]) if path.is_file() else None

    def _said(self, name: str) -> Path:
        return self.out / f".{name}.log"

    def _tail(self, name: str) -> list[str]:
        try:
            text = self._said(name).read_bytes()[-_TAIL:].decode("utf-8", "replace")
        except OSError:
            return []
        lines = [_ANSI.sub("", line).strip() for line in re.split(r"[\r\n]+", text)]
        return [line for line in lines if line]

    def _result(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads((self.out / f".{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        checked = content.get("cross_check") if isinstance(content, dict) else None
        return {"cross_check": checked, "labelled": content.get("labelled"), "seconds": content.get("seconds")}
