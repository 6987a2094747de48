"""Entry point of the command line and of `torchrun … -m protocon`."""

from protocon.base.allocator import restart_to_keep_memory


def main() -> None:
    """Run the command line in a process that is all ours."""
    restart_to_keep_memory()  # before anything large is imported
    from protocon import cli

    cli.main()


if __name__ == "__main__":
    main()
