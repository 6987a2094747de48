"""Where claims are tested: real data of a size that a CPU can train on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from protocon.base.draws import permutation
from protocon.data.imageset import DataBundle, ImageSet
from protocon.errors import ConfigError, unknown_name

_SUBSET = 301  # what draws are for


@dataclass(frozen=True)
class Field:
    """Data with the settings that all runs on it share."""

    name: str
    data: str
    """A name of DATASETS."""
    about: str
    settings: tuple[str, ...]
    """`key=value` for all runs."""
    seeds: int
    epochs: int
    neighbours: int
    """n that `auto` gives here; ablations divide and multiply it."""
    scarce: int = 2
    """Labels per class of all claims that are not about the number of labels."""
    labels: tuple[int, ...] = (2, 4, 8)
    train: int | None = None
    """Images that are drawn from the training part; None for all."""
    test: int | None = None
    validation: bool = False
    """Test on further images of the training part: for choices, which must not see the test images."""
    root: Path | None = None

    @property
    def values(self) -> dict[str, Any]:
        """Nested settings for `build_request`."""
        data: dict[str, Any] = {"name": self.data}
        if self.root is not None:
            data["root"] = str(self.root)
        return {"data": data, "optim": {"epochs": self.epochs}}


_COMMON = ("run.report=false", "run.tensorboard=false", "run.checkpoint_every=10")

FIELDS = {
    field.name: field
    for field in (
        Field(
            "digits",
            data="digits",
            about="scikit-learn's handwritten digits, 8×8 pixels: 1,397 for training, 400 for testing; WRN-10-1",
            settings=("data.image_size=8", *_COMMON),
            seeds=5,
            epochs=30,
            neighbours=45,
        ),
        Field(
            "fashion-mnist",
            data="fashion-mnist",
            about="Fashion-MNIST at 14×14 pixels: 1,000 training and 1,000 test images, drawn once; WRN-10-1",
            settings=("data.image_size=14", "network.encoder=wrn-10-1", "optim.batch_size=16", *_COMMON),
            seeds=3,
            epochs=30,
            neighbours=33,
            train=1000,
            test=1000,
        ),
    )
}


def field_named(name: str, **changes: Any) -> Field:
    """A field by name, with what is different from its default; None changes nothing."""
    if name not in FIELDS:
        raise ConfigError(unknown_name("field of claims", name, FIELDS))
    return replace(FIELDS[name], **{key: value for key, value in changes.items() if value is not None})


def drawn(bundle: DataBundle, field: Field) -> DataBundle:
    """The part of the data that the field uses, the same for all seeds."""
    if field.validation:
        if field.train is None or field.test is None or field.train + field.test > len(bundle.train):
            raise ConfigError(f"{field.name} does not say which of its training images are kept for validation")
        kept, held = np.split(permutation(len(bundle.train), _SUBSET, 0)[: field.train + field.test], [field.train])
        return replace(bundle, train=bundle.train.subset(np.sort(kept)), test=bundle.train.subset(np.sort(held)))
    test = None if bundle.test is None else _some(bundle.test, field.test, 1)
    return replace(bundle, train=_some(bundle.train, field.train, 0), test=test)


def _some(images: ImageSet, count: int | None, part: int) -> ImageSet:
    if count is None or count >= len(images):
        return images
    return images.subset(np.sort(permutation(len(images), _SUBSET, part)[:count]))
