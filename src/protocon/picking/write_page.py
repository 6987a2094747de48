"""picks.html: one page with the pictures of the picks that needs nothing but a browser."""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from protocon.base.atomic import write_bytes
from protocon.data.imageset import ImageSet
from protocon.picking.pick_folder import PickedImage
from protocon.report.thumbnails import thumbnails

_BYTES = 20_000_000
"""For all pictures together; picks beyond it are listed by name."""
_SIDE = 192


def write_page(path: Path, picks: Sequence[PickedImage], images: ImageSet, *, known: int, title: str) -> None:
    """Write the page.

    Args:
        path: of the file.
        picks: best first.
        images: where the pictures come from.
        known: labels that were there already.
        title: what the images are called.
    """
    pictures = thumbnails(images, [pick.file for pick in picks], budget=_BYTES, side=_SIDE)
    environment = Environment(
        loader=PackageLoader("protocon.picking"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("picks.html.j2").render(
        picks=[(pick, pictures.get(pick.file, "")) for pick in picks], total=len(images), known=known, title=title
    )
    # A file name that is not valid UTF-8 must not keep the page from being written.
    write_bytes(path, page.encode("utf-8", "replace"))
