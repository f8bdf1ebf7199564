"""A builder of ONNX graphs, and the parts that networks in `ort_models` are made of."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET = 17
IR_VERSION = 8
SEED = 17


class Net:
    """A graph that grows by one operator at a time; tensors are known by their names."""

    def __init__(self, name: str) -> None:
        self.name = name
        # One generator each: the weights of a network do not depend on the shape of its inputs.
        self.of_weights = np.random.default_rng([SEED, zlib.crc32(name.encode())])
        self.of_inputs = np.random.default_rng([SEED, zlib.crc32(name.encode()), 1])
        self.feeds: dict[str, NDArray[Any]] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def input(self, *shape: int, below: int | None = None) -> str:
        """Add an input of normal numbers, or of whole numbers below a bound."""
        name = f"input{len(self.feeds)}"
        if below is None:
            self.feeds[name] = self.of_inputs.standard_normal(shape, np.float32)
        else:
            self.feeds[name] = self.of_inputs.integers(0, below, shape, np.int64)
        return name

    def constant(self, values: Any, kind: type = np.float32) -> str:
        """Add numbers that are known."""
        name = f"constant{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, kind), name))
        return name

    def weight(self, *shape: int, spread: float) -> str:
        """Add normal weights with this standard deviation."""
        return self.constant(spread * self.of_weights.standard_normal(shape, np.float32))

    def int8(self, *shape: int) -> str:
        """Add weights that are uniform over 8 bits."""
        return self.constant(self.of_weights.integers(-127, 128, shape), np.int8)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator and return its first output."""
        return self.ops(1, kind, *inputs, **attributes)[0]

    def ops(self, outputs: int, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add an operator and return this many of its outputs."""
        name = f"{kind}_{len(self.nodes)}"
        found = [f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, found, name=name, **attributes))
        return found

    def finish(self, *outputs: str) -> tuple[onnx.ModelProto, Mapping[str, NDArray[Any]]]:
        """Return the checked model, all shapes inferred, and its inputs."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape
                )
                for name, values in self.feeds.items()
            ],
            [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
            self.weights,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="errcomp",
        )
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(model)
        return model, self.feeds


# Parts of networks: each takes the name of a tensor and returns another.


def linear(net: Net, x: str, inputs: int, outputs: int) -> str:
    product = net.op("MatMul", x, net.weight(inputs, outputs, spread=inputs**-0.5))
    return net.op("Add", product, net.weight(outputs, spread=0.1))


def linear_int8(net: Net, x: str, inputs: int, outputs: int) -> str:
    """Dynamic quantisation: 8-bit weights, and inputs that are quantised when they are known."""
    quantised, scale, zero = net.ops(3, "DynamicQuantizeLinear", x)
    product = net.op("MatMulInteger", quantised, net.int8(inputs, outputs), zero)
    # 127 / √3 is the standard deviation of the weights.
    weight_scale = net.constant(3**0.5 / 127 * inputs**-0.5)
    product = net.op("Cast", product, to=onnx.TensorProto.FLOAT)
    product = net.op("Mul", product, net.op("Mul", scale, weight_scale))
    return net.op("Add", product, net.weight(outputs, spread=0.1))


def layer_norm(net: Net, x: str, width: int) -> str:
    scale, shift = net.constant(np.ones(width)), net.weight(width, spread=0.1)
    return net.op("LayerNormalization", x, scale, shift, axis=-1)


def rms_norm(net: Net, x: str, width: int) -> str:
    squares = net.op("Pow", x, net.constant(2.0))
    mean = net.op("ReduceMean", squares, axes=[-1], keepdims=1)
    root = net.op("Sqrt", net.op("Add", mean, net.constant(1e-5)))
    return net.op("Mul", net.op("Div", x, root), net.constant(np.ones(width)))


def gelu(net: Net, x: str) -> str:
    error = net.op("Erf", net.op("Div", x, net.constant(2**0.5)))
    one_more = net.op("Add", error, net.constant(1.0))
    return net.op("Mul", net.op("Mul", x, one_more), net.constant(0.5))


def swish(net: Net, x: str) -> str:
    return net.op("Mul", x, net.op("Sigmoid", x))


def split_heads(net: Net, x: str, shape: tuple[int, int, int], heads: int) -> str:
    batch, tokens, width = shape
    parts = net.constant([batch, tokens, heads, width // heads], np.int64)
    return net.op("Transpose", net.op("Reshape", x, parts), perm=[0, 2, 1, 3])


def attend(
    net: Net, parts: tuple[str, str, str], shape: tuple[int, int, int], heads: int, mask: str = ""
) -> str:
    """Scaled dot-product attention of queries, keys and values that are split by head."""
    queries, keys, values = parts
    turned = net.op("Transpose", keys, perm=[0, 1, 3, 2])
    scores = net.op("MatMul", queries, turned)
    scores = net.op("Mul", scores, net.constant((shape[2] // heads) ** -0.5))
    if mask:
        scores = net.op("Add", scores, mask)
    mixed = net.op("MatMul", net.op("Softmax", scores, axis=-1), values)
    mixed = net.op("Transpose", mixed, perm=[0, 2, 1, 3])
    return net.op("Reshape", mixed, net.constant(shape, np.int64))


def conv(net: Net, x: str, inputs: int, outputs: int, **attributes: int) -> str:
    """Convolve with batch normalisation: size, stride and group are attributes."""
    size, group = attributes.get("size", 3), attributes.get("group", 1)
    stride = attributes.get("stride", 1)
    fan_in = inputs // group * size**2
    weights = net.weight(outputs, inputs // group, size, size, spread=fan_in**-0.5)
    x = net.op("Conv", x, weights, strides=[stride] * 2, pads=[size // 2] * 4, group=group)
    mean = net.weight(outputs, spread=0.1)
    shift = net.weight(outputs, spread=0.1)
    ones = net.constant(np.ones(outputs))
    return net.op("BatchNormalization", x, ones, shift, mean, ones)


#: Step of 8-bit activations: they reach from -6.4 to 6.35.
_STEP = 0.05


def quantised(net: Net, x: str) -> str:
    """Round to 8 bits and back: a runtime that can does what lies between two such pairs so."""
    step, zero = net.constant(_STEP), net.constant(128, np.uint8)
    return net.op("DequantizeLinear", net.op("QuantizeLinear", x, step, zero), step, zero)


def conv_int8(net: Net, x: str, inputs: int, outputs: int, **attributes: int) -> str:
    """Convolve 8-bit numbers, one scale per output channel."""
    size, stride = attributes.get("size", 3), attributes.get("stride", 1)
    scales = 3**0.5 / 127 * (inputs * size**2) ** -0.5 * np.ones(outputs)
    weights = net.op(
        "DequantizeLinear", net.int8(outputs, inputs, size, size), net.constant(scales), axis=0
    )
    shift = net.constant(net.of_weights.integers(-100, 101, outputs), np.int32)
    shift = net.op("DequantizeLinear", shift, net.constant(_STEP * scales), axis=0)
    return net.op("Conv", x, weights, shift, strides=[stride] * 2, pads=[size // 2] * 4)
