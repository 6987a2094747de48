"""Encoder f, classifier g, projector h; and their averaged copy."""
