"""Labels as people have them: used where the meaning is clear, with a word on what was taken for what."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from protocon.data.files import kinds
from protocon.data.imageset import DataBundle
from protocon.data.labels.label_file import parse_label_table
from protocon.data.labels.similar_names import similar_classes
from protocon.data.recognise import recognise
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from protocon.runs.layout import LABEL_COLUMNS
from tests.data.images import gradient, save_png
from tests.report.folders import OLD_COLUMNS, label, write_labels, write_table

FILES = ("IMG_1.JPG", "IMG_2.jpg", "sub/IMG_3.jpeg", "sub/IMG_4.png", "IMG.5.png")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "photos"
    for i, name in enumerate(FILES):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(gradient(8, 8, shift=9 * i)).save(place / name, "PNG" if name.endswith("png") else "JPEG")
    return place


def load(root: Path, labels: str | bytes, name: str = "labels.csv") -> DataBundle:
    (root / name).write_bytes(labels.encode() if isinstance(labels, str) else labels)
    return DATASETS["folder"](SourceOptions(root=root))


def known(bundle: DataBundle) -> dict[str, str]:
    train = bundle.train
    return {name: train.class_names[label] for name, label in zip(train.ids, train.labels, strict=True) if label >= 0}


def notes(bundle: DataBundle) -> str:
    assert bundle.files is not None
    return "\n".join(bundle.files.notes)


def warnings(bundle: DataBundle) -> str:
    assert bundle.files is not None
    return "\n".join(bundle.files.warnings)


FOUR = {"IMG_1.JPG": "cat", "IMG_2.jpg": "dog", "sub/IMG_3.jpeg": "cat", "IMG.5.png": "dog"}


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (("IMG_1", "IMG_2", "sub/IMG_3", "IMG.5"), "4 file names written without the extension (IMG_1 is taken for"),
        (("img_1.jpg", "IMG_2.JPG", "SUB/img_3.JPG", "IMG.5.PNG"), "4 file names written in other capitals"),
        (
            ("photos/IMG_1.JPG", "photos/IMG_2.jpg", "photos/sub/IMG_3.jpeg", "photos/IMG.5.png"),
            "other folders in front",
        ),
        (
            ("C:\\me\\IMG_1.JPG", "C:\\me\\IMG_2.jpg", "C:\\me\\sub\\IMG_3.jpeg", "C:\\me\\IMG.5.png"),
            "4 file names written with other folders in front",
        ),
        (
            ("IMG_1.JPG", "IMG_2.jpg", "IMG_3.jpeg", "IMG.5.png"),
            "1 file name written without the folder (IMG_3.jpeg is",
        ),
        (("data/img_1", "data/img_2", "data/sub/img_3", "data/img.5"), "4 file names written with other folders"),
    ],
)
def test_names_are_understood_as_people_write_them(root: Path, names: tuple[str, ...], note: str) -> None:
    rows = "".join(f"{name},{label}\n" for name, label in zip(names, FOUR.values(), strict=True))
    bundle = load(root, "file,label\n" + rows)
    assert known(bundle) == FOUR
    assert note in notes(bundle)


def test_a_name_that_fits_several_images_is_not_guessed(root: Path) -> None:
    save_png(root / "other" / "IMG_4.png", gradient(8, 8, shift=77))
    bundle = load(root, "IMG_1.JPG,cat\nIMG_2.jpg,dog\nIMG_4.png,dog\nelse/IMG_3.jpeg,dog\n")
    assert known(bundle) == {"IMG_1.JPG": "cat", "IMG_2.jpg": "dog"}  # else/ is no folder of sub/IMG_3.jpeg
    assert "IMG_4.png could be any of other/IMG_4.png, sub/IMG_4.png" in warnings(bundle)
    assert "else/IMG_3.jpeg is not there (did you mean sub/IMG_3.jpeg?)" in warnings(bundle)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "image,species,observer\nIMG_1.JPG,cat,Ann\nIMG_2.jpg,dog,Bob\n",
            'column "species" is taken for the label, "image" for',
        ),
        (
            "observer;Image Name;species\nAnn;IMG_1.JPG;cat\nBob;IMG_2.jpg;dog\n",
            '"species" is taken for the label, "Image Name" for',
        ),
        ("photo,was\nIMG_1,cat\nIMG_2,dog\n", 'column "was" is taken for the label, "photo" for the file'),
        ("photo,what it is\nIMG_1,cat\nIMG_2,dog\n", 'column "what it is" is taken for the label'),
        ("Bild;Tier\nIMG_1;cat\nIMG_2;dog\n", 'column "Tier" is taken for the label, "Bild" for the file'),
        ("cat,IMG_1.JPG\ndog,IMG_2.jpg\n", "column 1 is taken for the label, 2 for the file"),
        (
            "bild,nr,tier,wer\n"
            + "".join(f"IMG_{1 + i % 2},{i},{'cat' if i % 2 == 0 else 'dog'},\n" for i in range(6)),
            'column "tier" is taken for the label, "bild" for the file',
        ),
    ],
)
def test_columns_are_told_by_what_is_in_them(root: Path, text: str, said: str) -> None:
    bundle = load(root, text)
    assert known(bundle) == {"IMG_1.JPG": "cat", "IMG_2.jpg": "dog"}
    assert said in notes(bundle)


def test_two_columns_that_could_both_be_the_label_are_asked_about(root: Path) -> None:
    rows = "".join(f"IMG_{1 + i % 2}.jpg,{'ab'[i % 2]},{'xy'[i // 2]}\n" for i in range(4))
    with pytest.raises(DataError, match=r'not clear which column is the label: "one", "two"\. Call it `label`'):
        load(root, "bild,one,two\n" + rows)


def test_rows_that_name_none_of_the_images_are_called_that(root: Path) -> None:
    with pytest.raises(DataError, match=r"none of its 2 rows names one of the 5 images.*'a\.png'.*'IMG\.5\.png'"):
        load(root, "file,label\na.png,cat\nb.png,dog\n")


def workbook(rows: list[list[object]], *, empty_first: bool = False) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    if empty_first:
        sheet = book.create_sheet("Labels")
    for row in rows:
        sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def test_a_workbook_is_read_like_a_csv(root: Path) -> None:
    rows: list[list[object]] = [
        ["Image", "Species", None],
        ["IMG_1.JPG", "cat", "x"],
        [],
        ["IMG_2", "dog"],
        ["IMG.5", 7],
    ]
    bundle = load(root, workbook(rows), "labels.xlsx")
    assert known(bundle) == {"IMG_1.JPG": "cat", "IMG_2.jpg": "dog", "IMG.5.png": "7"}
    assert recognise(root).name == "folder"
    (root / "labels.xlsx").unlink()
    bundle = load(root, workbook(rows, empty_first=True))  # whatever it is called
    assert "sheet Labels is read" in notes(bundle)


def test_without_openpyxl_the_message_says_what_to_install(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = workbook([["a", "b"]])
    monkeypatch.setattr("protocon.data.labels.spreadsheet.find_spec", lambda _: None)
    with pytest.raises(DataError, match=r"pip install 'protocon\[excel\]'.*save it as CSV"):
        load(root, content)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PK\x03\x04 torn", "damaged workbook"), (b"\xd0\xcf\x11\xe0 old", r"old Excel \(.xls\)")],
)
def test_workbooks_that_cannot_be_read_are_explained(root: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(root, content)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32"])
def test_an_encoding_that_cannot_be_told_is_named_as_the_trouble(root: Path, encoding: str) -> None:
    with pytest.raises(DataError, match=r"not UTF-8 text \(it has null characters\)\. Save it as UTF-8"):
        load(root, "file,label\na.jpg,x\nb.jpg,y\n".encode(encoding))


def test_labels_in_the_folder_are_found_by_their_bare_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (root / "mine.csv").write_text("IMG_1.JPG,cat\nIMG_2.jpg,dog\n")
    bundle = DATASETS["folder"](SourceOptions(root=root, labels=Path("mine.csv")))
    assert known(bundle) == {"IMG_1.JPG": "cat", "IMG_2.jpg": "dog"}
    assert bundle.files is not None
    assert [skip.path for skip in bundle.files.skipped] == ["mine.csv"]
    with pytest.raises(DataError, match=r"yours\.csv does not exist, neither here nor in"):
        DATASETS["folder"](SourceOptions(root=root, labels=Path("yours.csv")))


def test_of_a_runs_own_table_only_a_persons_labels_count(tmp_path: Path) -> None:
    """Given ones, corrected ones, changed cells, and rows to look at that were marked as accepted."""
    rows = [
        label("given", "cat", 0.9, given="cat"),
        label("corrected", "dog", 0.9, given="cat", looks_like="dog", triage="review", review_rank="1"),
        label("model", "cat", 0.99),
        label("changed", "cat", 0.5, looks_like="dog", triage="review", review_rank="2"),
        label("confirmed", "dog", 0.5, triage="accept", review_rank="3"),
        label("unseen", "dog", 0.5, triage="review", review_rank="4"),
    ]
    write_labels(tmp_path / "labels.csv", rows)
    table = parse_label_table((tmp_path / "labels.csv").read_bytes(), "labels.csv")
    used = {row.file: row.label for row in table.rows if row.label}
    assert used == {"given": "cat", "corrected": "dog", "changed": "cat", "confirmed": "dog"}
    assert "1 given, 1 corrected, 1 added, 1 confirmed" in table.notes[0]
    assert len(table.rows) == 6
    again = (tmp_path / "labels.csv").read_text(encoding="utf-8-sig").replace(",", ";")  # through a German Excel
    table = parse_label_table(again.encode("utf-8-sig"), "labels.csv")
    assert {row.file: row.label for row in table.rows if row.label} == used
    write_table(tmp_path / "old.csv", OLD_COLUMNS, rows)
    table = parse_label_table((tmp_path / "old.csv").read_bytes(), "old.csv")
    assert {row.file: row.label for row in table.rows if row.label} == {"given": "cat", "corrected": "cat"}


def test_the_columns_of_our_table_are_the_ones_we_recognise() -> None:
    text = io.StringIO()
    csv.writer(text).writerow(LABEL_COLUMNS)
    table = parse_label_table(text.getvalue().encode(), "labels.csv")
    assert "own table" in table.notes[0]


@pytest.mark.parametrize(
    ("names", "one"),
    [
        (("Butterfly", "buterfly", "butterflies", "moth"), "Butterfly (1), buterfly (1), butterflies (1)"),
        (("sea lion", "Sea_Lion"), "sea lion (1), Sea_Lion (1)"),
        (("boxes", "box", "cats"), "boxes (1), box (1)"),
        (("zebra", "zerba"), "zebra (1), zerba (1)"),
        (("cat", "bat", "house", "mouse", "type 1", "type 2", "10", "100", "grass", "bus"), None),
    ],
)
def test_classes_that_may_be_one_are_named_with_counts(names: tuple[str, ...], one: str | None) -> None:
    lines = similar_classes(names, [1] * len(names))
    assert len(lines) == (0 if one is None else 1)
    assert one is None or one in lines[0]


def test_similar_classes_are_warned_of_in_tables_and_folders(root: Path, tmp_path: Path) -> None:
    bundle = load(root, "IMG_1,Cat\nIMG_2,cat\nIMG_4,cat\n")
    assert "classes that may be one, with their labels: Cat (1), cat (2)" in warnings(bundle)
    for number, name in enumerate(("finch", "Finches")):
        save_png(tmp_path / "sorted" / name / "1.png", gradient(8, 8, shift=number))
    assert "Finches (1), finch (1)" in warnings(DATASETS["imagefolder"](SourceOptions(root=tmp_path / "sorted")))


@pytest.mark.parametrize("kind", ["heic", "avif"])
def test_photographs_of_phones_are_read(kind: str, tmp_path: Path) -> None:
    if kind == "heic":
        pytest.importorskip("pillow_heif").register_heif_opener()
    if f".{kind}" not in kinds.readable_suffixes():
        pytest.skip(f"nothing here reads {kind}")
    picture = np.zeros((64, 64, 3), dtype=np.uint8)
    picture[..., 0] = 200
    for number in range(3):
        Image.fromarray(picture + 9 * np.uint8(number)).save(
            tmp_path / f"{number}.{kind.upper()}", "HEIF" if kind == "heic" else "AVIF"
        )
    bundle = DATASETS["folder"](SourceOptions(root=tmp_path, labels=_labels(tmp_path, kind)))
    assert len(bundle.train) == 3
    pixels = bundle.train.read(np.array([0]))[0].float().mean((1, 2))
    assert pixels[0] > 180
    assert pixels[1] < 30


def _labels(root: Path, kind: str) -> Path:
    (root / "labels.csv").write_text(f"0.{kind},a\n1.{kind},b\n")
    return root / "labels.csv"


def test_what_is_not_read_has_a_line_of_its_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.heic", "b.CR2", "c.NEF", "clip.mov", "scan"):
        (root / name).write_bytes(b"x")
    monkeypatch.setattr(kinds, "heic_is_readable", lambda: False)
    kinds.readable_suffixes.cache_clear()
    try:
        bundle = load(root, "IMG_1,cat\nIMG_2,dog\n")
    finally:
        kinds.readable_suffixes.cache_clear()
    said = warnings(bundle)
    assert "1 file not read (HEIC photo; a.heic): to read it, pip install 'protocon[heic]'" in said
    assert "2 files not read (RAW photo; b.CR2): convert it to JPEG or TIFF" in said
    assert "1 file not read (not an image but a video; clip.mov)" in said
    assert "1 file not read (not an image by its name; scan): rename it" in said
    assert bundle.files is not None
    assert "1 HEIC photo" in bundle.files.summary()
