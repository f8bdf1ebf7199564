"""Figures of hardware and models, the roofline, and the kernels of a transformer layer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from errcomp.errors import InputError
from errcomp.propagation.errors import ClassError, ErrorModel
from errcomp.propagation.graph import Collective, Quantity
from errcomp.propagation.graph.parallelism import Operation
from errcomp.tables import Kernels

#: Bytes of a number in bfloat16.
BF16 = 2
#: Ending of the class of a kernel that waits for the memory.
MEMORY_BOUND = ", memory-bound"
#: Milliseconds in a second: all times of the examples are in milliseconds.
MS = 1e3


def check_figures(figures: Any, *, may_be_zero: Iterable[str] = ()) -> None:
    """Check that all numbers of a dataclass are finite and positive, and whole where they count.

    Raises
    ------
    InputError
        Names the field, the value seen and what it must be.
    """
    zero = set(may_be_zero)
    for field in dataclasses.fields(figures):
        value = getattr(figures, field.name)
        if dataclasses.is_dataclass(value):
            continue
        where = f"{type(figures).__name__}.{field.name}"
        whole = field.type == "int"
        if isinstance(value, bool) or not isinstance(value, int if whole else Real):
            raise InputError(f"{where} must be a {'whole ' * whole}number, got {value!r}")
        least = "not negative" if field.name in zero else "positive"
        if not math.isfinite(value) or value < 0 or (value == 0 and field.name not in zero):
            raise InputError(f"{where} must be finite and {least}, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One device with its links; by default an A100-SXM4-80GB in a node of eight.

    Peak figures are those of the data sheet. Efficiencies and spreads have no source: they are
    assumptions, to be replaced by measurements. A spread is the standard deviation of the logarithm
    of what is achieved over what is assumed: an efficiency of 0.62 with a spread of 0.08 is
    0.62 ± 0.05.

    Attributes
    ----------
    peak_flops : float
        FLOP/s, dense bf16.
    memory_bandwidth, memory : float
        HBM: bytes per second (the data sheet of the 80 GB device says 2,039 GB/s), bytes.
    link_bandwidth : float
        Bytes per second in one direction within the node. NVLink's 600 GB/s count both.
    network_bandwidth : float
        Bytes per second in one direction between nodes, per device: 200 Gb/s InfiniBand.
    link_latency, network_latency : float
        Seconds per message.
    gemm_efficiency, attention_efficiency : float
        Share of peak_flops that matrix products and fused attention reach.
    memory_efficiency, link_efficiency, network_efficiency : float
        Share of the bandwidths that is reached.
    gemm_spread, attention_spread, memory_spread : float
        Log-sd of the efficiency of one kernel.
    link_spread, network_spread : float
        Log-sd of the bandwidth that is reached; one value for the whole job.
    latency_spread : float
        Log-sd of both latencies.

    Raises
    ------
    InputError
        A figure is not positive (spreads and latencies: negative) or not finite.
    """

    peak_flops: float = 312e12
    memory_bandwidth: float = 2.0e12
    memory: float = 80e9
    link_bandwidth: float = 300e9
    network_bandwidth: float = 25e9
    link_latency: float = 2e-6
    network_latency: float = 10e-6
    gemm_efficiency: float = 0.62
    attention_efficiency: float = 0.45
    memory_efficiency: float = 0.80
    link_efficiency: float = 0.78
    network_efficiency: float = 0.85
    gemm_spread: float = 0.08
    attention_spread: float = 0.15
    memory_spread: float = 0.10
    link_spread: float = 0.08
    network_spread: float = 0.10
    latency_spread: float = 0.30

    def __post_init__(self) -> None:
        names = [field.name for field in dataclasses.fields(self)]
        may_be_zero = [n for n in names if n.endswith(("_spread", "_latency"))]
        check_figures(self, may_be_zero=may_be_zero)

    def on_link(self, operation: Operation, ranks: int, size: float) -> Collective:
        """Return a collective within the node; its bandwidth and latency are the same everywhere.

        Parameters
        ----------
        operation : str
            As in `Collective`.
        ranks : int
            Devices.
        size : float
            Bytes.
        """
        achieved = self.link_bandwidth * self.link_efficiency
        return Collective(
            operation,
            ranks,
            size,
            latency=self._latency("link latency", self.link_latency),
            bandwidth=Quantity("link bandwidth", achieved, self.link_spread),
            unit="ms",
        )

    def on_network(self, operation: Operation, ranks: int, size: float) -> Collective:
        """Return a collective between nodes, as `on_link`."""
        achieved = self.network_bandwidth * self.network_efficiency
        return Collective(
            operation,
            ranks,
            size,
            latency=self._latency("network latency", self.network_latency),
            bandwidth=Quantity("network bandwidth", achieved, self.network_spread),
            unit="ms",
        )

    def _latency(self, name: str, value: float) -> Quantity | float:
        return Quantity(name, value, self.latency_spread) if value else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder-only transformer; by default LLaMA-2 70B.

    Attributes
    ----------
    layers, hidden, ffn : int
        Layers, width, width of the feed-forward part (gated: three matrices).
    heads, kv_heads : int
        Query heads; key and value heads (grouped queries).
    vocabulary : int
        Tokens. Embedding and output matrix are not tied.

    Raises
    ------
    InputError
        A value is not a positive whole number, or the heads do not divide the width.

    References
    ----------
    Touvron et al. (2023), "Llama 2: Open foundation and fine-tuned chat models", arXiv:2307.09288.
    """

    layers: int = 80
    hidden: int = 8192
    ffn: int = 28672
    heads: int = 64
    kv_heads: int = 8
    vocabulary: int = 32000

    def __post_init__(self) -> None:
        check_figures(self)
        if self.hidden % self.heads:
            raise InputError(
                f"Transformer.hidden must be a multiple of heads, got {self.hidden} and "
                f"{self.heads}"
            )

    @property
    def head(self) -> int:
        """Width of a head."""
        return self.hidden // self.heads

    @property
    def qkv(self) -> int:
        """Width of queries, keys and values together."""
        return (self.heads + 2 * self.kv_heads) * self.head

    @property
    def layer_matrices(self) -> int:
        """Parameters of a layer that are multiplied with: queries, keys, values, output, MLP."""
        return self.hidden * (self.qkv + self.hidden + 3 * self.ffn)

    @property
    def parameters(self) -> int:
        """All parameters: layers with their norms, last norm, embedding and output matrix.

        Examples
        --------
        >>> Transformer().parameters
        68976648192
        """
        per_layer = self.layer_matrices + 2 * self.hidden
        return self.layers * per_layer + self.hidden + 2 * self.vocabulary * self.hidden

    def check_tensor_parallel(self, ranks: int) -> None:
        """Check that the matrices can be divided among the ranks.

        Raises
        ------
        InputError
            They cannot.
        """
        for name in ("heads", "kv_heads", "ffn", "vocabulary"):
            if getattr(self, name) % ranks:
                raise InputError(
                    f"tensor_parallel must divide {name} = {getattr(self, name)}, got {ranks}"
                )


@dataclass(frozen=True, slots=True)
class Work:
    """What one kernel does on one device.

    Attributes
    ----------
    kernel, kernel_class : str
        Name, unique; gemm, attention or elementwise.
    flops, bytes : float
        Operations, and bytes to and from memory.
    shape : str
        Distinguishes kernels that take equally long.
    efficiency : float
        Share of the peak FLOP/s that its class reaches.
    """

    kernel: str
    kernel_class: str
    flops: float
    bytes: float
    shape: str = ""
    efficiency: float = 1.0

    def _bounds(self, device: Accelerator) -> tuple[float, float]:
        """Time that the operations and that the memory traffic takes at least, in seconds."""
        compute = self.flops / (self.efficiency * device.peak_flops)
        return compute, self.bytes / (device.memory_efficiency * device.memory_bandwidth)

    def error_class(self, device: Accelerator) -> str:
        """Return the class whose error the kernel has: memory-bound ones have that of the memory.

        Examples
        --------
        >>> Work("output", "gemm", flops=1e6, bytes=1e9).error_class(Accelerator())
        'gemm, memory-bound'
        """
        compute, memory = self._bounds(device)
        bound = memory > compute and self.kernel_class != "elementwise"
        return self.kernel_class + MEMORY_BOUND * bound

    def time(self, device: Accelerator) -> float:
        r"""Return the time in milliseconds by the roofline.

        .. math::
            t = \max\left(\frac{W}{\eta_c P}, \; \frac{Q}{\eta_m B}\right)

        References
        ----------
        Williams, Waterman and Patterson (2009), "Roofline: an insightful visual performance model
        for multicore architectures", Communications of the ACM 52(4), 65-76,
        doi:10.1145/1498765.1498785.

        Examples
        --------
        >>> device = Accelerator(memory_efficiency=1.0)
        >>> Work("copy", "elementwise", flops=0.0, bytes=2e9).time(device)
        1.0
        """
        return MS * max(self._bounds(device))


def gemm(name: str, m: int, n: int, k: int, *, efficiency: float, label: str = "gemm") -> Work:
    """Return the work of a matrix product C[m, n] = A[m, k] B[k, n] in bf16.

    2mnk operations; each matrix passes once between memory and the device.

    Examples
    --------
    >>> gemm("qkv", 4096, 1280, 8192, efficiency=0.62).flops
    85899345920
    """
    size = BF16 * (m * k + k * n + m * n)
    return Work(name, label, 2 * m * n * k, size, f"{m}x{n}x{k}", efficiency)


def table_of(work: Iterable[Work], device: Accelerator) -> Kernels:
    """Return the kernels with their predicted times in milliseconds."""
    rows = list(work)
    return Kernels(
        {
            "kernel": [w.kernel for w in rows],
            "kernel_class": [w.error_class(device) for w in rows],
            "shape": [w.shape or w.kernel for w in rows],
            "predicted": [w.time(device) for w in rows],
        },
        unit="ms",
    )


def errors_of(device: Accelerator) -> ErrorModel:
    """Return the errors of kernels: those of the efficiencies, without bias."""
    spreads = {
        "gemm": device.gemm_spread,
        "attention": device.attention_spread,
        "elementwise": device.memory_spread,
    }
    bound = {name + MEMORY_BOUND: device.memory_spread for name in ("gemm", "attention")}
    return ErrorModel({name: ClassError(0.0, s) for name, s in {**spreads, **bound}.items()})


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
