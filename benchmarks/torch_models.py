"""Small neural networks in PyTorch, built in code: for measurements of operators and of runs.

They need no download and no training: weights and inputs come from a seeded generator.
`MODELS` names the networks and the shapes of their inputs; `build` makes one. On a CUDA device
they are wider (`SCALES`), and of half precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """One layer of a transformer with heads of 64 numbers and Gelu."""

    def __init__(self, width: int, *, causal: bool) -> None:
        super().__init__()
        self.causal, self.heads = causal, width // 64
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Attend over the tokens of a sequence, then transform each."""
        batch, tokens, width = x.shape
        split = self.qkv(self.before(x)).view(batch, tokens, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        x = x + self.mixed(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.dense(self.after(x))


class Residual(nn.Module):
    """Two convolutions with batch normalisation beside a short cut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the convolutions find to the short cut."""
        return functional.relu(self.body(x) + self.short(x))


class Recurrent(nn.Module):
    """An LSTM of two layers; its last state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Read the tokens one after another."""
        return self.lstm(x)[0][:, -1]


class Patches(nn.Module):
    """Squares of an image, as the tokens of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 8, 8)

    def forward(self, x: Tensor) -> Tensor:
        """Cut an image into squares."""
        return self.cut(x).flatten(2).transpose(1, 2)


class Mean(nn.Module):
    """The mean over the tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """Take the mean."""
        return x.mean(1)


class Mixing(nn.Module):
    """Dense layers over 64 tokens, then over the width of each."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.width = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Mix the tokens, then the numbers of each."""
        x = x + self.tokens(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.width(self.after(x))


class Down(nn.Module):
    """An hourglass: halve an image, do the rest, double it again, beside a short cut."""

    def __init__(self, inputs: int, outputs: int, rest: nn.Module) -> None:
        super().__init__()
        self.shrink = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, 2, 1), nn.GroupNorm(4, outputs), nn.SiLU()
        )
        self.rest = rest
        self.grow = nn.ConvTranspose2d(outputs, inputs, 2, 2)
        self.join = nn.Conv2d(2 * inputs, inputs, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Go through the narrow part and join the result with what was there."""
        deep = self.grow(self.rest(self.shrink(x)))
        return functional.silu(self.join(torch.cat([x, deep], 1)))


class Separable(nn.Module):
    """A convolution over each channel alone, then dense layers over the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.each = nn.Conv2d(width, width, 7, 1, 3, groups=width)
        self.dense = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Add what the layers find."""
        return x + self.dense(self.each(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Recommender(nn.Module):
    """Vectors of 26 categories, the products of all pairs of them, and dense layers."""

    #: Inputs are numbers of categories.
    categories = 10_000

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vectors = nn.Embedding(self.categories, width)
        self.dense = nn.Sequential(
            nn.Linear(26 * 26, 4 * width), nn.ReLU(), nn.Linear(4 * width, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Look the categories up and compare them."""
        found = self.vectors(x)
        return self.dense(torch.bmm(found, found.transpose(1, 2)).flatten(1))


class Experts(nn.Module):
    """Eight dense networks, of which each token weighs the two that suit it best."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, 8, bias=False)
        self.inner = nn.Parameter(torch.randn(8, width, 2 * width) / width**0.5)
        self.outer = nn.Parameter(torch.randn(8, 2 * width, width) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Let all experts see all tokens, and keep two opinions."""
        tokens = x.flatten(0, 1)
        best, which = self.router(tokens).softmax(-1).topk(2)
        weights = torch.zeros_like(tokens[:, :8]).scatter(1, which, best)
        opinions = torch.bmm(
            functional.silu(torch.bmm(tokens.expand(8, -1, -1), self.inner)), self.outer
        )
        return x + (opinions * weights.T.unsqueeze(-1)).sum(0).view_as(x)


def mlp(scale: int) -> nn.Module:
    """Four dense layers of width 512."""
    width = 512 * scale
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers)


def encoder(scale: int) -> nn.Module:
    """Two layers of a transformer encoder, width 256."""
    return nn.Sequential(*(Block(256 * scale, causal=False) for _ in range(2)))


def decoder(scale: int) -> nn.Module:
    """Three layers of a causal transformer, width 256, and a vocabulary of 1,000."""
    blocks = (Block(256 * scale, causal=True) for _ in range(3))
    return nn.Sequential(*blocks, nn.Linear(256 * scale, 1000 * scale))


def resnet(scale: int) -> nn.Module:
    """Three residual blocks on images, 16 to 64 channels."""
    return nn.Sequential(
        nn.Conv2d(3, 16 * scale, 3, 1, 1),
        Residual(16 * scale, 16 * scale, 1),
        Residual(16 * scale, 32 * scale, 2),
        Residual(32 * scale, 64 * scale, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64 * scale, 10),
    )


def mobilenet(scale: int) -> nn.Module:
    """Four separable convolutions with batch normalisation on images, 32 channels."""
    width = 32 * scale
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 2, 1)]
    for stride in (1, 2, 1, 2):
        layers += [
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardswish(),
            nn.Conv2d(width, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardswish(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def lstm(scale: int) -> nn.Module:
    """Two layers of an LSTM, width 128; the last state."""
    return Recurrent(128 * scale)


def vit(scale: int) -> nn.Module:
    """Two layers of a transformer, width 192, on the squares of an image."""
    width = 192 * scale
    blocks = (Block(width, causal=False) for _ in range(2))
    return nn.Sequential(Patches(width), *blocks, Mean(), nn.Linear(width, 100))


def mixer(scale: int) -> nn.Module:
    """Three layers that mix 64 squares of an image, width 192, without attention."""
    width = 192 * scale
    return nn.Sequential(
        Patches(width), *(Mixing(width) for _ in range(3)), Mean(), nn.Linear(width, 100)
    )


def unet(scale: int) -> nn.Module:
    """Two hourglasses, one inside the other, with group normalisation, 16 to 64 channels."""
    width = 16 * scale
    inner = Down(2 * width, 4 * width, nn.Conv2d(4 * width, 4 * width, 3, 1, 1))
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1), Down(width, 2 * width, inner), nn.Conv2d(width, 3, 1)
    )


def convnext(scale: int) -> nn.Module:
    """Three separable convolutions of 7 by 7 on squares of an image, 64 channels."""
    width = 64 * scale
    return nn.Sequential(
        nn.Conv2d(3, width, 4, 4),
        *(Separable(width) for _ in range(3)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 100),
    )


def recommender(scale: int) -> nn.Module:
    """Vectors of 64 numbers for 26 categories, their products, and two dense layers."""
    return Recommender(64 * scale)


def experts(scale: int) -> nn.Module:
    """Two layers of a causal transformer with eight experts, width 128."""
    width = 128 * scale
    return nn.Sequential(
        *(layer for _ in range(2) for layer in (Block(width, causal=True), Experts(width)))
    )


@dataclass(frozen=True)
class Network:
    """How to make a network at a scale, and the shapes of its inputs by kind of device.

    Batch first, smallest first.
    """

    make: Callable[[int], nn.Module]
    shapes: Mapping[str, tuple[tuple[int, ...], ...]]


def _of(make: Callable[[int], nn.Module], on_cpu: Any, *inner: Any) -> Network:
    """Return a network with its shapes on the CPU, and its batches of a shape on a CUDA device."""
    batches, shape = inner
    return Network(make, {"cpu": on_cpu, "cuda": tuple((batch, *shape) for batch in batches)})


#: Networks by name.
MODELS: Mapping[str, Network] = {
    "mlp": _of(mlp, ((1, 512), (64, 512)), (1, 256, 4096), (2048,)),
    "encoder": _of(encoder, ((1, 32, 256), (2, 128, 256)), (1, 4, 16), (256, 1024)),
    "decoder": _of(decoder, ((1, 16, 256), (4, 64, 256)), (1, 4, 16), (512, 1024)),
    "resnet": _of(resnet, ((1, 3, 32, 32), (4, 3, 64, 64)), (1, 16, 64), (3, 64, 64)),
    "mobilenet": _of(mobilenet, ((1, 3, 64, 64), (8, 3, 64, 64)), (1, 16, 128), (3, 128, 128)),
    "lstm": _of(lstm, ((1, 16, 128), (8, 32, 128)), (1, 16, 128), (64, 512)),
    "vit": _of(vit, ((1, 3, 32, 32), (4, 3, 64, 64)), (1, 8, 64), (3, 128, 128)),
    "mixer": _of(mixer, ((1, 3, 64, 64), (4, 3, 64, 64)), (1, 16, 128), (3, 64, 64)),
    "unet": _of(unet, ((1, 3, 32, 32), (2, 3, 64, 64)), (1, 8, 32), (3, 128, 128)),
    "convnext": _of(convnext, ((1, 3, 32, 32), (4, 3, 64, 64)), (1, 8, 64), (3, 128, 128)),
    "recommender": _of(recommender, ((16, 26), (256, 26)), (64, 1024, 8192), (26,)),
    "experts": _of(experts, ((1, 16, 128), (4, 32, 128)), (1, 8, 32), (256, 512)),
}
MODES = ("inference", "training")
PHASES = ("forward", "backward", "optimizer")
#: How much wider the networks are on a device than their descriptions say.
SCALES = {"cpu": 1, "cuda": 4}

#: A run of a network; it enters each of its phases as a context that it makes of the name.
Step = Callable[[Callable[[str], AbstractContextManager[Any]]], Any]


def type_on(device: str) -> torch.dtype:
    """Return the type of weights and inputs."""
    return torch.bfloat16 if device == "cuda" else torch.float32


@dataclass(frozen=True)
class Built:
    """A network with an input, and what a run of it does."""

    module: nn.Module
    given: Tensor
    mode: str

    def step(self) -> Step:
        """Return a run: the forward pass, or a step of gradient descent."""
        module, given = self.module, self.given
        if self.mode == "inference":

            def infer(_: Any) -> Any:
                with torch.inference_mode():
                    return module(given)

            return infer
        # A rate of nothing: the weights stay what they are, run after run.
        descent = torch.optim.SGD(module.parameters(), lr=0.0)

        def train(phase: Callable[[str], AbstractContextManager[Any]]) -> None:
            with phase("forward"):
                loss = module(given).square().mean()
            with phase("backward"):
                loss.backward()
            with phase("optimizer"):
                descent.step()
                descent.zero_grad()

        return train


def build(model: str, shape: tuple[int, ...], mode: str, device: str) -> Built:
    """Build a network of `MODELS` for inference or training on a device."""
    torch.manual_seed(17)
    module = MODELS[model].make(SCALES[device]).train(mode == "training")
    if categories := getattr(module, "categories", None):
        given = torch.randint(categories, shape)
    else:
        given = torch.randn(shape).to(type_on(device))
    return Built(module.to(device, type_on(device)), given.to(device), mode)
