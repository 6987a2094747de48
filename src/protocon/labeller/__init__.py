"""Labelling in the browser: a page on this machine that learns while somebody answers."""
