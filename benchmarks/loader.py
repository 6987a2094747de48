"""Images a second from a folder of JPEGs to a weak and a strong view of each, at 224 px with 2 workers.

    python benchmarks/loader.py [--quick]

prints one JSON object. Photographs of 400 × 300 pixels, cut out of scikit-learn's two, are written to a folder.

- `torchvision`: `ImageFolder`-style data set, `DataLoader` with 2 workers, PIL transforms: resize, random resized crop
  and flip; the same again with SimCLR's colours and blur (`simclr`), or with RandAugment (`randaugment`).
- `ours`: the streamed loader of `protocon train storage=stream` with 2 workers that decode and resize, and batched
  views in the main process.

One thread in each process; sides alternate; figures are medians over rounds of wall time, because work is shared by
three processes. On a busy machine only the ratio means anything.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

from protocon.augment import RandAugmentView, RandomCropFlip, SimCLRView, View
from protocon.augment.batches import Engine
from protocon.augment.fused import kernels
from protocon.base.draws import fold
from protocon.data.labels.label_split import make_split
from protocon.data.loading.loader import Loader
from protocon.data.registry import DATASETS
from protocon.data.source_options import SourceOptions

SIZE, WORKERS, BATCH = 224, 2, 64


def write_photographs(folder: Path, count: int) -> None:
    """JPEG files of 400 × 300 pixels in two class folders."""
    rng = np.random.default_rng(0)
    for name in ("china", "flower"):
        (folder / name).mkdir()
        scene = Image.fromarray(load_sample_image(f"{name}.jpg"))
        for number in range(count // 2):
            left, top = int(rng.integers(scene.width - 400)), int(rng.integers(scene.height - 300))
            scene.crop((left, top, left + 400, top + 300)).save(folder / name / f"{number:05d}.jpg", quality=90)


class PilPairs(Dataset[tuple[Tensor, Tensor]]):
    """Two PIL views of each file, as usually written."""

    def __init__(self, files: list[Path], strong: str) -> None:
        crop = [T.Resize(256), T.RandomResizedCrop(SIZE, scale=(0.2, 1.0)), T.RandomHorizontalFlip()]
        simclr = [
            T.Resize(256),
            T.RandomResizedCrop(SIZE, scale=(0.08, 1.0)),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
            T.RandomGrayscale(p=0.2),
            T.RandomApply([T.GaussianBlur(23, (0.1, 2.0))], p=0.5),
        ]
        chosen = simclr if strong == "simclr" else [*crop, T.RandAugment()]
        self.files = files
        self.views = [T.Compose([*crop, T.ToTensor()]), T.Compose([*chosen, T.ToTensor()])]

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        image = Image.open(self.files[index]).convert("RGB")
        return self.views[0](image), self.views[1](image)


def read_with_torchvision(loader: "DataLoader[tuple[Tensor, Tensor]]") -> int:
    """One pass; returns the number of images."""
    return sum(len(weak) for weak, _ in loader)


def read_with_ours(loader: Loader, views: tuple[View, View], epoch: int) -> int:
    """One pass over the unlabelled images (and the few labelled ones that come along)."""
    count = 0
    for raw in loader.epoch(epoch):
        for number, view in enumerate(views):
            view(raw.unlabelled, fold(raw.keys, number))
        views[0](raw.labelled, raw.labelled_keys)
        count += len(raw.unlabelled)
    return count


def our_loader(root: Path) -> Loader:
    """The streamed loader on class folders, two labels a class."""
    bundle = DATASETS["imagefolder"](SourceOptions(root=root, image_size=SIZE, storage="stream"))
    split = make_split(bundle.train, per_class=2, seed=0)
    return Loader(bundle.train, split, batch_size=2, mu=BATCH // 2, seed=0, device=torch.device("cpu"), workers=WORKERS)


def measure(root: Path, strong: str, rounds: int) -> dict[str, float]:
    """Images a second of both sides."""
    files = sorted(root.rglob("*.jpg"))
    theirs = DataLoader(PilPairs(files, strong), batch_size=BATCH, num_workers=WORKERS, persistent_workers=True)
    loader = our_loader(root)
    engine: Engine = "numba" if kernels.available() else "torch"
    weak = RandomCropFlip(SIZE, engine=engine)
    views = (weak, SimCLRView(SIZE, engine=engine) if strong == "simclr" else RandAugmentView(weak, engine=engine))
    rates: dict[str, list[float]] = {"torchvision": [], "ours": []}
    for number in range(rounds + 1):
        runs: dict[str, Callable[[], int]] = {
            "torchvision": lambda: read_with_torchvision(theirs),
            "ours": lambda epoch=number: read_with_ours(loader, views, epoch),  # type: ignore[misc]
        }
        for side, run in runs.items():
            start = time.perf_counter()
            count = run()
            if number:  # the first round starts the workers
                rates[side].append(count / (time.perf_counter() - start))
    ratios = [our / their for our, their in zip(rates["ours"], rates["torchvision"], strict=True)]
    return {side: round(statistics.median(values), 1) for side, values in rates.items()} | {
        "ratio": round(statistics.median(ratios), 2)
    }


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer images and rounds")
    quick = parser.parse_args().quick
    count, rounds = (256, 3) if quick else (1024, 7)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        write_photographs(Path(folder), count)
        results = {strong: measure(Path(folder), strong, rounds) for strong in ("simclr", "randaugment")}
    summary = {f"ratio_to_torchvision_{strong}": result["ratio"] for strong, result in results.items()}
    print(json.dumps(summary | {"images_per_second": results, "workers": WORKERS, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
