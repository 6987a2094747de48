"""One's own folder with labels.csv."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from protocon.data.imageset import DataBundle
from protocon.data.labels.label_file import read_label_rows, read_label_table, sorted_names
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError
from tests.data.images import gradient, save_png


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for i, name in enumerate(("1.png", "2.png", "sub/3.png", "sub/deep/4, really.png", "5.png")):
        save_png(tmp_path / name, gradient(8, 8, shift=9 * i))
    return tmp_path


def load(root: Path, text: str | bytes, **options: object) -> DataBundle:
    (root / "labels.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    return DATASETS["folder"](SourceOptions(root=root, **options))  # type: ignore[arg-type]


def known(bundle: DataBundle) -> dict[str, str]:
    train = bundle.train
    return {name: train.class_names[label] for name, label in zip(train.ids, train.labels, strict=True) if label >= 0}


EXPECTED = {"1.png": "cat", "sub/3.png": "dog", "sub/deep/4, really.png": "cat"}


@pytest.mark.parametrize(
    "text",
    [
        'file,label\n1.png,cat\nsub/3.png,dog\n"sub/deep/4, really.png",cat\n',
        '1.png,cat\nsub/3.png,dog\n"sub/deep/4, really.png",cat',
        b'\xef\xbb\xbffile,label\r\n1.png,cat\r\n\r\nsub/3.png,dog\r\n"sub/deep/4, really.png",cat\r\n',
        'label;filename\ncat;1.png\ndog;sub/3.png\ncat;"sub/deep/4, really.png"\n',
        "File\tsource\tClass\n1.png\tx\tcat\n./sub/3.png\ty\tdog\nsub/deep/4, really.png\tz\tcat\n",
        'file, label\n 1.png , cat\nsub\\3.png, "dog"\n"sub/deep/4, really.png", cat\n',
        'file,label\n1.png,cat\n1.png,cat\nsub/3.png,dog\n"sub/deep/4, really.png",cat\n5.png,\n',
    ],
    ids=[
        "heading",
        "bare",
        "bom-crlf",
        "semicolon-swapped",
        "tabs",
        "spaces-backslash",
        "duplicate-and-empty",
    ],
)
def test_labels_are_read_however_they_are_written(root: Path, text: str | bytes) -> None:
    bundle = load(root, text)
    assert known(bundle) == EXPECTED
    assert (len(bundle.train), bundle.train.class_names, bundle.test) == (5, ("cat", "dog"), None)
    assert bundle.files is not None
    assert [(skip.path, skip.reason) for skip in bundle.files.skipped] == [("labels.csv", "the labels file")]


def test_the_pixels_belong_to_the_named_files(root: Path) -> None:
    train = load(root, "1.png,cat\nsub/3.png,dog\n").train
    place = list(train.ids).index("sub/3.png")
    np.testing.assert_array_equal(train.read(np.array([place]))[0].permute(1, 2, 0).numpy(), gradient(8, 8, shift=18))


def test_the_labels_file_may_lie_elsewhere(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("other") / "mine.csv"
    path.write_text(f"{root / '1.png'},cat\nsub/3.png,dog\n")
    bundle = DATASETS["folder"](SourceOptions(root=root, labels=path))
    assert known(bundle) == {"1.png": "cat", "sub/3.png": "dog"}


def test_accents_match_however_they_are_encoded(root: Path) -> None:
    save_png(root / "cafe\u0301.png")  # as a Mac stores it
    assert known(load(root, "caf\u00e9.png,cat\n1.png,dog\n"))["cafe\u0301.png"] == "cat"


def test_numbers_as_labels_are_in_their_order(root: Path) -> None:
    assert load(root, "1.png,10\n2.png,9\n5.png,-1\n").train.class_names == ("9", "10")  # −1: unknown
    assert sorted_names({"b10", "b9", "a", "10", "9"}) == ("9", "10", "a", "b9", "b10")


def test_a_test_fraction_takes_only_labelled_images(root: Path) -> None:
    bundle = load(root, "1.png,cat\n2.png,cat\nsub/3.png,dog\n5.png,dog\n", test_fraction=0.5)
    assert bundle.test is not None
    assert sorted(bundle.test.labels.tolist()) == [0, 1]
    assert "sub/deep/4, really.png" in bundle.train.ids


def warnings(bundle: DataBundle) -> tuple[str, ...]:
    assert bundle.files is not None
    return bundle.files.warnings


def test_conflicting_labels_are_set_aside_and_named_with_their_lines(root: Path) -> None:
    bundle = load(root, "file,label\n1.png,cat\n2.png,dog\n./1.png,dog\n5.png,cat\nsub/3.png,cat\nsub/3.png,\n")
    assert known(bundle) == {"2.png": "dog", "5.png": "cat", "sub/3.png": "cat"}  # no label says nothing against cat
    assert len(bundle.train) == 5
    conflict, repeats, single = warnings(bundle)
    assert conflict == ("labels.csv: 1.png has different labels: cat (line 2), dog (line 4); it counts as unlabelled")
    assert repeats == "labels.csv: 1 row repeats another; nothing is lost"
    assert single == "labels.csv: class dog has one label (2.png); two or more are safer"


def test_labels_of_missing_files_are_named_with_a_guess(root: Path) -> None:
    (root / "notes.txt").write_text("x")
    text = "1.png,cat\nsup/3.png,dog\n2.pngg,dog\n55.png,dog\nnotes.txt,cat\nzzzzzz.png,cat\n2.png,dog\n"
    text += "../1.png,cat\n/etc/x.png,cat\n"
    bundle = load(root, text)
    assert known(bundle) == {"1.png": "cat", "2.png": "dog"}
    said = [line.partition("labels.csv, ")[2] for line in warnings(bundle)]
    assert said[:7] == [
        "line 2: sup/3.png is not there (did you mean sub/3.png?); its label 'dog' is not used",
        "line 3: 2.pngg is not there (did you mean 2.png?); its label 'dog' is not used",
        "line 4: 55.png is not there (did you mean 5.png?); its label 'dog' is not used",
        "line 5: notes.txt is not used: not an image (.txt); its label 'cat' is not used",
        "line 6: zzzzzz.png is not there; its label 'cat' is not used",
        "line 8: ../1.png points out of the folder; its label 'cat' is not used",
        "line 9: /etc/x.png points out of the folder; its label 'cat' is not used",
    ]

    bundle = load(root, "1.png,cat\n2.png,dog\n8.png,cat\n")
    assert "8.png is not there; its label" in warnings(bundle)[0]  # a camera's next number is another photo


def test_classes_with_one_label_share_a_line(root: Path) -> None:
    bundle = load(root, "1.png,cat\n2.png,dog\n5.png,bird\n")
    assert warnings(bundle) == ("labels.csv: 3 classes have one label each (bird, cat, dog); two or more are safer",)


def test_rows_that_make_no_sense_are_set_aside(root: Path) -> None:
    bundle = load(root, "1.png,cat\n2.png,dog\nsub/deep/4, really.png,cat\nsub/3.png,dog\n5.png,cat\n")
    assert known(bundle) == {"1.png": "cat", "2.png": "dog", "sub/3.png": "dog", "5.png": "cat"}
    assert "line 3: 3 columns; expected two" in warnings(bundle)[0]


def test_labels_of_damaged_files_are_lost_with_a_word(root: Path) -> None:
    (root / "broken.png").write_bytes((root / "1.png").read_bytes()[:60])
    (root / "gone.png").write_text("text")
    bundle = load(root, "1.png,cat\n2.png,dog\nbroken.png,cat\ngone.png,bird\n")
    assert bundle.train.class_names == ("cat", "dog")
    text = "\n".join(warnings(bundle))
    assert "broken.png has the label cat, but the file cannot be decoded" in text
    assert "class bird: none of its labelled images can be used; it is left out" in text
    assert bundle.files is not None
    assert bundle.files.total == bundle.files.used + 3 == 8
    with pytest.raises(DataError, match=r"only 1 class has labelled images.*Without any: bird"):
        load(root, "1.png,cat\ngone.png,bird\n")


def test_names_that_hurt(root: Path) -> None:
    names = [
        "with space.png",
        "a,b.png",
        "новый ☃.png",
        "two\nlines.png",
        'quote".png',
        "-1.png",
        os.fsdecode(b"\xff.png"),
    ]
    for number, name in enumerate(names):
        save_png(root / name, gradient(8, 8, shift=60 + number))
    rows = "".join(
        '"' + name.replace('"', '""') + f'",{"cat" if i % 2 else "dog"}\n' for i, name in enumerate(names[:-1])
    )
    assert set(known(load(root, rows))) == set(names[:-1])
    bundle = load(root, "1.png,cat\n2.png,dog\n" + rows.replace("two\nlines", "two\nlinez"))
    assert "two\\nlinez.png is not there (did you mean two\\nlines.png?)" in warnings(bundle)[0]
    assert all(line.isprintable() for line in warnings(bundle))
    assert names[-1] in bundle.train.ids


def test_excels_unicode_text(root: Path) -> None:
    assert known(load(root, "file\tlabel\r\n1.png\tchat noir\r\n2.png\tça\r\n".encode("utf-16"))) == {
        "1.png": "chat noir",
        "2.png": "ça",
    }


def test_names_with_commas_between_semicolons(root: Path) -> None:
    assert known(load(root, "sub/deep/4, really.png;cat\n1.png;dog\n")) == {
        "sub/deep/4, really.png": "cat",
        "1.png": "dog",
    }


def test_a_zip_with_its_labels_inside_or_outside(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (root / "labels.csv").write_text("1.png,cat\nsub/3.png,dog\n")
    other = tmp_path_factory.mktemp("zip")
    archive = Path(shutil.make_archive(str(other / "photos"), "zip", root.parent, root.name))
    inside = DATASETS["folder"](SourceOptions(root=archive))
    assert known(inside) == {"1.png": "cat", "sub/3.png": "dog"}
    assert inside.files is not None
    assert [(s.path, s.reason) for s in inside.files.skipped] == [("labels.csv", "the labels file")]
    (other / "mine.csv").write_text("1.png,cat\n2.png,dog\n")
    outside = DATASETS["folder"](SourceOptions(root=archive, labels=other / "mine.csv"))
    assert known(outside) == {"1.png": "cat", "2.png": "dog"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"labels\.csv is empty"),
        ("1.png,cat\n2.png,cat\n", r"names 1 class \(cat\); expected at least two"),
        ("file,label\n1.png,\n", "names 0 classes .no label is filled in"),
        ("1.png,cat\nsub/deep/4, really.png,cat\n", "line 2: 3 columns; expected two"),
        ("label\ncat\ndog\n", "has one column, which begins with 'label'. Expected two, `file,label`"),
        ("file,label\n1.png,cat\n,dog\n", "line 3: expected a file and a label"),
        ('1.png,cat\n"2.png,dog\n', "Check its quotes"),
        ("1.png,caf\xe9\n".encode("latin1"), "not UTF-8 text.*Save it as UTF-8"),
    ],
)
def test_malformed_labels_files_are_explained(root: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(root, text)


def test_a_folder_is_no_labels_file(root: Path) -> None:
    with pytest.raises(DataError, match="is a folder; expected a table"):
        DATASETS["folder"](SourceOptions(root=root, labels=root / "sub"))


def test_a_missing_labels_file_says_what_is_expected(root: Path) -> None:
    with pytest.raises(DataError, match=r"labels\.csv does not exist\..*rows `file,label`"):
        DATASETS["folder"](SourceOptions(root=root))


@pytest.mark.parametrize("place", ["here", "beside the images"])
def test_a_misspelt_labels_file_is_guessed(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    there = Path("labels.csv") if place == "here" else root / "labels.csv"
    there.write_text("file,label\n")
    with pytest.raises(DataError) as error:
        DATASETS["folder"](SourceOptions(root=root, labels=Path("lables.csv")))
    assert str(error.value).endswith(f"; did you mean {there}?")
    with pytest.raises(DataError, match="rows `file,label`"):
        DATASETS["folder"](SourceOptions(root=root, labels=Path("zzz")))


def test_a_misspelt_table_is_guessed_wherever_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("file,label\n")
    with pytest.raises(DataError, match=r"anwsers\.csv does not exist\. Did you mean .*/answers\.csv\?"):
        read_label_table(tmp_path / "anwsers.csv")
    with pytest.raises(DataError, match=r"zzz does not exist\. Expected a CSV"):
        read_label_table(tmp_path / "zzz")


def test_a_folder_without_images_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected in .*image files.*Found: labels\.csv"):
        load(tmp_path, "1.png,cat\n")


def test_line_numbers_count_quoted_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    path.write_text('file,label\n"a\nb.png",x\nc.png,y\n')
    assert [(row.line, row.file) for row in read_label_rows(path)] == [(3, "a\nb.png"), (4, "c.png")]
