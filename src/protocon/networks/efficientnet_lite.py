"""EfficientNet-Lite (Liu, 2020), the encoder of photographs that packages bring, for use as it is.

Names of tensors, arithmetic and features are those of timm's `tf_efficientnet_lite0` to `4`, bit for bit. timm itself
takes seconds to import, most of them for parts that a frozen encoder never uses.
"""

import math

import torch.nn.functional as F
from torch import Tensor, nn

from protocon.networks.own_statistics import with_own_statistics

_SCALES = {0: (1.0, 1.0), 1: (1.0, 1.1), 2: (1.1, 1.2), 3: (1.2, 1.4), 4: (1.4, 1.8)}
"""By size: factors of width and depth."""
_STAGES = ((2, 3, 2, 24), (2, 5, 2, 40), (3, 3, 2, 80), (3, 5, 1, 112), (4, 5, 2, 192))
"""Blocks, kernel, stride and width of the stages between the first and the last, before scaling."""
_STEM, _HEAD, _EXPANSION, _EPSILON = 32, 1280, 6, 1e-3
MEAN = STD = 0.5
"""Of every channel, as the weights were trained."""


def lite_size(name: str) -> int | None:
    """Which EfficientNet-Lite a timm name means; None for all other names."""
    prefix, digit = "tf_efficientnet_lite", name[-1:]
    return int(digit) if name[:-1] == prefix and digit.isdigit() and int(digit) in _SCALES else None


class EfficientNetLite(nn.Module):
    """Normalised images (n, C, H, W) → features (n, 1280).

    Args:
        size: 0 to 4.
        in_channels: C.
    """

    num_features = _HEAD

    def __init__(self, size: int, *, in_channels: int = 3) -> None:
        super().__init__()
        width, depth = _SCALES[size]
        self.conv_stem = SameConv(in_channels, _STEM, 3, stride=2)
        self.bn1 = NormAct(_STEM)
        # The first and the last stage are not deeper in larger networks.
        before = _scaled(16, width)
        stages: list[nn.Module] = [nn.Sequential(_Separable(_STEM, before))]
        for blocks, kernel, stride, channels in _STAGES:
            after = _scaled(channels, width)
            stages.append(_stage(before, after, math.ceil(blocks * depth), kernel, stride))
            before = after
        stages.append(_stage(before, _scaled(320, width), 1, 3, 1))
        self.blocks = nn.Sequential(*stages)
        self.conv_head = nn.Conv2d(_scaled(320, width), _HEAD, 1, bias=False)
        self.bn2 = NormAct(_HEAD)

    def forward(self, x: Tensor) -> Tensor:
        """Mean-pooled outputs of the last layer."""
        x = self.blocks(self.bn1(self.conv_stem(x)))
        last: Tensor = self.bn2(self.conv_head(x))
        return last.mean((2, 3))

    def stages(self) -> list[nn.Sequential]:
        """Units of each stage, as `blocks` has them."""
        return [stage for stage in self.blocks if isinstance(stage, nn.Sequential)]


class NormAct(nn.BatchNorm2d):
    """BatchNorm and, unless told otherwise, ReLU6.

    Args:
        channels: of the maps.
        act: whether an activation follows.
    """

    foldable = True
    """Whether it may become part of the convolution before it: not if it is asked for other statistics."""

    def __init__(self, channels: int, *, act: bool = True) -> None:
        super().__init__(channels, eps=_EPSILON)
        self.act = nn.ReLU6(inplace=True) if act else nn.Identity()

    def forward(self, x: Tensor, own: float = 0.0) -> Tensor:
        """The norm with this share of each image's own statistics, and the activation."""
        normal = super().forward(x)
        out: Tensor = self.act(with_own_statistics(normal, self.weight, self.bias, own) if own else normal)
        return out


class SameConv(nn.Conv2d):
    """A convolution with stride whose padding is TensorFlow's: what is left over goes to the right and below.

    Args:
        channels: that come in.
        out: that go out.
        kernel: its side.
        stride: in both directions.
        groups: of channels that are kept apart.
    """

    def __init__(self, channels: int, out: int, kernel: int, *, stride: int, groups: int = 1) -> None:
        super().__init__(channels, out, kernel, stride=stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of the padded images."""
        rows, columns = (self.padded(int(side)) for side in x.shape[-2:])
        return F.conv2d(F.pad(x, (*columns, *rows)), self.weight, self.bias, self.stride, 0, 1, self.groups)

    def padded(self, side: int) -> tuple[int, int]:
        """How many pixels are added before and after a side of so many."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        missing = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
        return missing // 2, missing - missing // 2


def _depthwise(channels: int, kernel: int, stride: int) -> nn.Conv2d:
    if stride > 1:
        return SameConv(channels, channels, kernel, stride=stride, groups=channels)
    return nn.Conv2d(channels, channels, kernel, padding=kernel // 2, groups=channels, bias=False)


class _Separable(nn.Module):
    """Depthwise and pointwise convolution: the first stage."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.conv_dw = _depthwise(channels, 3, 1)
        self.bn1 = NormAct(channels)
        self.conv_pw = nn.Conv2d(channels, out, 1, bias=False)
        self.bn2 = NormAct(out, act=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.bn2(self.conv_pw(self.bn1(self.conv_dw(x))))
        return out


class Inverted(nn.Module):
    """Expand, depthwise convolution, project; added to its input where the shapes are the same.

    Args:
        channels: that come in.
        out: that go out.
        kernel: side of the depthwise convolution.
        stride: of it.
    """

    def __init__(self, channels: int, out: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = _EXPANSION * channels
        self.conv_pw = nn.Conv2d(channels, wide, 1, bias=False)
        self.bn1 = NormAct(wide)
        self.conv_dw = _depthwise(wide, kernel, stride)
        self.bn2 = NormAct(wide)
        self.conv_pwl = nn.Conv2d(wide, out, 1, bias=False)
        self.bn3 = NormAct(out, act=False)
        self.adds = stride == 1 and channels == out

    def forward(self, x: Tensor, own: float = 0.0) -> Tensor:
        """The block's output; `own` is the share of an image's own statistics in its last norm.

        The last norm is the one before which channels are few: there a look at the statistics costs next to nothing.
        """
        inner = self.bn2(self.conv_dw(self.bn1(self.conv_pw(x))))
        projected = self.conv_pwl(inner)
        out: Tensor = self.bn3(projected, own) if own else self.bn3(projected)
        return out + x if self.adds else out


def _stage(before: int, after: int, blocks: int, kernel: int, stride: int) -> nn.Sequential:
    first = Inverted(before, after, kernel, stride)
    return nn.Sequential(first, *(Inverted(after, after, kernel, 1) for _ in range(blocks - 1)))


def _scaled(channels: int, factor: float) -> int:
    """A multiple of 8, at most a tenth below the exact width."""
    exact = channels * factor
    rounded = max(8, int(exact + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * exact else rounded
