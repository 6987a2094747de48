"""Views a second: ours, batched, against the same views written in plain PIL, image by image.

    python benchmarks/augment.py [--quick]

prints one JSON object. A *pair* is a weak and a strong view of one image, every image with its own draws, delivered as
a float32 batch. All sides run on one thread and alternate within the run; figures are medians over the rounds, in CPU
time, and only their ratios carry over to another machine. Images are cut out of scikit-learn's two photographs.

`ours` are the views as `protocon train` makes them on a CPU: of large images by compiled kernels where numba is there
(`pip install protocon[fast]`), else by torch, which `ours_torch` always is.

`pil` is a data set with PIL transforms as usually written, ending in `to_tensor` and a stack; `tuned_pil` the same
operations with every conversion around them made as cheap as we could.

The PIL functions are also what the tests compare our operations with.
"""

import argparse
import functools
import json
import math
import random
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from sklearn.datasets import load_sample_image
from torch import Tensor
from torchvision.transforms.functional import to_tensor

from protocon.augment import OPERATIONS, RandAugmentView, RandomCropFlip, SimCLRView, View, WeakView
from protocon.augment.batches import Engine
from protocon.augment.fused import kernels
from protocon.base.draws import fold

PilView = Callable[[Image.Image, random.Random], Image.Image]


@functools.cache
def _scenes() -> tuple[Image.Image, ...]:
    return tuple(Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg"))


def photographs(count: int, size: int) -> np.ndarray:
    """Real images uint8 (count, size, size, 3): overlapping squares of two photographs, scaled down to `size`."""
    scenes = _scenes()
    side = max(size, 160)
    rng = random.Random(0)
    squares = []
    for number in range(count):
        scene = scenes[number % 2]
        left, top = rng.randint(0, scene.width - side), rng.randint(0, scene.height - side)
        square = scene.crop((left, top, left + side, top + side))
        squares.append(np.asarray(square.resize((size, size), Image.Resampling.BILINEAR)))
    return np.stack(squares)


def _affine(image: Image.Image, *matrix: float) -> Image.Image:
    return image.transform(image.size, Image.Transform.AFFINE, matrix)


PIL_OPERATIONS: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "AutoContrast": lambda image, _: ImageOps.autocontrast(image),
    "Brightness": lambda image, m: ImageEnhance.Brightness(image).enhance(m),
    "Color": lambda image, m: ImageEnhance.Color(image).enhance(m),
    "Contrast": lambda image, m: ImageEnhance.Contrast(image).enhance(m),
    "Equalize": lambda image, _: ImageOps.equalize(image),
    "Identity": lambda image, _: image,
    "Posterize": lambda image, m: ImageOps.posterize(image, int(m)),
    "Rotate": lambda image, m: image.rotate(m),
    "Sharpness": lambda image, m: ImageEnhance.Sharpness(image).enhance(m),
    "ShearX": lambda image, m: _affine(image, 1, m, 0, 0, 1, 0),
    "ShearY": lambda image, m: _affine(image, 1, 0, 0, m, 1, 0),
    "Solarize": lambda image, m: ImageOps.solarize(image, math.ceil(m * 255)),
    "TranslateX": lambda image, m: _affine(image, 1, 0, m * image.width, 0, 1, 0),
    "TranslateY": lambda image, m: _affine(image, 1, 0, 0, 0, 1, m * image.height),
}


def pil_weak(image: Image.Image, *, flip: bool, dx: int, dy: int) -> Image.Image:
    """Mirror, then take pixel (x, y) from (x + dx, y + dy), reflected at the borders."""
    if flip:
        image = ImageOps.mirror(image)
    pixels = np.asarray(image)
    rows = np.abs(np.arange(dy, dy + image.height))
    columns = np.abs(np.arange(dx, dx + image.width))
    rows = image.height - 1 - np.abs(image.height - 1 - rows)
    columns = image.width - 1 - np.abs(image.width - 1 - columns)
    # Two takes along one axis each: faster than np.pad and a crop, and than PIL's paste of four borders.
    return Image.fromarray(pixels.take(rows, axis=0).take(columns, axis=1))


def pil_cutout(image: Image.Image, x: int, y: int, side: int) -> Image.Image:
    """A copy with a grey square, `side` wide, around (x, y)."""
    image = image.copy()
    left, top = x - side // 2, y - side // 2
    image.paste((127,) * len(image.getbands()), (left, top, left + side, top + side))
    return image


def pil_hue(image: Image.Image, turn: float) -> Image.Image:
    """Shift the hue channel of PIL's 8-bit HSV."""
    hue, saturation, value = image.convert("HSV").split()
    shifted = np.asarray(hue) + np.uint8(round(turn * 255) % 256)
    return Image.merge("HSV", (Image.fromarray(shifted), saturation, value)).convert("RGB")


def draw_weak(image: Image.Image, rng: random.Random) -> Image.Image:
    """FixMatch's weak view, by look-up."""
    across, down = round(image.width / 8), round(image.height / 8)
    flip = rng.random() < 0.5
    return pil_weak(image, flip=flip, dx=rng.randint(-across, across), dy=rng.randint(-down, down))


def draw_padded(image: Image.Image, rng: random.Random) -> Image.Image:
    """FixMatch's weak view as usually written: mirror, pad by reflection, crop."""
    if rng.random() < 0.5:
        image = ImageOps.mirror(image)
    across, down = round(image.width / 8), round(image.height / 8)
    padded = np.pad(np.asarray(image), ((down, down), (across, across), (0, 0)), mode="reflect")
    left, top = rng.randint(0, 2 * across), rng.randint(0, 2 * down)
    return Image.fromarray(padded).crop((left, top, left + image.width, top + image.height))


def draw_strong(image: Image.Image, rng: random.Random) -> Image.Image:
    """FixMatch's strong view."""
    return draw_operations(draw_weak(image, rng), rng)


def draw_strong_padded(image: Image.Image, rng: random.Random) -> Image.Image:
    """The same on top of the weak view as usually written."""
    return draw_operations(draw_padded(image, rng), rng)


def draw_operations(image: Image.Image, rng: random.Random) -> Image.Image:
    """Two operations of the pool, each applied half of the time, and cutout."""
    for _ in range(2):
        operation = rng.choice(OPERATIONS)
        magnitude = rng.uniform(operation.low, operation.high)
        if rng.random() < 0.5:
            image = PIL_OPERATIONS[operation.name](image, magnitude)
    return pil_cutout(image, rng.randrange(image.width), rng.randrange(image.height), image.width // 2)


def draw_crop(image: Image.Image, rng: random.Random, *, lowest: float, size: int) -> Image.Image:
    """A random resized crop, mirrored half of the time."""
    box = (0, 0, image.width, image.height)
    for _ in range(10):
        area = image.width * image.height * rng.uniform(lowest, 1.0)
        ratio = math.exp(rng.uniform(math.log(3 / 4), math.log(4 / 3)))
        width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if width <= image.width and height <= image.height:
            left, top = rng.randint(0, image.width - width), rng.randint(0, image.height - height)
            box = (left, top, left + width, top + height)
            break
    # Cropped first: resizing with `box` would read beyond it.
    image = image.crop(box).resize((size, size), Image.Resampling.BILINEAR)
    return ImageOps.mirror(image) if rng.random() < 0.5 else image


def draw_weak_crop(image: Image.Image, rng: random.Random) -> Image.Image:
    """The weak view of large images."""
    return draw_crop(image, rng, lowest=0.2, size=224)


def draw_simclr(image: Image.Image, rng: random.Random) -> Image.Image:
    """SimCLR's view at strength 1."""
    image = draw_crop(image, rng, lowest=0.08, size=224)
    if rng.random() < 0.8:
        steps: list[Callable[[Image.Image], Image.Image]] = [
            lambda image: ImageEnhance.Brightness(image).enhance(rng.uniform(0.2, 1.8)),
            lambda image: ImageEnhance.Contrast(image).enhance(rng.uniform(0.2, 1.8)),
            lambda image: ImageEnhance.Color(image).enhance(rng.uniform(0.2, 1.8)),
            lambda image: pil_hue(image, rng.uniform(-0.2, 0.2)),
        ]
        rng.shuffle(steps)
        for step in steps:
            image = step(image)
    if rng.random() < 0.2:
        image = image.convert("L").convert("RGB")
    if rng.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.1, 2.0)))
    return image


def plain_batch(images: list[Image.Image], view: PilView, rng: random.Random) -> Tensor:
    """Views as a data set with PIL transforms gives them: each made a float32 tensor, then stacked."""
    return torch.stack([to_tensor(view(image, rng)) for image in images])


def tuned_batch(images: list[Image.Image], view: PilView, rng: random.Random) -> Tensor:
    """The same views, stacked as bytes and made float32 all at once: the least one can do with PIL's images."""
    pixels = torch.from_numpy(np.stack([np.asarray(view(image, rng)) for image in images]))
    return pixels.to(torch.float32).div_(255.0)


def compare(
    pixels: np.ndarray,
    ours: tuple[View, View],
    ours_torch: tuple[View, View],
    plain: tuple[PilView, PilView],
    tuned: tuple[PilView, PilView],
    rounds: int,
) -> dict[str, float]:
    """Pairs a second of all sides, in CPU time, medians of alternating rounds; and what ours is times the others."""
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
    pictures = [Image.fromarray(image) for image in pixels]
    rng = random.Random(0)
    keys = torch.empty(0)
    sides: dict[str, Callable[[], object]] = {
        "pil": lambda: [plain_batch(pictures, view, rng) for view in plain],
        "tuned_pil": lambda: [tuned_batch(pictures, view, rng) for view in tuned],
        "ours": lambda: [view(images, key) for view, key in zip(ours, keys, strict=True)],
        "ours_torch": lambda: [view(images, key) for view, key in zip(ours_torch, keys, strict=True)],
    }
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds + 1):
        keys = fold(fold(0, number), torch.arange(2 * len(images))).view(2, -1)
        for side, run in sides.items():
            start = time.process_time()
            run()
            if number:  # the first round warms up
                seconds[side].append(time.process_time() - start)
    result = {side: round(len(images) / statistics.median(times), 1) for side, times in seconds.items()}
    for side in ("pil", "tuned_pil"):
        for mine in ("ours", "ours_torch"):
            ratios = [theirs / our for theirs, our in zip(seconds[side], seconds[mine], strict=True)]
            result[f"ratio_to_{side}{mine.removeprefix('ours')}"] = round(statistics.median(ratios), 2)
    return result


def main() -> None:
    """Run the three comparisons and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: about 10 seconds")
    rounds = 5 if parser.parse_args().quick else 25
    torch.set_num_threads(1)
    # Freeing one large block makes glibc keep freed memory, as after the first step of training; else all sides
    # mostly measure how fast the kernel hands out fresh pages.
    torch.zeros(31 << 20, dtype=torch.uint8)
    engine: Engine = "numba" if kernels.available() else "torch"
    weak, fast_weak = WeakView(flip=True), WeakView(flip=True, engine=engine)
    fixmatch, fast_fixmatch = (weak, RandAugmentView(weak)), (fast_weak, RandAugmentView(fast_weak, engine=engine))
    simclr = (RandomCropFlip(224), SimCLRView(224))
    fast_simclr = (RandomCropFlip(224, engine=engine), SimCLRView(224, engine=engine))
    plain, tuned = (draw_padded, draw_strong_padded), (draw_weak, draw_strong)
    crops = (draw_weak_crop, draw_simclr)
    results = {
        # Small images are left to torch: compiling would take longer than it saves.
        "32": compare(photographs(448, 32), fixmatch, fixmatch, plain, tuned, rounds),
        "224_randaugment": compare(photographs(48, 224), fast_fixmatch, fixmatch, plain, tuned, rounds),
        "224_simclr": compare(photographs(48, 224), fast_simclr, simclr, crops, crops, rounds),
    }
    summary: dict[str, object] = {f"ratio_to_pil_{name}": result["ratio_to_pil"] for name, result in results.items()}
    summary |= {"engine_224": engine, "pairs_per_second": results, "rounds": rounds, "torch": torch.__version__}
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
