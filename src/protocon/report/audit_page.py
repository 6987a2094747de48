"""The images of an audit on one page, without a word on what the model thinks of them."""

from protocon.report.audit_estimate import Drawn
from protocon.report.page import templates
from protocon.report.record import Record
from protocon.report.tiles import Images, plain_tiles

_BYTES = 4_000_000
"""For all pictures of the page together."""


def build_audit_page(record: Record, drawn: Drawn, images: Images) -> str:
    """One HTML page of the drawn images, in their order.

    Args:
        record: of the run.
        drawn: the images.
        images: gives the run's training images.
    """
    tiles, missing = plain_tiles(record, drawn.names, images, _BYTES)
    page = (
        templates()
        .get_template("audit.html.j2")
        .render(run=record.path.name, tiles=tiles, missing=missing, classes=drawn.table.class_names)
    )
    return page.encode("utf-8", "replace").decode()
