"""Kernels of a transformer layer on one of the devices that share it."""

from __future__ import annotations

from collections.abc import Mapping

from errcomp.propagation.examples._figures import BF16, Accelerator, Transformer, Work, gemm

__all__ = ["backward", "elementwise", "forward", "head"]


def elementwise(name: str, size: float) -> Work:
    """Return the work of a kernel that only moves bytes."""
    return Work(name, "elementwise", 0.0, size)


def forward(
    model: Transformer, device: Accelerator, tensor_parallel: int, *, batch: int, length: int
) -> dict[Work, int]:
    """Return the kernels of the forward pass of a layer, and how often each runs.

    Matrices are divided by columns, then by rows; norms and residuals are done by every rank.

    Parameters
    ----------
    model : Transformer
    device : Accelerator
    tensor_parallel : int
        Devices that share the layer.
    batch, length : int
        Sequences, and tokens of each.

    References
    ----------
    Shoeybi et al. (2019), "Megatron-LM: Training multi-billion parameter language models using
    model parallelism", arXiv:1909.08053. Dao et al. (2022), "FlashAttention: Fast and
    memory-efficient exact attention with IO-awareness", NeurIPS 35.
    """
    tp, t, h = tensor_parallel, batch * length, model.hidden
    eta = device.gemm_efficiency
    across = BF16 * t * h
    attention = Work(
        "attention",
        "attention",
        # Two products of 2 l² d operations per head, half of them masked.
        2 * batch * length**2 * model.head * model.heads // tp,
        BF16 * t * (model.qkv + h) // tp,
        efficiency=device.attention_efficiency,
    )
    rotated = (model.heads + model.kv_heads) * model.head // tp
    return {
        elementwise("norm", 2 * across): 2,
        gemm("qkv", t, model.qkv // tp, h, efficiency=eta): 1,
        elementwise("rotary", 2 * BF16 * t * rotated): 1,
        attention: 1,
        gemm("projection", t, h, h // tp, efficiency=eta): 1,
        elementwise("residual", 3 * across): 2,
        gemm("gate and up", t, 2 * model.ffn // tp, h, efficiency=eta): 1,
        elementwise("swiglu", 3 * BF16 * t * model.ffn // tp): 1,
        gemm("down", t, h, model.ffn // tp, efficiency=eta): 1,
    }


#: Bytes moved backward per byte forward: one more operand to read, and its gradient to write.
_TRAFFIC = {"norm": (3, 2), "residual": (1, 1), "rotary": (1, 1), "swiglu": (5, 3)}


def backward(passed: Mapping[Work, int]) -> dict[Work, int]:
    """Return the kernels of the backward pass that belong to a forward pass.

    Of each matrix product two: gradients of its inputs and of its weights. Attention computes its
    scores once more: five products for the two of the forward pass.
    """
    out: dict[Work, int] = {}
    for work, count in passed.items():
        if work.kernel_class == "gemm":
            out |= dict.fromkeys(_gradients(work), count)
        elif work.kernel_class == "attention":
            name, flops = f"{work.kernel} backward", work.flops * 5 // 2
            out[Work(name, "attention", flops, 2 * work.bytes, "", work.efficiency)] = count
        else:
            more, of = _TRAFFIC[work.kernel]
            out[elementwise(f"{work.kernel} backward", work.bytes * more // of)] = count
    return out


def _gradients(work: Work) -> tuple[Work, Work]:
    m, n, k = map(int, work.shape.split("x"))
    return (
        gemm(f"{work.kernel}, inputs", m, k, n, efficiency=work.efficiency),
        gemm(f"{work.kernel}, weights", k, n, m, efficiency=work.efficiency),
    )


def head(
    model: Transformer, device: Accelerator, tensor_parallel: int, *, tokens: int
) -> tuple[Work, ...]:
    """Return output matrix and loss, forward, then both gradients of the matrix."""
    width = model.vocabulary // tensor_parallel
    efficiency = device.gemm_efficiency
    matrix = gemm("output matrix", tokens, width, model.hidden, efficiency=efficiency)
    return (matrix, elementwise("loss", 3 * BF16 * tokens * width), *_gradients(matrix))
