"""Small neural networks in PyTorch, built in code: for measurements of operators and of runs.

They need no download and no training: weights and inputs come from a seeded generator.
`MODELS` names the networks and the shapes of their inputs; `build` makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """One layer of a transformer: width 256, 4 heads, Gelu."""

    def __init__(self, *, causal: bool, width: int = 256, heads: int = 4) -> None:
        super().__init__()
        self.causal, self.heads = causal, heads
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
    """An LSTM of two layers, width 128; its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(128, 128, num_layers=2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Read the tokens one after another."""
        return self.lstm(x)[0][:, -1]


def mlp() -> nn.Module:
    """Four dense layers of width 512."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())]
    return nn.Sequential(*layers)


def encoder() -> nn.Module:
    """Two layers of a transformer encoder."""
    return nn.Sequential(Block(causal=False), Block(causal=False))


def decoder() -> nn.Module:
    """Three layers of a causal transformer and a vocabulary of 1,000."""
    return nn.Sequential(*(Block(causal=True) for _ in range(3)), nn.Linear(256, 1000))


def resnet() -> nn.Module:
    """Three residual blocks on images."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def mobilenet() -> nn.Module:
    """Four separable convolutions with batch normalisation on images."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1)]
    for stride in (1, 2, 1, 2):
        layers += [
            nn.Conv2d(32, 32, 3, stride, 1, groups=32, bias=False),
            nn.BatchNorm2d(32),
            nn.Hardswish(),
            nn.Conv2d(32, 32, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.Hardswish(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


#: Networks by name, with the shapes of their inputs: batch first, smallest first.
MODELS: Mapping[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "mlp": (mlp, ((1, 512), (64, 512))),
    "encoder": (encoder, ((1, 32, 256), (2, 128, 256))),
    "decoder": (decoder, ((1, 16, 256), (4, 64, 256))),
    "resnet": (resnet, ((1, 3, 32, 32), (4, 3, 64, 64))),
    "mobilenet": (mobilenet, ((1, 3, 64, 64), (8, 3, 64, 64))),
    "lstm": (Recurrent, ((1, 16, 128), (8, 32, 128))),
}
MODES = ("inference", "training")


@dataclass(frozen=True)
class Built:
    """A network with an input, and what a run of it does."""

    module: nn.Module
    given: Tensor
    mode: str

    def step(self) -> Callable[[], Any]:
        """Return a run: the forward pass, or a step of gradient descent."""
        module, given = self.module, self.given
        if self.mode == "inference":

            def infer() -> Any:
                with torch.inference_mode():
                    return module(given)

            return infer
        # A rate of nothing: the weights stay what they are, run after run.
        descent = torch.optim.SGD(module.parameters(), lr=0.0)

        def train() -> None:
            descent.zero_grad()
            module(given).square().mean().backward()
            descent.step()

        return train


def build(model: str, shape: tuple[int, ...], mode: str, device: str) -> Built:
    """Build a network of `MODELS` for inference or training on a device."""
    torch.manual_seed(17)
    module = MODELS[model][0]().train(mode == "training")
    return Built(module.to(device), torch.randn(shape).to(device), mode)
