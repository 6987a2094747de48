"""Run the cells of a table, seed by seed; what is finished is kept, what was begun is resumed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from protocon.base import distributed
from protocon.base.atomic import write_bytes
from protocon.engine.run import fit
from protocon.errors import ConfigError, unknown_name
from protocon.paper.paper_cells import TABLES, PaperCell, paper_cells
from protocon.reproduce.availability import missing_part
from protocon.reproduce.progress_table import Measured, markdown
from protocon.runs.run_folder import RunFolder, newest_run
from protocon.settings.config import RunConfig, build_config, flat_settings

Watch = Callable[[Sequence[Measured]], None]
"""Called with the whole table after every finished run."""
_FREE = frozenset(
    (
        *("data.root", "data.storage", "data.workers", "network.weights", "network.weights_sha256"),
        *("run.accelerator", "run.report", "run.tensorboard", "run.loggers", "run.cache", "run.timeout_minutes"),
        *("run.checkpoint_every", "run.checkpoint_minutes", "run.eval_batch_size"),
    )
)
"""Settings that make no other run of it: where things are, and what is kept."""


@dataclass(frozen=True)
class Reproduction:
    """Which cells of a table, where their data is, and where runs go."""

    table: str
    out: Path
    cells: Sequence[str] = ()
    """Patterns such as `cifar10-*/protocon`; none for all cells."""
    roots: Mapping[str, Path] = field(default_factory=dict)
    """Folders with data by the name of the data set."""
    weights: Mapping[str, Path] = field(default_factory=dict)
    """The encoder's weights by row, for rows that start from a pre-trained one."""
    seeds: int | None = None
    """Fewer runs than the paper's."""
    overrides: Sequence[str] = ()
    """`key=value` over the recipes; the table says so."""

    def chosen(self) -> list[PaperCell]:
        """The cells, in the table's order."""
        if self.table not in TABLES:
            raise ConfigError(unknown_name("table", self.table, TABLES))
        every = [cell for cell in paper_cells().values() if cell.table == self.table]
        names = [f"{cell.column}/{cell.row}" for cell in every]
        for pattern in self.cells:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ConfigError(unknown_name("cell", pattern, names))
        patterns = self.cells or ("*",)
        return [c for c, name in zip(every, names, strict=True) if any(fnmatchcase(name, p) for p in patterns)]

    def config(self, cell: PaperCell, seed: int) -> RunConfig:
        """Settings of one run."""
        given: dict[str, dict[str, object]] = {"run": {"seed": seed}}
        root = self._root(cell)
        if root is not None:
            given["data"] = {"root": str(root)}
        if cell.method.weights is not None and cell.row in self.weights:
            given["network"] = {"weights": str(self.weights[cell.row])}
        return build_config(recipe=cell.name, settings=given, overrides=self.overrides)

    def measured(self, cell: PaperCell) -> Measured:
        """What is finished of a cell. Runs with other settings are not of it."""
        accuracies, others = {}, 0
        for seed in range(self._count(cell)):
            folder = self._folder(cell, seed)
            if folder is not None and folder.finished():
                if self._changed(folder, cell, seed):
                    others += 1
                else:
                    accuracies[seed] = 100 * float(folder.result()["test_accuracy"])
        hindrances = [self._hindrance(cell), f"{others} with other settings" if others else None]
        return Measured(cell, accuracies, self._count(cell), "; ".join(filter(None, hindrances)) or None)

    def run(self, console: Console, watch: Watch | None = None) -> list[Measured]:
        """Run what can be run and is not finished; the table is written after every run."""
        cells = self.chosen()
        ready = [cell for cell in cells if self._hindrance(cell) is None]
        for cell in ready:
            self._check(cell)  # wrong settings are found before the first run
        found = self._write(cells)
        for seed in range(max(map(self._count, ready), default=0)):
            for cell in ready:
                if seed < self._count(cell):
                    name = run_name(cell, seed)
                    fit(self.config(cell, seed), out=self.out / "cells", name=name, resume=True, console=console)
                    found = self._write(cells)
                    if watch is not None:
                        watch(found)
        return found

    def _write(self, cells: Sequence[PaperCell]) -> list[Measured]:
        found = [self.measured(cell) for cell in cells]
        if distributed.rank() == 0:
            self.out.mkdir(parents=True, exist_ok=True)
            write_bytes(self.out / "table.md", markdown(self.table, found, self.overrides).encode())
            content = {"table": self.table, "changes": list(self.overrides), "cells": [one.content() for one in found]}
            write_bytes(self.out / "table.json", (json.dumps(content, indent=1) + "\n").encode())
        return found

    def _check(self, cell: PaperCell) -> None:
        self.config(cell, 0)
        for seed in range(self._count(cell)):
            folder = self._folder(cell, seed)
            if folder is not None and (changed := self._changed(folder, cell, seed)):
                raise ConfigError(
                    f"{folder.path} was begun with other settings, so it cannot continue with these:\n  "
                    + "\n  ".join(changed)
                    + "\nAsk for the same again, or choose another --out"
                )

    def _folder(self, cell: PaperCell, seed: int) -> RunFolder | None:
        return newest_run(self.out / "cells", run_name(cell, seed))

    def _changed(self, folder: RunFolder, cell: PaperCell, seed: int) -> list[str]:
        """What of a run's settings is not what is asked for now."""
        before, now = flat_settings(folder.config()), flat_settings(self.config(cell, seed))
        keys = sorted((before.keys() | now.keys()) - _FREE)
        return [f"{key}: {before.get(key)!r} → {now.get(key)!r}" for key in keys if before.get(key) != now.get(key)]

    def _count(self, cell: PaperCell) -> int:
        return cell.setting.seeds if self.seeds is None else min(self.seeds, cell.setting.seeds)

    def _root(self, cell: PaperCell) -> Path | None:
        recipe = cell.setting.parent.removeprefix("paper-")
        return self.roots.get(recipe)

    def _hindrance(self, cell: PaperCell) -> str | None:
        """Why a cell cannot be run now."""
        if (lacking := missing_part(cell)) is not None:
            return lacking
        if cell.method.weights is not None and cell.row not in self.weights:
            return f"needs {cell.method.weights} (--weights {cell.row}=FILE)"
        if self._root(cell) is None:
            name = cell.setting.parent.removeprefix("paper-")
            return f"needs the data (--root {name}=FOLDER)"
        return None


def run_name(cell: PaperCell, seed: int) -> str:
    """Name of a run's folder."""
    return f"{cell.column}-{cell.row}-seed{seed}"
