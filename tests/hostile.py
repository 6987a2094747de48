"""A folder with everything in it that real folders have, and the line that each item should get."""

import os
from pathlib import Path

import numpy as np
from PIL import Image

from tests.engine.layouts import picture

GOOD = {
    "with space.png": 0,
    "comma, name.png": 1,
    "новый ☃.png": 0,
    "two\nlines.png": 1,
    "sub/folder/deep.png": 0,
    os.fsdecode(b"not utf-8 \xff.png"): 1,
}
"""Names that hurt, each a good picture of a class."""

SKIPPED = {
    "empty.jpg": "empty file",
    "truncated.jpg": "cannot be decoded",
    "text.jpg": "is not an image",
    "huge.png": "too many pixels",
    "notes.txt": "not an image (.txt)",
    ".hidden.png": "hidden file",
    ".cache/x.png": "hidden file",
    "loop": "link to a folder that it lies in",
    "itself.png": "broken link",
    "labels.csv": "the labels file",
}
"""What cannot be used, and why."""

ODD = {
    "animated.gif": "animation of 3 frames; the first is used",
    "dot.png": "has only 1 × 1 pixels; it is enlarged",
    "huge.jpg": "decoded at a reduced size",
}
"""What is used, with a word."""

LABELS = [
    "with space.png,red",
    "with spade.png,red",
    '"comma, name.png",blue',
    "новый ☃.png,red",
    '"two\nlines.png",blue',
    "000.png,red",
    "000.png,red",
    "100.png,blue",
    "001.png,red",
    "001.png,blue",
    "truncated.jpg,blue",
    "../outside.png,red",
    "missing.png,red",
    "animated.gif,green",
]
WARNINGS = {
    "with spade.png is not there (did you mean with space.png?)": "wrong letter",
    "001.png has different labels: red (line 11), blue (line 12); it counts as unlabelled": "conflict",
    "1 row repeats another": "repeat",
    "truncated.jpg has the label blue, but the file cannot be decoded": "label of a damaged file",
    "../outside.png points out of the folder": "outside",
    "missing.png is not there": "missing",
    "class green has one label (animated.gif)": "single label",
}
"""Parts of lines that the labels file should get."""


def write_hostile(root: Path) -> None:
    """Make the folder."""
    root.mkdir(parents=True)
    for number, (name, label) in enumerate(GOOD.items()):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(label, 400 + number)).save(root / name)
    for number in range(10):
        Image.fromarray(picture(0, number)).save(root / f"{number:03}.png")
        Image.fromarray(picture(1, number)).save(root / f"{100 + number}.png")
    (root / "empty.jpg").touch()
    whole = Image.fromarray(np.repeat(np.repeat(picture(0, 77), 8, 0), 8, 1))
    whole.save(root / "truncated.jpg")
    data = (root / "truncated.jpg").read_bytes()
    (root / "truncated.jpg").write_bytes(data[: len(data) // 2])
    (root / "text.jpg").write_text("this is no picture")
    (root / "notes.txt").write_text("remember")
    Image.new("1", (20_000, 20_000)).save(root / "huge.png")
    Image.new("L", (12_000, 9_000), 90).save(root / "huge.jpg", quality=20)
    frames = [Image.fromarray(picture(0, 500 + i)) for i in range(3)]
    frames[0].save(root / "animated.gif", save_all=True, append_images=frames[1:])
    Image.new("RGB", (1, 1), (9, 200, 9)).save(root / "dot.png")
    (root / ".cache").mkdir()
    for name in (".hidden.png", ".cache/x.png"):
        Image.fromarray(picture(0, 600)).save(root / name)
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "itself.png").symlink_to(root / "itself.png")
    (root / "copy of 000.png").write_bytes((root / "000.png").read_bytes())
    Image.open(root / "100.png").save(root / "copy of 100.bmp")
    (root / "labels.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(["file,label", *LABELS]).encode())


def every_file(root: Path) -> set[str]:
    """All files and links below a folder, as a listing that does not follow links to folders has them."""
    found = set()
    for folder, folders, files in os.walk(root):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found |= {str((Path(folder) / name).relative_to(root)) for name in (*files, *links)}
    return found
