"""Batches: the same whether resident or streamed, with any number of workers, from any epoch."""

import subprocess
import sys
import zipfile
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from protocon.data.files.decode_all import Members
from protocon.data.files.stores import FolderStore
from protocon.data.imageset import ArrayImages, FeatureArray, ImageSet
from protocon.data.labels.label_split import Split, make_split
from protocon.data.loading.eval_batches import evaluation_batches
from protocon.data.loading.loader import Loader, RawBatch
from protocon.data.loading.support import Support
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions
from protocon.data.sources.listing import FileListing, make_bundle
from protocon.errors import DataError
from tests.data.images import gradient, save_png

# More workers than cores are fine for a test.
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

CPU = torch.device("cpu")
COUNT = 23


def file_sets(root: Path) -> tuple[ImageSet, ImageSet]:
    """The same files in memory and streamed."""
    for i in range(COUNT):
        save_png(root / f"{i:02}.png", gradient(8, 8, shift=5 * i))
    store = FolderStore(root)
    members = Members(store.files(), np.arange(COUNT) % 3)
    listing = FileListing("files", store, ("a", "b", "c"), members, None, [])
    held, streamed = (
        make_bundle(listing, options).train
        for options in (SourceOptions(storage="memory"), SourceOptions(storage="stream"))
    )
    return held, streamed


def loader(images: ImageSet, split: Split, **options: object) -> Loader:
    settings = {"batch_size": 4, "mu": 2, "seed": 11, "device": CPU, **options}
    return Loader(images, split, **settings)  # type: ignore[arg-type]


def identical(one: list[RawBatch], two: list[RawBatch]) -> bool:
    names = [field.name for field in fields(RawBatch) if not field.name.endswith("share")]
    return len(one) == len(two) and all(
        torch.equal(getattr(a, name), getattr(b, name)) and (a.share, a.labelled_share) == (b.share, b.labelled_share)
        for a, b in zip(one, two, strict=True)
        for name in names
    )


def test_batches_hold_the_images_and_labels_they_say(tmp_path: Path) -> None:
    held, _ = file_sets(tmp_path)
    split = make_split(held, per_class=2, seed=1)
    batches = list(loader(held, split).epoch(0))
    assert len(batches) == 3  # 17 unlabelled, 8 a step
    for batch in batches:
        rows = split.labelled[batch.labelled_index.numpy()]
        assert torch.equal(batch.labelled, held.read(rows))
        assert batch.targets.tolist() == held.labels[rows].tolist()
        assert torch.equal(batch.unlabelled, held.read(split.unlabelled[batch.index.numpy()]))
        assert (batch.labelled.dtype, batch.keys.dtype, len(batch.keys)) == (
            torch.uint8,
            torch.int64,
            len(batch.index),
        )
    assert sorted(int(i) for batch in batches for i in batch.index) == list(range(17))


def test_streaming_equals_resident_with_any_number_of_workers(tmp_path: Path) -> None:
    held, streamed = file_sets(tmp_path)
    split = make_split(held, per_class=2, seed=1)
    resident = loader(held, split)
    assert resident.resident
    expected = [batch for epoch in range(2) for batch in resident.epoch(epoch)]
    for workers in (0, 1, 3):
        stream = loader(streamed, split, workers=workers)
        assert not stream.resident
        assert identical([batch for epoch in range(2) for batch in stream.epoch(epoch)], expected), workers


@pytest.mark.parametrize("options", [{"support": Support(per_class=3, classes=2)}, {"uses_labels": False}])
def test_support_sets_and_batches_without_labels_are_read_the_same_way(
    options: dict[str, object], tmp_path: Path
) -> None:
    held, streamed = file_sets(tmp_path)
    split = make_split(held, per_class=2, seed=1)
    expected = list(loader(held, split, **options).epoch(1))
    assert identical(list(loader(streamed, split, workers=1, **options).epoch(1)), expected)
    for batch in expected:
        rows = split.labelled[batch.support_index.numpy()]
        assert torch.equal(batch.support, held.read(rows) if len(rows) else batch.unlabelled[:0])
        assert batch.support_targets.tolist() == held.labels[rows].tolist()
        assert len(batch.labelled) == len(batch.targets) == (4 if "support" in options else 0)
        assert len(rows) == (6 if "support" in options else 0)


def test_workers_do_not_disturb_each_other_in_one_archive(tmp_path: Path) -> None:
    for i in range(COUNT):
        save_png(tmp_path / "d" / "abc"[i % 3] / f"{i:02}.png", gradient(40, 40, shift=5 * i))
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for path in (tmp_path / "d").rglob("*.png"):
            archive.write(path, path.relative_to(tmp_path / "d").as_posix())
    held = DATASETS["imagefolder"](SourceOptions(root=tmp_path / "d")).train
    packed = DATASETS["imagefolder"](SourceOptions(root=tmp_path / "d.zip", storage="stream")).train
    split = make_split(held, per_class=2)
    stream, resident = loader(packed, split, workers=3), loader(held, split)
    for epoch in range(4):
        packed.read(np.arange(3))  # the parent reads at the same time
        assert identical(list(stream.epoch(epoch)), list(resident.epoch(epoch)))


def test_any_epoch_can_be_had_first_and_left_early(tmp_path: Path) -> None:
    held, streamed = file_sets(tmp_path)
    split = make_split(held, per_class=2, seed=1)
    expected = list(loader(held, split).epoch(5))
    for images in (held, streamed):
        late = loader(images, split, workers=2)
        next(iter(late.epoch(1)))  # begun and abandoned
        assert identical(list(late.epoch(5)), expected)
        assert identical(list(late.epoch(5, first_step=1)), expected[1:])


def test_ranks_joined_in_order_are_one_process(tmp_path: Path) -> None:
    held, _ = file_sets(tmp_path)
    split = make_split(held, per_class=2, seed=1)
    whole = list(loader(held, split).epoch(2))
    ranks = [list(loader(held, split, rank=rank, world_size=2).epoch(2)) for rank in range(2)]
    for batch, first, second in zip(whole, *ranks, strict=True):
        for name in ("labelled", "targets", "unlabelled", "index", "keys", "labelled_keys"):
            assert torch.equal(torch.cat([getattr(first, name), getattr(second, name)]), getattr(batch, name))
        assert first.share + second.share == pytest.approx(2.0)


def test_features_go_the_same_way() -> None:
    features = FeatureArray(np.arange(40.0).reshape(20, 2), np.arange(20) % 2, ("a", "b"))
    split = make_split(features, per_class=2)
    batches = list(loader(features, split).epoch(0))
    assert identical(list(loader(features, split, resident=False).epoch(0)), batches)
    assert torch.equal(batches[0].unlabelled, features.tensor[torch.from_numpy(split.unlabelled)[batches[0].index]])


def test_reading_draws_nothing_from_torchs_generator(tmp_path: Path) -> None:
    held, streamed = file_sets(tmp_path)
    split = make_split(held, per_class=2)
    state = torch.random.get_rng_state()
    list(loader(streamed, split, workers=1).epoch(0))
    list(loader(streamed, split).epoch(0))
    list(evaluation_batches(streamed, batch_size=5, device=CPU))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_residence_depends_on_storage_and_size(tmp_path: Path) -> None:
    held, streamed = file_sets(tmp_path)
    split = make_split(held, per_class=2)
    meta = torch.device("meta")  # stands for an accelerator
    assert loader(held, split, resident_limit=0).resident
    assert not loader(held, split, device=meta, resident_limit=held.nbytes - 1).resident
    assert loader(held, split, device=meta, resident_limit=held.nbytes).resident
    assert not loader(streamed, split).resident
    forced = loader(streamed, split, resident=True)
    assert identical(list(forced.epoch(1)), list(loader(held, split).epoch(1)))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_damaged_during_training_is_named_plainly(tmp_path: Path, workers: int) -> None:
    _, streamed = file_sets(tmp_path)
    split = make_split(streamed, per_class=2)
    (tmp_path / "07.png").write_text("gone bad")
    with pytest.raises(DataError, match=r"^\S*07\.png is not an image") as caught:
        list(loader(streamed, split, workers=workers).epoch(0))
    assert "Traceback" not in str(caught.value)


def test_a_split_of_another_set_is_refused(tmp_path: Path) -> None:
    held, _ = file_sets(tmp_path)
    with pytest.raises(DataError, match="split is for 23 images, but files has 20"):
        loader(held.subset(np.arange(20)), make_split(held, per_class=2))


@pytest.mark.parametrize("workers", [0, 2])
def test_evaluation_sees_every_image_once_in_order(tmp_path: Path, workers: int) -> None:
    held, streamed = file_sets(tmp_path)
    for images in (held, streamed):
        batches = list(evaluation_batches(images, batch_size=5, device=CPU, workers=workers))
        assert [len(batch.index) for batch in batches] == [5, 5, 5, 5, 3]
        assert torch.cat([batch.index for batch in batches]).tolist() == list(range(COUNT))
        assert torch.equal(torch.cat([batch.images for batch in batches]), held.read(np.arange(COUNT)))
        assert torch.cat([batch.labels for batch in batches]).tolist() == held.labels.tolist()


@pytest.mark.parametrize("world_size", [2, 3, 30])
def test_evaluation_shares_out_every_image_once(world_size: int) -> None:
    images = ArrayImages(torch.zeros(COUNT, 1, 2, 2, dtype=torch.uint8), None, ("a", "b"))
    parts = [
        [
            int(i)
            for batch in evaluation_batches(images, batch_size=4, device=CPU, rank=rank, world_size=world_size)
            for i in batch.index
        ]
        for rank in range(world_size)
    ]
    assert [i for part in parts for i in part] == list(range(COUNT))
    lengths = sorted(map(len, parts))
    assert lengths[-1] - lengths[0] <= 1
    assert all(b == a + 1 for part in parts for a, b in pairwise(part))


def test_evaluation_names_a_damaged_file(tmp_path: Path) -> None:
    _, streamed = file_sets(tmp_path)
    (tmp_path / "03.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"03\.png is an empty file"):
        list(evaluation_batches(streamed, batch_size=5, device=CPU))


def test_importing_the_room_loads_nothing_heavy() -> None:
    code = (
        "import sys, protocon.data.registry, protocon.data.loading.loader; "
        "print(sorted({'sklearn', 'torchvision', 'pandas', 'scipy', 'timm'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
