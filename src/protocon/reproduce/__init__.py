"""The paper's tables as runs: each cell with its recipe, estimate, state and difference from the paper's figure."""
