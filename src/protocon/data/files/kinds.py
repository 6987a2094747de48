"""Which files are images that can be read here, told by the end of their names; and why others are not."""

from functools import cache
from importlib.util import find_spec

from PIL import features

_ALWAYS = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
_HEIC = {".heic", ".heif", ".hif"}
_AVIF = {".avif"}
_RAW = {f".{name}" for name in "cr2 cr3 crw nef nrw arw srf sr2 dng orf rw2 raf pef srw 3fr erf raw".split()}  # noqa: SIM905
_VIDEO = {f".{name}" for name in "mp4 mov m4v avi mkv webm mpg mpeg wmv 3gp mts m2ts".split()}  # noqa: SIM905

PERHAPS_PICTURES = ("HEIC", "AVIF", "RAW", "not an image but a video", "not an image by its name")
"""How reasons begin that deserve a line of their own: somebody may have meant these files."""


def heic_is_readable() -> bool:
    """Whether iPhones' photographs can be decoded."""
    return find_spec("pillow_heif") is not None


@cache
def readable_suffixes() -> frozenset[str]:
    """Ends of the names of files that can be decoded."""
    found = set(_ALWAYS)
    if heic_is_readable():
        found |= _HEIC
    if features.check("avif"):
        found |= _AVIF
    return frozenset(found)


def why_not_read(suffix: str) -> str:
    """Why a file whose name ends like this is not used; empty for images that can be decoded."""
    if suffix in readable_suffixes():
        return ""
    if suffix in _HEIC:
        return f"HEIC photo ({suffix}): to read it, pip install 'protocon[heic]', or convert it to JPEG"
    if suffix in _AVIF:
        return f"AVIF image ({suffix}): to read it, install a Pillow of version 11.3 or newer, or convert it to PNG"
    if suffix in _RAW:
        return f"RAW photo ({suffix}): convert it to JPEG or TIFF"
    if suffix in _VIDEO:
        return f"not an image but a video ({suffix})"
    if not suffix:
        return "not an image by its name (no extension): rename it if it is one, to .jpg or the like"
    return f"not an image ({suffix})"
