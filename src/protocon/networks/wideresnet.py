"""Wide residual networks (Zagoruyko and Komodakis, 2016) as semi-supervised work uses them.

Pre-activation blocks with leaky ReLUs, He initialisation and no dropout, as in FixMatch. Written here
because timm has no CIFAR-style wide ResNet.
"""

import re

import torch.nn.functional as F
from torch import Tensor, nn

from protocon.errors import ConfigError

_NAME = re.compile(r"wrn-(\d+)-(\d+)")
_SLOPE = 0.1


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, *, stride: int, activate_shortcut: bool, momentum: float) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs, momentum=momentum)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs, momentum=momentum)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut: nn.Module = (
            nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False) if inputs != outputs else nn.Identity()
        )
        self.activate_shortcut = activate_shortcut

    def forward(self, x: Tensor) -> Tensor:
        activated = F.leaky_relu(self.norm1(x), _SLOPE, inplace=True)
        out: Tensor = self.conv1(activated)
        out = self.conv2(F.leaky_relu(self.norm2(out), _SLOPE, inplace=True))
        shortcut: Tensor = self.shortcut(activated if self.activate_shortcut else x)
        result: Tensor = shortcut + out
        return result


class WideResNet(nn.Module):
    """WRN-depth-width: images (n, C, H, W) → features (n, 64·width).

    Args:
        depth: 6·k + 4 for k blocks in each of the three stages (10, 16, 22, 28, 40).
        width: multiplies the channels 16, 32, 64.
        in_channels: 3 for colour, 1 for grey.
        norm_momentum: BatchNorm's; FixMatch's long runs use 0.001, short ones need more.
    """

    def __init__(self, depth: int, width: int, *, in_channels: int = 3, norm_momentum: float = 0.1) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6 or width < 1:
            raise ConfigError(
                f"wrn-{depth}-{width} does not exist: depth must be 10, 16, 22, 28, … and width at least 1"
            )
        blocks = (depth - 4) // 6
        stem, *stages = 16, 16 * width, 32 * width, 64 * width
        self.stem = nn.Conv2d(in_channels, stem, 3, padding=1, bias=False)
        layers: list[nn.Module] = []
        inputs = stem
        for number, outputs in enumerate(stages):
            for position in range(blocks):
                layers.append(
                    _Block(
                        inputs,
                        outputs,
                        stride=2 if number > 0 and position == 0 else 1,
                        activate_shortcut=position == 0,
                        momentum=norm_momentum,
                    )
                )
                inputs = outputs
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(inputs, momentum=norm_momentum)
        self.num_features = inputs
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu", a=_SLOPE)

    def forward(self, x: Tensor) -> Tensor:
        """Features (n, num_features) of images (n, C, H, W)."""
        x = F.leaky_relu(self.norm(self.blocks(self.stem(x))), _SLOPE, inplace=True)
        return x.mean(dim=(2, 3))


def parse_name(name: str) -> tuple[int, int] | None:
    """(28, 2) from `wrn-28-2`; None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None
