"""The training loop and what surrounds it: optimiser, checkpoints, evaluation, run folders."""
