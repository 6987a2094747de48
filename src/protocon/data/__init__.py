"""What to learn from: sources, label splits, and the order in which images are seen."""
