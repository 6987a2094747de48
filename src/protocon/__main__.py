"""Entry point of the command line and of `torchrun … -m protocon`."""

import atexit
import gc
import os
import sys
import warnings
from pathlib import Path

from protocon.base.allocator import restart_to_keep_memory
from protocon.base.leave import leave

_AT_ONCE = {"--help", "--version", "--install-completion", "--show-completion"}

_PROGRAMS = {"protocon", "__main__"}
"""What this program is called when it is started by its name or by `python -m`."""

_WHOLE_NETWORK = {"--from-scratch", "--fine-tune", "--recipe", "--encoder", "network.frozen=false"}


def main() -> None:
    """Run the command line in a process that is all ours."""
    if not answers_at_once(sys.argv[1:]) and not keeps_encoder(sys.argv[1:]):
        restart_to_keep_memory()  # before anything large is imported
    start_no_blas_threads(sys.argv[1:])
    silence_libraries(sys.argv[1:])
    collect_seldom()
    atexit.register(leave_garbage)
    from protocon import cli

    try:
        cli.main()
    except SystemExit as end:
        if Path(sys.argv[0]).stem in _PROGRAMS:  # not within another program, which goes on
            leave(end.code)
        raise


def start_no_blas_threads(arguments: list[str]) -> None:
    """Let NumPy's BLAS start no threads where heads are trained, unless the user says how many there are to be.

    Such a run multiplies on one, for the same sums on every machine; others would only be started to wait.
    """
    if arguments[:1] == ["train"] and keeps_encoder(arguments):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def collect_seldom() -> None:
    """Let Python look for circular garbage a hundred times less often.

    The import of PyTorch makes a million objects that stay. To look through them again and again takes a fifth of it.
    """
    gc.set_threshold(100_000, 20, 20)


def leave_garbage() -> None:
    """Look for no garbage when the process ends, and its memory with it: that takes as long again.

    Triton would complain of what is left; with it, garbage is collected.
    """
    if "triton" not in sys.modules:
        gc.freeze()


def silence_libraries(arguments: list[str]) -> None:
    """No warnings of other libraries on the screen: they are for those who develop, and --debug or -W shows them.

    What a user should know, our commands say themselves.
    """
    if "--debug" not in arguments and not sys.warnoptions and "PYTHONWARNINGS" not in os.environ:
        warnings.simplefilter("ignore")


def answers_at_once(arguments: list[str]) -> bool:
    """Whether a command holds no tensors, so that another start of Python would only make it slower."""
    completes = "_PROTOCON_COMPLETE" in os.environ
    return completes or arguments[:1] in ([], ["recipes"]) or not _AT_ONCE.isdisjoint(arguments)


def keeps_encoder(arguments: list[str]) -> bool:
    """Whether a run seems to train heads alone, whose tensors are small: another start would only make it slower.

    A folder of one's own gets an encoder that stays as it is, unless a word says otherwise. A wrong guess costs a few
    seconds, no more.
    """
    if "--frozen" in arguments:
        return True
    own = arguments[:1] == ["train"] and len(arguments) > 1 and os.path.exists(arguments[1])  # noqa: PTH110
    return own and _WHOLE_NETWORK.isdisjoint(arguments)


if __name__ == "__main__":
    main()
