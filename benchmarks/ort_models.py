"""Small neural networks as ONNX models, built in code: for measurements of ONNX Runtime.

They need no download and no training: weights and inputs come from a seeded generator, scaled so
that activations stay near one. Shapes are static. Opset 17 and IR version 8, which every release
of ONNX Runtime from 1.15 reads. What the optimiser fuses (batch normalisation, Gelu, skip
connections, quantised operators) is written out, so that each release shows what it makes of it.

`MODELS` names the networks and their shapes, `build` makes one, `save` writes one as NAME.onnx
with its inputs beside it in NAME.npz: to run these, neither this module nor onnx is needed.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from ort_net import (
    Net,
    attend,
    conv,
    conv_int8,
    gelu,
    layer_norm,
    linear,
    linear_int8,
    quantised,
    rms_norm,
    split_heads,
    swish,
)

Linear = Callable[[Net, str, int, int], str]


@dataclass(frozen=True)
class Built:
    """A network at one shape, with inputs to run it on."""

    model: str
    input: str
    batch: int
    proto: onnx.ModelProto
    feeds: Mapping[str, NDArray[Any]]

    @property
    def name(self) -> str:
        """Name of the files."""
        return f"{self.model}_{self.input}"

    @property
    def parameters(self) -> int:
        """Count the numbers in its weights and constants."""
        return sum(math.prod(weight.dims) for weight in self.proto.graph.initializer)

    def save(self, folder: Path) -> Path:
        """Write NAME.onnx, whose path is returned, and the inputs in NAME.npz."""
        path = folder / f"{self.name}.onnx"
        path.write_bytes(self.proto.SerializeToString(deterministic=True))
        np.savez(path.with_suffix(".npz"), **self.feeds)
        return path


# Networks: each takes a Net and a shape and returns its outputs.


def encoder(net: Net, batch: int, tokens: int, dense: Linear = linear) -> list[str]:
    """Two layers of a transformer encoder: width 256, 4 heads, Gelu."""
    width, heads, shape = 256, 4, (batch, tokens, 256)
    x = net.input(*shape)
    for _ in range(2):
        query, key, value = (
            split_heads(net, dense(net, x, width, width), shape, heads) for _ in range(3)
        )
        mixed = attend(net, (query, key, value), shape, heads)
        x = layer_norm(net, net.op("Add", dense(net, mixed, width, width), x), width)
        hidden = gelu(net, dense(net, x, width, 4 * width))
        x = layer_norm(net, net.op("Add", dense(net, hidden, 4 * width, width), x), width)
    return [x]


def encoder_int8(net: Net, batch: int, tokens: int) -> list[str]:
    """Quantise the matrix products of the encoder dynamically."""
    return encoder(net, batch, tokens, linear_int8)


def decoder(net: Net, batch: int, tokens: int, past: int = 0, width: int = 256) -> list[str]:
    """Two layers of a causal decoder over new tokens: width 256, 4 heads, RMS norm, gated.

    With a past, keys and values of earlier tokens are inputs, and those of all are outputs.
    """
    heads, shape = 4, (batch, tokens, width)
    x, outputs = net.input(*shape), []
    mask = net.constant(np.triu(np.full((tokens, tokens), -1e4), 1)) if tokens > 1 else ""
    for _ in range(2):
        y = rms_norm(net, x, width)
        query, key, value = (
            split_heads(net, linear(net, y, width, width), shape, heads) for _ in range(3)
        )
        if past:
            cache = (batch, heads, past, width // heads)
            key = net.op("Concat", net.input(*cache), key, axis=2)
            value = net.op("Concat", net.input(*cache), value, axis=2)
            outputs += [key, value]
        mixed = attend(net, (query, key, value), shape, heads, mask)
        x = net.op("Add", x, linear(net, mixed, width, width))
        y = rms_norm(net, x, width)
        gate = swish(net, linear(net, y, width, 2 * width))
        hidden = net.op("Mul", gate, linear(net, y, width, 2 * width))
        x = net.op("Add", x, linear(net, hidden, 2 * width, width))
    return [x, *outputs]


def decoder_step(net: Net, batch: int, past: int) -> list[str]:
    """Make one more token with the decoder, at width 384, from keys and values of the past."""
    return decoder(net, batch, 1, past, width=384)


def resnet(net: Net, batch: int, size: int) -> list[str]:
    """Three stages of two residual blocks, 32 to 128 channels."""
    x = net.op("Relu", conv(net, net.input(batch, 3, size, size), 3, 32, size=7, stride=2))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    before = 32
    for channels in (32, 64, 128):
        for block in range(2):
            stride = 2 if block == 0 and channels > 32 else 1
            y = net.op("Relu", conv(net, x, before, channels, stride=stride))
            y = conv(net, y, channels, channels)
            if before != channels:
                x = conv(net, x, before, channels, size=1, stride=stride)
            x, before = net.op("Relu", net.op("Add", y, x)), channels
    return classify(net, x, before)


def resnet_int8(net: Net, batch: int, size: int) -> list[str]:
    """Build the same with 8-bit weights and activations, quantised beforehand."""
    x = quantised(net, net.input(batch, 3, size, size))
    x = quantised(net, net.op("Relu", conv_int8(net, x, 3, 32, size=7, stride=2)))
    x = quantised(net, net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
    before = 32
    for channels in (32, 64, 128):
        for block in range(2):
            stride = 2 if block == 0 and channels > 32 else 1
            y = quantised(net, net.op("Relu", conv_int8(net, x, before, channels, stride=stride)))
            y = quantised(net, conv_int8(net, y, channels, channels))
            if before != channels:
                x = quantised(net, conv_int8(net, x, before, channels, size=1, stride=stride))
            x, before = quantised(net, net.op("Relu", net.op("Add", y, x))), channels
    return classify(net, x, before)


def mobilenet(net: Net, batch: int, size: int) -> list[str]:
    """Inverted residual blocks with depthwise convolutions, 16 to 64 channels."""
    low, high = net.constant(0.0), net.constant(6.0)

    def step(x: str, *channels: int, **attributes: int) -> str:
        return net.op("Clip", conv(net, x, *channels, **attributes), low, high)

    x, before = step(net.input(batch, 3, size, size), 3, 16, stride=2), 16
    for channels, stride in ((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        wide = 6 * before
        y = step(x, before, wide, size=1)
        y = step(y, wide, wide, stride=stride, group=wide)
        y = conv(net, y, wide, channels, size=1)
        x = net.op("Add", x, y) if before == channels and stride == 1 else y
        before = channels
    return classify(net, x, before)


def classify(net: Net, x: str, channels: int) -> list[str]:
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    weights = net.weight(channels, 100, spread=channels**-0.5)
    return [net.op("Softmax", net.op("Gemm", x, weights, net.weight(100, spread=0.1)), axis=-1)]


def mlp(net: Net, batch: int) -> list[str]:
    """Four layers: 512, 1024, 1024, 512, 10."""
    x, sizes = net.input(batch, 512), (512, 1024, 1024, 512, 10)
    for inputs, outputs in itertools.pairwise(sizes):
        weights = net.weight(inputs, outputs, spread=(2 / inputs) ** 0.5)
        x = net.op("Gemm", x, weights, net.weight(outputs, spread=0.1))
        x = net.op("Relu", x) if outputs > 10 else x
    return [x]


def lstm(net: Net, batch: int, tokens: int) -> list[str]:
    """Two LSTM layers of 128 over a sequence, and a dense layer on the last state."""
    x, width, last = net.input(tokens, batch, 128), 128, ""
    for _ in range(2):
        weights = net.weight(1, 4 * width, width, spread=width**-0.5)
        recurrent = net.weight(1, 4 * width, width, spread=width**-0.5)
        bias = net.weight(1, 8 * width, spread=0.1)
        y, last = net.ops(2, "LSTM", x, weights, recurrent, bias, hidden_size=width)
        x = net.op("Squeeze", y, net.constant([1], np.int64))
    last = net.op("Squeeze", last, net.constant([0], np.int64))
    return [linear(net, last, width, 32)]


# One operator each, four or six times over, as releases change them one by one.


def layernorm(net: Net, tokens: int, width: int) -> list[str]:
    """Six times a skip connection and a layer norm."""
    x = first = net.input(1, tokens, width)
    for _ in range(6):
        x = layer_norm(net, net.op("Add", x, first), width)
    return [x]


def gelus(net: Net, tokens: int, width: int) -> list[str]:
    """Six times Gelu."""
    x = net.input(1, tokens, width)
    for _ in range(6):
        x = gelu(net, x)
    return [x]


def softmax(net: Net, heads: int, tokens: int) -> list[str]:
    """Six times a sum and a softmax over the last axis."""
    x = first = net.input(1, heads, tokens, tokens)
    for _ in range(6):
        x = net.op("Softmax", net.op("Add", x, first), axis=-1)
    return [x]


def resize(net: Net, channels: int, size: int) -> list[str]:
    """Up linearly, down to the nearest, up cubically, down linearly."""
    x = net.input(1, channels, size, size)
    for factor, attributes in (
        (2.0, {"mode": "linear"}),
        (0.5, {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}),
        (2.0, {"mode": "cubic"}),
        (0.5, {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
    ):
        x = net.op("Resize", x, "", net.constant([1, 1, factor, factor]), **attributes)
    return [x]


def gather(net: Net, batch: int, tokens: int) -> list[str]:
    """Embeddings of words, positions and segments, their sum and its greatest values."""
    width, names = 256, []
    for rows in (8000, tokens, 2):
        table = net.weight(rows, width, spread=1)
        names.append(net.op("Gather", table, net.input(batch, tokens, below=rows)))
    word, place, part = names
    total = net.op("Add", net.op("Add", word, place), part)
    return [net.op("ReduceMax", total, axes=[1], keepdims=0)]


def gemm(net: Net, rows: int, width: int) -> list[str]:
    """Four dense layers without activation: a control that releases should not change."""
    x = net.input(rows, width)
    for _ in range(4):
        weights = net.weight(width, width, spread=width**-0.5)
        x = net.op("Gemm", x, weights, net.weight(width, spread=0.1))
    return [x]


def convs(net: Net, channels: int, size: int) -> list[str]:
    """Four 3x3 convolutions without activation: a control like gemm."""
    x = net.input(1, channels, size, size)
    for _ in range(4):
        weights = net.weight(channels, channels, 3, 3, spread=(9 * channels) ** -0.5)
        x = net.op("Conv", x, weights, pads=[1] * 4)
    return [x]


#: Name to the function that builds it and its shapes: the arguments of that function, the smallest
#: shape first.
MODELS: Mapping[str, tuple[Callable[..., list[str]], tuple[tuple[int, ...], ...]]] = {
    "encoder": (encoder, ((1, 32), (1, 96), (2, 64))),
    "encoder_int8": (encoder_int8, ((1, 32), (1, 96))),
    "decoder": (decoder, ((1, 32), (1, 96))),
    "decoder_step": (decoder_step, ((1, 64), (1, 256), (4, 128))),
    "resnet": (resnet, ((1, 64), (1, 112), (2, 96))),
    "resnet_int8": (resnet_int8, ((1, 64), (1, 112))),
    "mobilenet": (mobilenet, ((1, 64), (1, 128), (2, 96))),
    "mlp": (mlp, ((1,), (8,), (32,))),
    "lstm": (lstm, ((1, 8), (1, 32), (8, 16))),
    "layernorm": (layernorm, ((64, 256), (256, 512))),
    "gelu": (gelus, ((64, 512), (128, 1024))),
    "softmax": (softmax, ((4, 64), (4, 192))),
    "resize": (resize, ((8, 16), (8, 32))),
    "gather": (gather, ((2, 128), (8, 128))),
    "gemm": (gemm, ((8, 512), (96, 512))),
    "conv": (convs, ((32, 16), (32, 48))),
}


def build(model: str, shape: tuple[int, ...]) -> Built:
    """Build a network of `MODELS` at a shape; the same arguments give the same bytes."""
    function, _ = MODELS[model]
    _, *names = inspect.signature(function).parameters
    named = dict(zip(names, shape, strict=False))
    net = Net(model)
    proto, feeds = net.finish(*function(net, **named))
    # Batch 1 and 64 tokens are b1t64.
    label = "".join(f"{name[0]}{size}" for name, size in named.items())
    return Built(model, label, named.get("batch", 1), proto, feeds)


def all_models(*, smallest: bool = False) -> Iterator[Built]:
    """Build every network at every shape, or each at its smallest."""
    for model, (_, shapes) in MODELS.items():
        for shape in shapes[:1] if smallest else shapes:
            yield build(model, shape)
