"""Labelling from Python: the same page, in a notebook's frame or in a browser."""

from collections.abc import Sequence
from pathlib import Path

from protocon.labeller.server import Labeller


def label(
    folder: str | Path,
    *,
    classes: Sequence[str] = (),
    settings: Sequence[str] = (),
    who: str | None = None,
    out: str | Path = "runs",
    port: int = 0,
) -> Labeller:
    """Start `protocon label` in the background. As the last line of a notebook's cell it shows the page.

    Args:
        folder: of images; labels.jsonl and labels.csv are kept in it.
        classes: names of classes to begin with.
        settings: of the encoder, as `key=value`.
        who: answers; by default the user of this computer.
        out: folder for full runs.
        port: 0 takes any that is free.

    Returns:
        The running server: `url`, `labels()`, `stop()`.

    Examples:
        Two pictures, and nothing labelled yet:

        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from protocon import label
        >>> folder = Path("pictures")
        >>> folder.mkdir()
        >>> for name in ("black", "white"):
        ...     Image.new("RGB", (32, 32), name).save(folder / f"{name}.png")
        >>> page = label(folder, classes=["cat", "dog"])
        >>> page.url.startswith("http://127.0.0.1:"), page.labels()
        (True, {})
        >>> page.stop()
    """
    labeller = Labeller(
        Path(folder), classes=classes, settings=settings, who=who, out=Path(out), port=port, framed=True
    )
    return labeller.start()
