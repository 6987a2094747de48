"""Which images are most worth labelling, and a model that is quick enough to learn from every answer."""
