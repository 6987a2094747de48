"""Entry point of the command line and of `torchrun … -m protocon`."""

from protocon.cli import main

if __name__ == "__main__":
    main()
