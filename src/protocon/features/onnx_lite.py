"""An EfficientNet-Lite written down as an ONNX model, layer by layer.

torch's exporter finds the layers out by running the network, which takes a second that a short run feels. These layers
are known. Norms and padding are part of the convolutions here, so that nothing is copied for them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from protocon.networks.colours import SHADES, ColourShares, WithColours, reduction, regions
from protocon.networks.efficientnet_lite import EfficientNetLite, NormAct, SameConv
from protocon.networks.own_statistics import TINY
from protocon.networks.pooled_blocks import PooledBlocks
from protocon.networks.two_looks import SHARED, TwoLooks

_OPSET, _IR = 17, 8
"""Versions of operators and file that all onnxruntimes since 2022 read."""


def lite_onnx(module: nn.Module, shape: tuple[int, ...]) -> bytes | None:
    """The model file of an EfficientNet-Lite, with pooled blocks, two looks or colours; None for any other network.

    Args:
        module: in evaluation mode.
        shape: of the images, (C, H, W).
    """
    seen = module.backbone if isinstance(module, WithColours) else module
    network = seen.backbone if isinstance(seen, PooledBlocks | TwoLooks) else seen
    if not isinstance(network, EfficientNetLite):
        return None
    graph = _Graph(shape)
    outputs = _looks(graph, seen, network)
    return graph.model([*outputs, graph.colours("x", module.colours)] if isinstance(module, WithColours) else outputs)


def _looks(graph: "_Graph", module: nn.Module, network: EfficientNetLite) -> list[str]:
    """Features of one look or two, with pooled blocks or without."""
    first = module.first if isinstance(module, PooledBlocks | TwoLooks) else len(network.blocks)
    x = graph.layers("x", [network.conv_stem, network.bn1])
    if not isinstance(module, TwoLooks):
        return _stages(graph, network, x, range(len(network.blocks)), first=first)[1]
    x, shared = _stages(graph, network, x, range(SHARED), first=first, last=False)
    later, outputs = range(SHARED, len(network.blocks)), []
    for shares in ([[0.0] * len(stage) for stage in network.stages()], module.shares()):
        _, (own, *pooled) = _stages(graph, network, x, later, first=first, shares=shares)
        outputs += [own, *shared, *pooled]
    return outputs


def _stages(
    graph: "_Graph",
    network: EfficientNetLite,
    x: str,
    numbers: range,
    *,
    first: int,
    last: bool = True,
    shares: list[list[float]] | None = None,
) -> tuple[str, list[str]]:
    """Some stages: what comes out of them, and their means over the image, those of the network's last layer first.

    Args:
        graph: to add to.
        network: its layers.
        x: what comes in.
        numbers: of the stages.
        first: stage from which on means are wanted.
        last: whether the network's last layer follows.
        shares: of an image's own statistics, of each unit of each stage; None for none.
    """
    pooled = []
    for number in numbers:
        for place, unit in enumerate(network.stages()[number]):
            before = x
            x = graph.layers(x, list(unit.children()), own=shares[number][place] if shares else 0.0)
            x = graph.add("Add", [before, x]) if getattr(unit, "adds", False) else x
        if number >= first:
            pooled.append(graph.pooled(x))
    end = [graph.pooled(graph.layers(x, [network.conv_head, network.bn2]))] if last else []
    return x, [*end, *pooled]


class _Graph:
    """Nodes and weights as they come.

    Args:
        shape: of an image.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        import onnx

        self._onnx: Any = onnx
        self._shape = shape
        self._sides: dict[str, tuple[int, int]] = {"x": (shape[1], shape[2])}
        self._nodes: list[Any] = []
        self._convolutions: dict[nn.Conv2d, list[str]] = {}
        self._weights: list[Any] = [self._constant("low", np.float32(0.0)), self._constant("high", np.float32(6.0))]

    def add(self, kind: str, inputs: list[str], **settings: Any) -> str:
        """A node; returns the name of its output, whose sides are those of its first input."""
        name = f"n{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **settings))
        self._sides[name] = self._sides[inputs[0]]
        return name

    def layers(self, x: str, layers: Sequence[nn.Module], own: float = 0.0) -> str:
        """Convolutions, each with its norm; the last norm takes this share of each image's own statistics."""
        pairs = list(zip(layers[::2], layers[1::2], strict=True))
        for place, (convolution, norm) in enumerate(pairs):
            if not isinstance(convolution, nn.Conv2d) or not isinstance(norm, NormAct):
                raise TypeError(f"{type(convolution).__name__} and {type(norm).__name__} in an EfficientNet-Lite")
            x = self._convolution(x, convolution, norm)
            if own and place == len(pairs) - 1:
                x = self._with_own_statistics(x, norm, own)
            if isinstance(norm.act, nn.ReLU6):
                x = self.add("Clip", [x, "low", "high"])
        return x

    def _with_own_statistics(self, x: str, norm: NormAct, share: float) -> str:
        """As `with_own_statistics` has it."""
        bias, squared = norm.bias.detach().view(1, -1, 1, 1), norm.weight.detach().square().view(1, -1, 1, 1)
        mean = self.add("GlobalAveragePool", [x])
        squares = self.add("GlobalAveragePool", [self.add("Mul", [x, x])])
        variance = self.add("Max", [self.add("Sub", [squares, self.add("Mul", [mean, mean])]), "low"])
        shift = self.add("Sub", [mean, self._known(bias)])
        spread = self.add("Mul", [variance, self._known(torch.tensor(share))])
        apart = self.add("Mul", [self.add("Mul", [shift, shift]), self._known(torch.tensor(share * (1.0 - share)))])
        both = self.add("Add", [self.add("Add", [spread, apart]), self._known((1.0 - share) * squared + TINY)])
        scale = self.add("Sqrt", [self.add("Div", [self._known(squared + TINY), both])])
        centre = self.add("Add", [self.add("Mul", [shift, self._known(torch.tensor(share))]), self._known(bias)])
        offset = self.add("Sub", [self._known(bias), self.add("Mul", [centre, scale])])
        return self.add("Add", [self.add("Mul", [x, scale]), offset])

    def _known(self, values: Tensor | np.ndarray) -> str:
        """A constant."""
        name = f"k{len(self._weights)}"
        self._weights.append(self._constant(name, values))
        self._sides[name] = (1, 1)
        return name

    def pooled(self, x: str) -> str:
        """Means over the image, (n, channels)."""
        return self.add("Flatten", [self.add("GlobalAveragePool", [x])], axis=1)

    def colours(self, x: str, layer: ColourShares) -> str:
        """Shares of the shades, (n, 96), as the layer has them."""
        (high, wide), kernel = self._sides[x], reduction(*self._sides[x])
        x = self.add("AveragePool", [x], kernel_shape=kernel, strides=kernel)
        x = self.add("Conv", [x, self._known(layer.mixing), self._known(layer.offset)])
        x = self.add("Clip", [x, "low", self._known(torch.tensor(SHADES - 1.0))])
        x = self.add("Unsqueeze", [x, self._known(torch.tensor([2]))])
        apart = self.add("Abs", [self.add("Sub", [x, self._known(torch.arange(float(SHADES)).view(1, 1, -1, 1, 1))])])
        near = self.add("Relu", [self.add("Sub", [self._known(torch.tensor(1.0)), apart])])
        pixels = regions(high // kernel[0], wide // kernel[1])
        flat = self.add("Reshape", [near, self._known(torch.tensor([0, 3, SHADES, len(pixels)]))])
        return self.add("Flatten", [self.add("MatMul", [flat, self._known(pixels)])], axis=1)

    def _convolution(self, x: str, layer: nn.Conv2d, norm: NormAct) -> str:
        """A convolution whose norm is part of it."""
        high, wide = self._sides[x]
        if layer not in self._convolutions:  # both looks share one copy of the weights
            number = len(self._convolutions)
            assert norm.running_mean is not None
            assert norm.running_var is not None
            weight, bias = fuse_conv_bn_weights(
                layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
            )
            self._weights += [self._constant(f"w{number}", weight), self._constant(f"b{number}", bias)]
            self._convolutions[layer] = [f"w{number}", f"b{number}"]
        inputs = [x, *self._convolutions[layer]]
        (kernel, _), (stride, _) = layer.kernel_size, layer.stride
        if isinstance(layer, SameConv):
            (top, bottom), (left, right) = layer.padded(high), layer.padded(wide)
        else:
            top = bottom = left = right = int(layer.padding[0])
        name = self.add(
            "Conv",
            inputs,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[top, left, bottom, right],
            group=layer.groups,
        )
        self._sides[name] = (high + top + bottom - kernel) // stride + 1, (wide + left + right - kernel) // stride + 1
        return name

    def _constant(self, name: str, values: Tensor | np.generic | np.ndarray) -> Any:
        numbers = values.detach().contiguous().numpy() if isinstance(values, Tensor) else np.asarray(values)
        return self._onnx.numpy_helper.from_array(numbers, name)

    def model(self, outputs: list[str]) -> bytes:
        """The file: these outputs side by side."""
        helper, real = self._onnx.helper, self._onnx.TensorProto.FLOAT
        self._nodes.append(helper.make_node("Concat", outputs, ["features"], axis=1))
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info("x", real, ["n", *self._shape])],
            [helper.make_tensor_value_info("features", real, ["n", None])],
            self._weights,
        )
        opset = [helper.make_opsetid("", _OPSET)]
        content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=_IR).SerializeToString()
        return content
