"""An EfficientNet-Lite written down as an ONNX model, layer by layer.

torch's exporter finds the layers out by running the network, which takes a second that a short run feels. These layers
are known. Padding is part of the convolutions here, so that nothing is copied to pad it.
"""

from typing import Any

import numpy as np
from torch import Tensor, nn

from protocon.networks.efficientnet_lite import EfficientNetLite, SameConv
from protocon.networks.pooled_blocks import PooledBlocks

_OPSET, _IR = 17, 8
"""Versions of operators and file that all onnxruntimes since 2022 read."""


def lite_onnx(module: nn.Module, shape: tuple[int, ...]) -> bytes | None:
    """The model file of an EfficientNet-Lite, with pooled blocks or without; None for any other network.

    Args:
        module: with its norms folded into the convolutions.
        shape: of the images, (C, H, W).
    """
    network = module.backbone if isinstance(module, PooledBlocks) else module
    if not isinstance(network, EfficientNetLite) or any(isinstance(part, nn.BatchNorm2d) for part in network.modules()):
        return None
    graph = _Graph(shape)
    first = module.first if isinstance(module, PooledBlocks) else len(network.blocks)
    x, pooled = graph.chain("x", [network.conv_stem, network.bn1]), []
    for number, stage in enumerate(network.blocks):
        for unit in stage.children():
            before = x
            x = graph.chain(x, list(unit.children()))
            x = graph.add("Add", [before, x]) if getattr(unit, "adds", False) else x
        if number >= first:
            pooled.append(graph.pooled(x))
    x = graph.pooled(graph.chain(x, [network.conv_head, network.bn2]))
    return graph.model([x, *pooled], width=module.num_features if isinstance(module, PooledBlocks) else None)


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
        self._weights: list[Any] = [self._constant("low", np.float32(0.0)), self._constant("high", np.float32(6.0))]

    def add(self, kind: str, inputs: list[str], **settings: Any) -> str:
        """A node; returns the name of its output, whose sides are those of its first input."""
        name = f"n{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], **settings))
        self._sides[name] = self._sides[inputs[0]]
        return name

    def chain(self, x: str, layers: list[nn.Module]) -> str:
        """Layers one after the other."""
        for layer in layers:
            if isinstance(layer, nn.Conv2d):
                x = self._convolution(x, layer)
            elif isinstance(layer, nn.ReLU6):
                x = self.add("Clip", [x, "low", "high"])
            elif not isinstance(layer, nn.Identity):
                raise TypeError(f"{type(layer).__name__} in an EfficientNet-Lite")
        return x

    def pooled(self, x: str) -> str:
        """Means over the image, (n, channels)."""
        return self.add("Flatten", [self.add("GlobalAveragePool", [x])], axis=1)

    def _convolution(self, x: str, layer: nn.Conv2d) -> str:
        number, (high, wide) = len(self._nodes), self._sides[x]
        inputs = [x, f"w{number}"]
        self._weights.append(self._constant(inputs[1], layer.weight))
        if layer.bias is not None:
            inputs.append(f"b{number}")
            self._weights.append(self._constant(inputs[2], layer.bias))
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

    def _constant(self, name: str, values: Tensor | np.generic) -> Any:
        numbers = values.detach().contiguous().numpy() if isinstance(values, Tensor) else np.asarray(values)
        return self._onnx.numpy_helper.from_array(numbers, name)

    def model(self, outputs: list[str], width: int | None) -> bytes:
        """The file: these outputs side by side, so many numbers."""
        helper, real = self._onnx.helper, self._onnx.TensorProto.FLOAT
        self._nodes.append(helper.make_node("Concat", outputs, ["features"], axis=1))
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [helper.make_tensor_value_info("x", real, ["n", *self._shape])],
            [helper.make_tensor_value_info("features", real, ["n", width])],
            self._weights,
        )
        opset = [helper.make_opsetid("", _OPSET)]
        content: bytes = helper.make_model(graph, opset_imports=opset, ir_version=_IR).SerializeToString()
        return content
