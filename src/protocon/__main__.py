"""Entry point of the command line and of `torchrun … -m protocon`."""

import os

# Before torch is loaded: threads that wait for each other sleep instead of spinning. On a machine that does something
# else too, spinning threads keep the ones they wait for off the cores, and small networks train many times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def main() -> None:
    """Run the command line."""
    from protocon.cli import main as run

    run()


if __name__ == "__main__":
    main()
