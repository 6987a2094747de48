"""The options of a data source."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from protocon.errors import ConfigError

Storage = Literal["auto", "memory", "stream"]
BadFiles = Literal["auto", "error", "skip"]
Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""

MEMORY_LIMIT = 2 * 2**30


@dataclass(frozen=True)
class SourceOptions:
    """What a source may be told. A source refuses options that would do nothing there."""

    root: Path | None = None
    """Folder, archive or array file that holds the data."""
    labels: Path | None = None
    """Labels file, for `folder` (default: labels.csv in root) and `arrays` (.npy)."""
    image_size: int | None = None
    """Side of the square images in pixels. None: as stored, or the source's usual size for files."""
    grey: bool = False
    """Decode image files to one channel instead of three."""
    squash: bool = False
    """Make images square by squashing the whole of them, instead of cropping the centre."""
    domain: str | None = None
    """Which of DomainNet's domains."""
    test_fraction: float | None = None
    """Share of the *labelled* images held out for testing where the data has no test set."""
    test_seed: int = 0
    """Chooses the images that `test_fraction` holds out. Not the training seed: runs stay comparable."""
    storage: Storage = "auto"
    """Image files: decoded once into memory, decoded at every read, or memory if under `memory_limit`."""
    memory_limit: int = MEMORY_LIMIT
    """Bytes of decoded images up to which `storage="auto"` chooses memory."""
    bad_files: BadFiles = "auto"
    """A file that cannot be decoded stops loading, or is left out and reported (decodes every file once).
    auto: left out of one's own images; an error in a named benchmark, whose files should all be whole."""
    cache: Path | None = None
    """Folder where images decoded into memory are kept for the next run. None: nowhere."""
    record: Path | None = None
    """Folder of records: files that did not change since they were last decoded are not opened again, and are decoded
    as they are needed. None: there are none."""
    largest_auto: int = 224
    """Without `image_size`, one's own image files become at most this large."""
    smallest_auto: int = 1
    """Without `image_size`, image files become at least this large."""
    progress: Progress | None = None
    """Called now and then while files are decoded."""

    def __post_init__(self) -> None:
        for name in ("root", "labels", "cache"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, Path(value).expanduser())
        if self.image_size is not None and not 1 <= self.image_size <= 4096:
            raise ConfigError(f"image_size is {self.image_size}; it must be between 1 and 4096 pixels.")
        if self.test_fraction is not None and not 0 < self.test_fraction < 1:
            raise ConfigError(f"test_fraction is {self.test_fraction}; it must lie between 0 and 1, as 0.2.")
        if self.test_seed < 0:
            raise ConfigError(f"test_seed is {self.test_seed}; it must be 0 or more.")
        if self.storage not in ("auto", "memory", "stream"):
            raise ConfigError(f"storage is {self.storage!r}; choose auto, memory or stream.")
        if self.bad_files not in ("auto", "error", "skip"):
            raise ConfigError(f"bad_files is {self.bad_files!r}; choose auto, error or skip.")

    def accept_only(self, source: str, *names: str) -> None:
        """Raise if an option is set that `source` would ignore: no option silently does nothing."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in (*names, *_OF_NO_SOURCE) and value != field.default:
                if field.name == "labels":  # most likely the folder was forgotten
                    raise ConfigError(
                        f"--labels {value} is given, but not the images: name their folder, as in `train photos/ "
                        f"--labels {value}`. (The data set {source!r} has labels of its own.)"
                    )
                raise ConfigError(
                    f"Dataset {source!r} does not use the option {field.name} (given: {value}). "
                    f"It uses: {', '.join(names)}. Remove it."
                )


_OF_NO_SOURCE = ("memory_limit", "squash", "record", "largest_auto", "smallest_auto", "progress")
"""Set by the program, not by a user: no error where they do nothing."""

FILE_OPTIONS = ("root", "image_size", "grey", "storage", "memory_limit", "bad_files", "cache")
"""The options that every source of image files understands."""
