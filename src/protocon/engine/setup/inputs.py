"""What a network is trained on: the images themselves, or features of a frozen encoder in their place.

Both kinds answer the same questions, so that nothing after the set-up asks which one it has.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from protocon.base.torch_seed import seed_torch
from protocon.data.imageset import DataBundle, ImageSet
from protocon.engine.setup.view_factory import Views, build_views
from protocon.networks.encoders import build_encoder
from protocon.networks.network import Network
from protocon.networks.weights import load_kept
from protocon.runs.build_network import build_network
from protocon.settings.resolved_config import ResolvedConfig

_STATISTICS_IMAGES = 2000


class Inputs(ABC):
    """Samples of the training and the test set as the network takes them, and what belongs to their kind."""

    views: Views
    """How samples are looked at."""
    shape: tuple[int, ...]
    """Of one sample as the network takes it."""

    @property
    @abstractmethod
    def train(self) -> ImageSet:
        """What training reads."""

    @abstractmethod
    def seen(self, images: ImageSet) -> ImageSet:
        """Training or test images, or some of the training images, as the network sees them."""

    @abstractmethod
    def network(self, config: ResolvedConfig, classes: int) -> Network:
        """A network for these samples, initialised from the seed alone."""

    @abstractmethod
    def complete(self, network: nn.Module) -> nn.Module:
        """The network from images to classes, of one that was trained on these samples."""


class ImageInputs(Inputs):
    """Images, or embeddings that came as the data.

    Args:
        config: without `auto`.
        bundle: the data.
    """

    def __init__(self, config: ResolvedConfig, bundle: DataBundle) -> None:
        self._bundle = bundle
        self.shape = bundle.train.shape
        spread = self._statistics[1] if len(self.shape) == 1 else None
        self.views = build_views(config, shape=self.shape, feature_std=spread)

    @cached_property
    def _statistics(self) -> tuple[Tensor, Tensor]:
        return input_statistics(self._bundle.train)

    @property
    def train(self) -> ImageSet:
        """The training images."""
        return self._bundle.train

    def seen(self, images: ImageSet) -> ImageSet:
        """They themselves."""
        return images

    def network(self, config: ResolvedConfig, classes: int) -> Network:
        """Encoder and heads; pixels are normalised as the encoder's weights were trained, else by their statistics."""
        own = config.network
        with torch.random.fork_rng(devices=[]):
            seed_torch(config.run.seed)
            encoder = build_encoder(
                own.encoder,
                input_shape=self.shape,
                pretrained=own.pretrained,
                weights=own.weights,
                weights_sha256=own.weights_sha256,
                norm_momentum=own.norm_momentum,
            )
            trained_before = own.pretrained or own.weights is not None
            mean: Tensor = torch.tensor(encoder.mean) if trained_before and encoder.mean else self._statistics[0]
            std: Tensor = torch.tensor(encoder.std) if trained_before and encoder.std else self._statistics[1]
            network = build_network(config, encoder, classes=classes, mean=mean, std=std)
            if network.kept is not None:
                load_kept(network.kept, own.weights, sha256=own.weights_sha256)
            return network.to(memory_format=torch.channels_last)

    def complete(self, network: nn.Module) -> nn.Module:
        """The network itself."""
        return network


def input_statistics(images: ImageSet) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation per channel (of [0, 1]) or per feature, from up to 2,000 samples.

    Of pixels they are computed from counts of the 256 values, exactly, a few images at a time.
    """
    chosen = np.unique(np.linspace(0, len(images) - 1, min(len(images), _STATISTICS_IMAGES)).astype(np.int64))
    if len(images.shape) == 1:
        sample = images.read(chosen)
        return sample.mean(0), sample.std(0, correction=0).clamp(min=1e-6)
    channels = images.shape[0]
    counts = np.zeros((channels, 256), dtype=np.int64)
    for rows in np.array_split(chosen, -(-len(chosen) // 64)):
        pixels = images.read(rows).numpy()
        for channel in range(channels):
            counts[channel] += np.bincount(pixels[:, channel].ravel(), minlength=256)
    values = np.arange(256)
    total = int(counts[0].sum())
    sums, squares = (counts @ values).tolist(), (counts @ values**2).tolist()
    mean = torch.tensor([s / total / 255 for s in sums], dtype=torch.float64)
    # Whole numbers as long as possible: their difference is exact.
    variance = torch.tensor([(total * q - s * s) / total**2 / 255**2 for s, q in zip(sums, squares, strict=True)])
    return mean.float(), variance.double().sqrt().clamp(min=1e-3).float()
