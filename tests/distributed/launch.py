"""Start the worker in two real processes that talk over gloo, with torchrun. As forks: `Zygote.job`."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LIMIT_SECONDS = 240


@dataclass(frozen=True)
class Ended:
    """A job that has ended."""

    code: int
    text: str
    """Standard output and error of torchrun and all processes."""
    at: float
    """When, in seconds of `time.time`."""


def torchrun(part: str, data: Path, out: Path, *options: str, processes: int = 2) -> Ended:
    """Run a part of the worker in this many processes; `options` are torchrun's."""
    launcher = ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", *options]
    worker = Path(__file__).with_name("worker.py")
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", *launcher, str(worker), part, str(data), str(out)],
        cwd=_ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout, time.time())
