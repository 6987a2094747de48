"""Run folders, and the trained network in them."""
