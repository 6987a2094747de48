"""Views on a CPU in one pass per image, compiled by numba; the torch versions beside them make dozens of passes.

Optional (`pip install protocon[fast]`). The torch versions are the definition, and the only ones on accelerators; the
tests hold these to them: level for level where operations are on 8-bit pixels, to rounding where they are on floats.
"""
