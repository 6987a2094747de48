"""Fashion-MNIST, in the IDX format of MNIST, compressed or plain."""

import gzip
import math
import zlib
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from protocon.data.files.digests import content_of
from protocon.data.files.places import need_root, wrong_place
from protocon.data.files.resize_arrays import resize_images
from protocon.data.imageset import ArrayImages, DataBundle, DataHints
from protocon.data.source_options import SourceOptions
from protocon.errors import DataError

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")

_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
_SUBFOLDERS = ("", "raw", "FashionMNIST/raw", "fashion-mnist")
_MAX_BYTES = 2**33
_PART_BYTES = 2**24
_EXPECTED = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, "
    "each as it is or with .gz"
)
_GET = (
    "Get them from https://github.com/zalandoresearch/fashion-mnist, or on Debian and Ubuntu with "
    "apt-get install dataset-fashion-mnist."
)


def fashion_mnist(options: SourceOptions) -> DataBundle:
    """60,000 training and 10,000 test images of 28×28, grey. Without a root, Debian's package is used."""
    options.accept_only("fashion-mnist", "root", "image_size")
    if options.root is None and DEBIAN_FOLDER.is_dir():
        root = DEBIAN_FOLDER
    elif options.root is None:
        raise DataError(f"Dataset 'fashion-mnist' needs the option root, a folder with {_EXPECTED}. {_GET}")
    else:
        root = need_root(options, "fashion-mnist", _EXPECTED)

    def part(prefix: str) -> ArrayImages:
        images = read_idx(_find(root, f"{prefix}-images-idx3-ubyte"), dimensions=3)
        labels = read_idx(_find(root, f"{prefix}-labels-idx1-ubyte"), dimensions=1)
        pixels = torch.from_numpy(images)[:, None]
        resized = pixels if options.image_size is None else resize_images(pixels, options.image_size)
        content = content_of(images)
        return ArrayImages(resized, labels, _CLASSES, name="fashion-mnist", content=content)

    return DataBundle(part("train"), part("t10k"), DataHints(flip=True))


def _find(root: Path, name: str) -> Path:
    for folder in _SUBFOLDERS:
        for suffix in ("", ".gz"):
            path = root / folder / (name + suffix)
            if path.is_file():
                return path
    raise wrong_place(root, "fashion-mnist", _EXPECTED, _GET)


def read_idx(path: Path, *, dimensions: int) -> np.ndarray:
    """An IDX file of bytes as a uint8 array with this many dimensions."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            header = file.read(4 + 4 * dimensions)
            # Two zero bytes, the element type (8 = unsigned byte), the number of dimensions.
            if header[:4] != bytes((0, 0, 8, dimensions)) or len(header) < 4 + 4 * dimensions:
                raise DataError(
                    f"{path} is not an IDX file of bytes with {dimensions} dimensions: it starts with "
                    f"{header[:4].hex() or 'nothing'}, expected 000008{dimensions:02x}. Fetch it again."
                )
            shape = tuple(int(n) for n in np.frombuffer(header, dtype=">u4", offset=4))
            size = math.prod(shape)
            if size > _MAX_BYTES:
                raise DataError(f"{path} declares {size:,} bytes, far more than any such set has. Fetch it again.")
            parts = iter(lambda: file.read(_PART_BYTES), b"")  # never more memory than the file really fills
            data = b"".join(islice(parts, size // _PART_BYTES + 2))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}. Fetch it again.") from error
    if len(data) != size:
        amount = "more" if len(data) > size else f"only {len(data):,}"
        raise DataError(f"{path} declares {size:,} bytes but holds {amount}. Fetch it again.")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape).copy()
