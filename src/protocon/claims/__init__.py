"""The paper's claims as experiments: each with its runs, its effects with intervals, and a verdict."""
