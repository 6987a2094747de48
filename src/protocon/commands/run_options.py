"""Options of the commands that make a run folder: `train` and `pretrain`."""

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Option("--out", help="Folder that holds run folders.", rich_help_panel="Output")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the run folder.", rich_help_panel="Output")]
Resume = Annotated[
    str | None,
    typer.Option("--resume", help="auto: continue the newest run of this name; or a run folder to continue."),
]
AcceptChanges = Annotated[
    bool, typer.Option("--accept-changes", help="Resume although settings have changed, such as optim.epochs.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Say what was chosen for every setting, and why; it is in the files too.")
]

OUT = Path("runs")
"""Where run folders are, unless `--out` says otherwise."""
