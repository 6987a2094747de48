"""Features of two looks at an image: once as ImageNet taught it, once with norms that know the image itself.

The second look keeps what the first does not see, and the other way round; together they tell images apart better than
either. Both begin with the same layers, which are the dearest, so that a second look costs less than a second pass.
"""

import torch
from torch import Tensor, nn

from protocon.base.parts import Parts, look, width
from protocon.errors import ConfigError
from protocon.networks.efficientnet_lite import EfficientNetLite, Inverted
from protocon.networks.pooled_blocks import block_width

SHARED = 2
"""Stages that both looks have in common: early layers know brightness and colour, which are to stay."""


class TwoLooks(nn.Module):
    """Images (n, C, H, W) → features (n, D): of each look the encoder's own, then its last blocks, early ones first.

    Args:
        backbone: whose norms take the image's own statistics in part, at the second look.
        blocks: how many of its last blocks to pool.
        share: of the image's own statistics in the last block's norm; it grows from block to block.
    """

    def __init__(self, backbone: EfficientNetLite, *, blocks: int, share: float) -> None:
        super().__init__()
        count = len(backbone.blocks)
        if not 0 <= blocks <= count:
            raise ConfigError(f"network.pooled_blocks is {blocks}; the encoder has {count} blocks")
        self.backbone = backbone
        self.first = count - blocks
        self.share = share
        for stage in backbone.stages()[SHARED:]:
            for unit in stage:
                assert isinstance(unit, Inverted)
                unit.bn3.foldable = False
        self.parts: Parts = 2 * look(backbone.num_features, *map(block_width, backbone.blocks[self.first :]))
        self.num_features = width(self.parts)

    def shares(self) -> list[list[float]]:
        """Of the image's own statistics at the second look, for each unit of each stage."""
        units = [len(stage) for stage in self.backbone.stages()]
        total = sum(units[SHARED:])
        done, found = 0, []
        for number, length in enumerate(units):
            later = number >= SHARED
            found.append([self.share * (done + unit + 1) / total if later else 0.0 for unit in range(length)])
            done += length if later else 0
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Input of the heads."""
        backbone = self.backbone
        x = backbone.bn1(backbone.conv_stem(x))
        shared = []
        for number, stage in enumerate(backbone.stages()[:SHARED]):
            x = stage(x)
            if number >= self.first:
                shared.append(x.mean((2, 3)))
        plain = [[0.0] * len(stage) for stage in backbone.stages()]
        return torch.cat([part for shares in (plain, self.shares()) for part in self._look(x, shared, shares)], dim=1)

    def _look(self, x: Tensor, shared: list[Tensor], shares: list[list[float]]) -> list[Tensor]:
        pooled = list(shared)
        for number, stage in enumerate(self.backbone.stages()[SHARED:], start=SHARED):
            for unit, share in zip(stage, shares[number], strict=True):
                x = unit(x, share)
            if number >= self.first:
                pooled.append(x.mean((2, 3)))
        last: Tensor = self.backbone.bn2(self.backbone.conv_head(x))
        return [last.mean((2, 3)), *pooled]
