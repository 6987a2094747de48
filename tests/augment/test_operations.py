"""Every operation of the pool against PIL's, on real images, each image with a magnitude of its own."""

import pytest
import torch
from torch import Tensor

from benchmarks.augment import PIL_OPERATIONS
from protocon.augment import OPERATIONS, Operation
from protocon.augment.geometry import affine
from tests.augment.samples import digits, each_by_pil, levels_apart, photos

GEOMETRIC = {"Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"}
UNCHANGED = {"Identity"}
IMAGES = {
    "photo-32": lambda: photos(24, 32),
    "photo-224": lambda: photos(6, 224),
    "photo-odd": lambda: photos(12, 31, 45),
    "digit-8": lambda: digits(24),
    "digit-16": lambda: digits(24, 16),
}


def spread(operation: Operation, count: int) -> Tensor:
    """Magnitudes over the whole range, off the whole numbers at which float32 and PIL's doubles round apart."""
    return operation.low + (operation.high - operation.low) * (torch.arange(count) + 0.37) / count


@pytest.mark.parametrize("images", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_operation_agrees_with_pil(operation: Operation, images: object) -> None:
    batch = images()  # type: ignore[operator]
    magnitudes = spread(operation, len(batch))
    before = batch.clone()
    ours = operation(batch, magnitudes)
    apart = levels_apart(ours, each_by_pil(batch, magnitudes, PIL_OPERATIONS[operation.name]))
    if operation.name in GEOMETRIC:
        # A pixel whose source lies on the edge between two may go to either: PIL computes in doubles.
        assert (apart > 0).float().mean() <= 1e-4
    else:
        assert apart.max() <= (1 if operation.name == "AutoContrast" else 0)
    assert ours.dtype == torch.uint8
    assert torch.equal(batch, before)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_operation_changes_most_photographs(operation: Operation) -> None:
    batch = photos(24, 32)
    changed = (operation(batch, spread(operation, 24)) != batch).flatten(1).any(dim=1)
    assert changed.float().mean() == 0.0 if operation.name in UNCHANGED else changed.float().mean() > 0.7


@pytest.mark.parametrize("name", ["AutoContrast", "Equalize", "Contrast", "Sharpness"])
def test_flat_and_nearly_flat_images_agree_with_pil(name: str) -> None:
    operation = next(entry for entry in OPERATIONS if entry.name == name)
    batch = torch.full((3, 3, 20, 20), 77, dtype=torch.uint8)
    batch[1, 0, 3, 3] = 200
    batch[2, :, :, :10] = 255
    magnitudes = torch.full((3,), 0.5)
    assert levels_apart(operation(batch, magnitudes), each_by_pil(batch, magnitudes, PIL_OPERATIONS[name])).max() <= 1


def test_colour_leaves_one_channel_alone() -> None:
    colour = next(entry for entry in OPERATIONS if entry.name == "Color")
    assert torch.equal(colour(digits(4), torch.full((4,), 0.1)), digits(4))


def test_operation_of_an_image_does_not_depend_on_its_batch() -> None:
    batch = photos(50, 16)
    for operation in OPERATIONS:
        magnitudes = spread(operation, 50)
        alone = operation(batch[17:18], magnitudes[17:18])
        assert torch.equal(operation(batch, magnitudes)[17:18], alone), operation.name


def test_pool_is_the_papers() -> None:
    ranges = {operation.name: (operation.low, operation.high) for operation in OPERATIONS}
    assert ranges == {
        "AutoContrast": (0.0, 0.0),
        "Brightness": (0.05, 0.95),
        "Color": (0.05, 0.95),
        "Contrast": (0.05, 0.95),
        "Equalize": (0.0, 0.0),
        "Identity": (0.0, 0.0),
        "Posterize": (4.0, 9.0),
        "Rotate": (-30.0, 30.0),
        "Sharpness": (0.05, 0.95),
        "ShearX": (-0.3, 0.3),
        "ShearY": (-0.3, 0.3),
        "Solarize": (0.0, 1.0),
        "TranslateX": (-0.3, 0.3),
        "TranslateY": (-0.3, 0.3),
    }


def test_affine_identity_and_everything_outside() -> None:
    batch = photos(2, 15)
    matrix = torch.tensor([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 99.0, 0.0, 1.0, 0.0]])
    moved = affine(batch, matrix)
    assert torch.equal(moved[0], batch[0])
    assert not moved[1].any()
