"""From settings to everything that a run is made of."""
