"""A job of several processes that are forks of one which has imported everything, and computed nothing.

It does for them what torchrun does: ranks, an address to meet at, and the end of all where one fails. What is tested is
what the processes do together; that torchrun starts them is tested by the job whose process is killed.
"""

import os
import signal
import socket
import sys
import time
from pathlib import Path

from tests.distributed.worker import PARTS

PATIENCE_SECONDS = 8


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def be(rank: int, processes: int, port: int, arguments: list[str]) -> None:
    """Do the work of one process, and end it."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(processes),
        "LOCAL_WORLD_SIZE": str(processes),
        "GROUP_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "forks",  # by which Fabric knows that ranks are given
    }
    code = 1
    try:
        part, data, out = arguments
        PARTS[part](Path(data), Path(out))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(processes: int, arguments: list[str]) -> int:
    """Fork, and wait; where one fails, the others have a few seconds to say so. Returns the first failure's code."""
    port = free_port()
    running: set[int] = set()
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            be(rank, processes, port, arguments)
        running.add(child)
    failed, since = 0, 0.0
    while running:
        ended, status = os.waitpid(-1, os.WNOHANG if failed else 0)
        if ended:
            running.discard(ended)
            code = os.waitstatus_to_exitcode(status)
            failed, since = (failed, since) if failed or not code else (code, time.monotonic())
        elif time.monotonic() - since > PATIENCE_SECONDS:
            for other in running:
                os.kill(other, signal.SIGKILL)
        else:
            time.sleep(0.05)
    return failed
