"""From a list of image files to a data bundle: held-out test images, storage, classes without images."""

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from protocon.data.files.decode import image_dimensions
from protocon.data.files.decode_all import Decoded, Decoder, Members, remarks
from protocon.data.files.file_report import FileReport, SkippedFile
from protocon.data.files.kinds import PERHAPS_PICTURES, why_not_read
from protocon.data.files.names import shown
from protocon.data.files.stores import BROKEN, LOOP, FileEntry, FileStore, is_hidden
from protocon.data.imageset import (
    UNKNOWN,
    ArrayImages,
    DataBundle,
    DataHints,
    FileImages,
    ImageSet,
    SpooledImages,
    content_of_files,
)
from protocon.data.labels.holdout import hold_out
from protocon.data.source_options import SourceOptions
from protocon.errors import ConfigError, DataError

_PROBED = 64


@dataclass(frozen=True)
class FileListing:
    """What a source of image files found, before any of them is decoded."""

    name: str
    store: FileStore
    class_names: tuple[str, ...]
    train: Members
    test: Members | None
    skipped: list[SkippedFile]
    warnings: list[str] = field(default_factory=list)
    """What a user should know, one line each."""
    notes: list[str] = field(default_factory=list)
    """What was taken for what, one line each."""
    listed: list[str] = field(default_factory=list)
    """Files whose label answers for a list to look at."""


def sort_out(entries: list[FileEntry]) -> tuple[list[FileEntry], list[SkippedFile]]:
    """Image files, and all others with the reason why they are not used. Judged by name and size only."""
    images: list[FileEntry] = []
    skipped: list[SkippedFile] = []
    for entry in entries:
        suffix = os.path.splitext(entry.path)[1].lower()  # noqa: PTH122  # a million times: ten times faster
        why = why_not_read(suffix)
        if is_hidden(entry.path):
            skipped.append(SkippedFile(entry.path, "hidden file"))
        elif entry.size == BROKEN:
            skipped.append(SkippedFile(entry.path, "broken link"))
        elif entry.size == LOOP:
            skipped.append(SkippedFile(entry.path, "link to a folder that it lies in"))
        elif why:
            skipped.append(SkippedFile(entry.path, why))
        elif entry.size == 0:
            skipped.append(SkippedFile(entry.path, "empty file"))
        else:
            images.append(entry)
    return images, skipped


def worth_a_word(skipped: list[SkippedFile]) -> list[str]:
    """A line for each kind of file that is not read although it may be a picture, with an example."""
    kinds: dict[str, list[str]] = {}
    for skip in skipped:
        if skip.reason.startswith(PERHAPS_PICTURES):
            kinds.setdefault(skip.reason.partition(" (")[0], []).append(skip.path)
    advice = {skip.reason.partition(" (")[0]: skip.reason.partition("): ")[2] for skip in skipped}
    return [
        f"{len(paths):,} file{'' if len(paths) == 1 else 's'} not read ({kind}; {shown(paths[0])})"
        + (f": {advice[kind]}" if advice[kind] else "")
        for kind, paths in kinds.items()
    ]


def make_bundle(
    listing: FileListing,
    options: SourceOptions,
    *,
    default_size: int | None = None,
    flip: bool = True,
    own: bool = False,
) -> DataBundle:
    """Load what was listed: into memory if that is small enough, else to be decoded at every read.

    Without `image_size` and `default_size` the images get the median short side of a few of them, at
    most `largest_auto` pixels.

    Args:
        listing: what was found.
        options: as asked for.
        default_size: side without `image_size`.
        flip: whether mirrored images make sense.
        own: a user's own files, not a benchmark: damaged ones are left out and reported unless `bad_files` says error,
            and a class of which no labelled image is left is left out too.
    """
    if options.bad_files == "auto":
        options = replace(options, bad_files="skip" if own else "error")
    train, test = listing.train, listing.test
    if options.test_fraction is not None:
        if test is not None:
            raise ConfigError(
                f"test_fraction is given, but {listing.store.where} has a test set of its own. Remove it."
            )
        kept, held = hold_out(train.labels, options.test_fraction, seed=options.test_seed)
        train, test = train.take(kept), train.take(held)
    size = options.image_size or default_size or _usual_size(listing.store, train.files, options)
    count = len(train.files) + (len(test.files) if test else 0)
    total = count * (1 if options.grey else 3) * size * size
    in_memory = options.storage == "memory" or (options.storage == "auto" and total <= options.memory_limit)
    decoder = Decoder(listing.store, options, listing.class_names, size=size, in_memory=in_memory)
    parts = [decoder.decode(train)] + ([decoder.decode(test)] if test and len(test.files) else [])
    names = listing.class_names
    if own:
        parts, names = _without_empty_classes(parts, names, decoder)
    sets = [_image_set(part, names, listing, options, size) for part in parts]
    spared = worth_a_word(listing.skipped) if own else []
    report = FileReport(
        sum(map(len, sets)),
        (*listing.skipped, *decoder.skipped),
        (*listing.warnings, *spared, *decoder.warnings, *remarks(decoder.facts, size)),
        tuple(listing.notes),
        tuple(decoder.facts),
        tuple(listing.listed),
    )
    return DataBundle(sets[0], sets[1] if len(sets) > 1 else None, DataHints(flip=flip), report)


def _without_empty_classes(
    parts: list[Decoded], names: tuple[str, ...], decoder: Decoder
) -> tuple[list[Decoded], tuple[str, ...]]:
    """Leave out classes of which no labelled training image can be decoded; at least two must remain."""
    labels = parts[0].members.labels
    known = np.bincount(labels[labels >= 0], minlength=len(names))
    left = np.flatnonzero(known)
    if len(left) == len(names):
        return parts, names
    gone = [names[int(i)] for i in np.flatnonzero(known == 0)]
    if len(left) < 2:
        raise DataError(
            f"{decoder.store.where}: only {len(left)} class has labelled images that can be decoded; at least two "
            f"are needed. Without any: {', '.join(map(shown, gone))}."
        )
    for name in gone:
        decoder.warnings.append(f"class {shown(name)}: none of its labelled images can be used; it is left out")
    numbers = np.full(len(names) + 1, UNKNOWN)  # the last is for label −1
    numbers[left] = np.arange(len(left))
    kept = []
    for number, part in enumerate(parts):
        good = np.arange(len(part.members.files)) if number == 0 else np.flatnonzero(known[part.members.labels])
        if len(good) < len(part.members.files):
            lost = np.setdiff1d(np.arange(len(part.members.files)), good)
            reason = "test image of a class that is left out"
            decoder.skipped.extend(SkippedFile(part.members.files[int(i)].path, reason) for i in lost)
            part = part.take(good)
        if len(good):
            kept.append(replace(part, members=Members(part.members.files, numbers[part.members.labels])))
    return kept, tuple(names[int(i)] for i in left)


def _image_set(
    part: Decoded, names: tuple[str, ...], listing: FileListing, options: SourceOptions, size: int
) -> ImageSet:
    members, store, name = part.members, listing.store, listing.name
    content = content_of_files(store, members.files)
    ids = [entry.path for entry in members.files]
    if part.pixels is not None:
        images = ArrayImages(part.pixels, members.labels, names, name=name, ids=ids, content=content)
        images.digest = part.digest
        return images
    facts: dict[str, Any] = {"name": name, "ids": ids, "content": content, "digest": part.digest}
    manner: dict[str, Any] = {"image_size": size, "grey": options.grey, "squash": options.squash}
    if part.spool is not None and part.rows is not None:
        return SpooledImages(part.spool, part.rows, members.labels, names, **facts)
    return FileImages(store, labels=members.labels, class_names=names, **manner, **facts)


def _usual_size(store: FileStore, files: list[FileEntry], options: SourceOptions) -> int:
    """The side of images whose size nobody asked for."""
    native = probe_size(store, files, options.largest_auto)
    return min(options.largest_auto, max(options.smallest_auto, native))


def probe_size(store: FileStore, files: list[FileEntry], largest: int = 224) -> int:
    """Median short side of up to 64 images spread over the list, at most `largest` pixels.

    Args:
        store: the files.
        files: the images among them.
        largest: most pixels that come out.
    """
    step = max(1, len(files) // _PROBED)
    sides: list[int] = []
    for entry in files[::step][:_PROBED]:
        try:
            with store.open(entry.path) as file:
                sides.append(min(image_dimensions(file, name=store.full_name(entry.path))))
        except DataError:
            continue  # reported with its reason when it is decoded
    if not sides:
        return largest
    return min(largest, int(np.median(sides)))
