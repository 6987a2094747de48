"""LABEL_FORMATS: accepted labels as other programs read them. A new one is one function and one line here."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from protocon.base.atomic import write_bytes
from protocon.errors import RunError
from protocon.export.labelled_images import LabelledImages, flat_names, labelled_images, place


def class_folders(found: LabelledImages, out: Path) -> None:
    """out/CLASS/IMAGE, as torchvision, Keras and `protocon` itself read it."""
    folders = {name: _folder_name(name) for name in found.class_names}
    if len({name.lower() for name in folders.values()}) < len(folders):
        raise RunError(f"classes cannot be told apart as folders: {', '.join(folders.values())}. Rename one of them")
    for image, name in zip(found.images, flat_names(found.images), strict=True):
        place(image.path, out / folders[image.label] / name)


def _folder_name(name: str) -> str:
    """A class's name as a folder's: nothing in it leads elsewhere."""
    safe = "".join("_" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in name).strip(". ")
    return safe or "_"


def hugging_face(found: LabelledImages, out: Path) -> None:
    """Images with metadata.csv (file_name, label): `datasets.load_dataset("imagefolder", data_dir=out)`."""
    names = flat_names(found.images)
    for image, name in zip(found.images, names, strict=True):
        place(image.path, out / name)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(("file_name", "label"))
    writer.writerows((name, image.label) for image, name in zip(found.images, names, strict=True))
    write_bytes(out / "metadata.csv", text.getvalue().encode("utf-8", "surrogateescape"))


def label_studio(found: LabelledImages, out: Path) -> None:
    """tasks.json and labels.xml for Label Studio, images served from disk.

    Its document root is the folder above the images: it serves none that lie in the document root itself. Given labels
    become annotations, the model's become predictions with their score.
    https://labelstud.io/guide/predictions, https://labelstud.io/guide/storage (local files).
    """
    tasks = []
    for image in found.images:
        choice = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [image.label]}}
        task: dict[str, Any] = {"data": {"image": f"/data/local-files/?d={quote(f'{found.root.name}/{image.file}')}"}}
        if image.given:
            task["annotations"] = [{"result": [choice]}]
        else:
            task["predictions"] = [{"model_version": "protocon", "score": image.confidence, "result": [choice]}]
        tasks.append(task)
    choices = "".join(f"    <Choice value={_attribute(name)}/>\n" for name in found.class_names)
    view = (
        '<View>\n  <Image name="image" value="$image"/>\n  <Choices name="label" toName="image" choice="single">\n'
        f"{choices}  </Choices>\n</View>\n"
    )
    write_bytes(out / "tasks.json", (json.dumps(tasks, indent=1) + "\n").encode())
    write_bytes(out / "labels.xml", view.encode("utf-8", "replace"))


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(text)


def fiftyone(found: LabelledImages, out: Path) -> None:
    """data/ and labels.json: FiftyOne's FiftyOneImageClassificationDataset."""
    names = flat_names(found.images)
    numbers = {name: number for number, name in enumerate(found.class_names)}
    labels = {Path(name).stem: numbers[image.label] for image, name in zip(found.images, names, strict=True)}
    for image, name in zip(found.images, names, strict=True):
        place(image.path, out / "data" / name)
    write_bytes(
        out / "labels.json", (json.dumps({"classes": list(numbers), "labels": labels}, indent=1) + "\n").encode()
    )


LABEL_FORMATS: dict[str, Callable[[LabelledImages, Path], None]] = {
    "folders": class_folders,
    "huggingface": hugging_face,
    "label-studio": label_studio,
    "fiftyone": fiftyone,
}
"""Name → what writes it into a new folder."""


def export_labels(run: str | Path, *, file_format: str, out: str | Path | None = None) -> dict[str, Any]:
    """Write the labels of a run that can be taken, with their images, for another program.

    Args:
        run: folder of a finished run on a folder of images.
        file_format: one of `LABEL_FORMATS`.
        out: the folder to make; by default `labels-FORMAT` in the run folder. Never overwritten.
    """
    found = labelled_images(Path(run))
    target = Path(out) if out is not None else Path(run) / f"labels-{file_format}"
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{target} exists already; give another name with --out, or remove it")
    try:
        target.mkdir(parents=True, exist_ok=True)
        LABEL_FORMATS[file_format](found, target)
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror or error}") from error
    return {
        "run": str(run),
        "format": file_format,
        "folder": str(target),
        "images": len(found.images),
        "given": sum(image.given for image in found.images),
        "left_out": found.left_out,
        "unchecked": found.unchecked,
        "class_names": list(found.class_names),
        "root": str(found.root),
    }
