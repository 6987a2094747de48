"""A label for every image, how far to trust it, and the files that say so."""
