"""The training loop, its checkpoints and its log."""
