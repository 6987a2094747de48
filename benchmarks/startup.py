"""How quickly the command line answers where there is nothing to compute: help, version, recipes, a completion.

    python benchmarks/startup.py [--quick]

prints one JSON object. Every command runs in a process of its own, in turn with the others; figures are medians over
rounds of the time until it ends, of its CPU time, and its peak memory. Where other things run on the machine, the CPU
time is the one to look at.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from rich.console import Console

COMMANDS: dict[str, tuple[list[str], dict[str, str]]] = {
    "version": (["--version"], {}),
    "help": (["--help"], {}),
    "train_help": (["train", "--help"], {}),
    "recipes": (["recipes"], {}),
    "completion": (
        [],
        {"_PROTOCON_COMPLETE": "complete_bash", "COMP_WORDS": "protocon train --method fix", "COMP_CWORD": "3"},
    ),
}


def measure(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Seconds and CPU seconds of a command, and its peak memory in MiB."""
    clean = {key: value for key, value in os.environ.items() if key != "PROTOCON_ALLOCATOR"}
    command = [sys.executable, "-m", "protocon", *arguments]
    started = time.monotonic()
    with subprocess.Popen(command, env=clean | environment, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"protocon {' '.join(arguments)} ended with exit code {process.returncode}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / unit


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five rounds: ten seconds")
    rounds = 5 if parser.parse_args().quick else 25
    console = Console(stderr=True)
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in COMMANDS}
    for number in range(rounds + 1):
        for name, (arguments, environment) in COMMANDS.items():
            found = measure(arguments, environment)
            if number:  # the first fills the caches of files
                taken[name].append(found)
        console.print(f"round {number} of {rounds}", highlight=False)
    result: dict[str, float | str] = {}
    for name, rows in taken.items():
        seconds, cpu, memory = (statistics.median(column) for column in zip(*rows, strict=True))
        result |= {f"{name}_s": round(seconds, 3), f"{name}_cpu_s": round(cpu, 3), f"{name}_mib": round(memory, 1)}
    load = round(os.getloadavg()[0], 1)  # of the machine: far above 0, seconds are not its own
    print(json.dumps({**result, "rounds": rounds, "load": load, "python": sys.version.split()[0]}))


if __name__ == "__main__":
    main()
