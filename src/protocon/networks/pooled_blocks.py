"""Features of an EfficientNet with the pooled outputs of its last blocks beside them.

The last layer of a network that was trained on ImageNet says what ImageNet's classes are told apart by; the blocks
before it still know textures and shapes, which tell drawings, scans and materials apart. They cost nothing: the forward
pass computes them anyway.
"""

from typing import Any

import torch
from torch import Tensor, nn

from protocon.base.parts import Parts, look, width
from protocon.errors import ConfigError

_PARTS = ("conv_stem", "bn1", "blocks", "conv_head", "bn2", "num_features")
"""What an EfficientNet is made of."""


class PooledBlocks(nn.Module):
    """Images (n, C, H, W) → features (n, D), the encoder's own first, then those of its last blocks, early ones first.

    Args:
        backbone: an EfficientNet without its classifier, timm's or ours.
        blocks: how many of its last blocks to pool.
    """

    backbone: Any

    def __init__(self, backbone: Any, blocks: int) -> None:
        super().__init__()
        if not all(hasattr(backbone, name) for name in _PARTS):
            raise ConfigError(
                f"network.pooled_blocks={blocks} is for EfficientNets, and the encoder is a "
                f"{type(backbone).__name__}; set network.pooled_blocks=0, or choose an EfficientNet (--encoder)"
            )
        count = len(backbone.blocks)
        if not 0 < blocks <= count:
            raise ConfigError(f"network.pooled_blocks is {blocks}; the encoder has {count} blocks")
        self.backbone = backbone
        self.first = count - blocks
        self.parts: Parts = look(int(backbone.num_features), *map(block_width, backbone.blocks[self.first :]))
        self.num_features = width(self.parts)

    def forward(self, x: Tensor) -> Tensor:
        """Input of the heads."""
        backbone = self.backbone
        x = backbone.bn1(backbone.conv_stem(x))
        pooled = []
        for number, block in enumerate(backbone.blocks):
            x = block(x)
            if number >= self.first:
                pooled.append(x.mean((2, 3)))
        x = backbone.bn2(backbone.conv_head(x))
        return torch.cat([x.mean((2, 3)), *pooled], dim=1)


def block_width(block: nn.Module) -> int:
    """Output channels of a block: those of its last convolution."""
    return [part.out_channels for part in block.modules() if isinstance(part, nn.Conv2d)][-1]
