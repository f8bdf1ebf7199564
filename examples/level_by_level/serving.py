r"""LLaMA-70B served by 8 A100-80GB: from the data sheet to the 99th percentile of the response.

==================  ==============================================================================
kernels             rooflines of the kernels of a layer in a decode step
decode layer        their sum
decode step         80 layers with all-reduces, the output matrix, and the work of the host
request             its own prefill, those of the others in the batch, and its decode steps
==================  ==============================================================================

and above these the response time: the request behind a queue.

A server runs up to c requests in one batch. While one of them produces its n tokens, each of the
c − 1 others is replaced once by a new one whose prefill stops the batch. With all slots taken:

.. math:: S = c \, t_\text{prefill} + n \, t_\text{decode}(c)

and c requests leave in every S. So a full server is a station with c servers of service time S,
and the response time is that of `Queue`. At low load the batch is not full and a step is shorter
than it is taken here: the response is overstated there.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    Constant,
    Kernel,
    Node,
    Quantity,
    Queue,
    Scaled,
    Serial,
    time_at,
)
from level_by_level.levels import (
    LevelsTable,
    format_time,
    outcome_of,
    propagate_levels,
)
from level_by_level.rooflines import (
    BF16,
    MS,
    Accelerator,
    Transformer,
    Work,
    check_figures,
    errors_of,
    forward,
    gemm,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from errcomp.propagation.errors import ErrorModel
    from errcomp.tables import Kernels

__all__ = [
    "LOADS",
    "Accelerator",
    "LevelsTable",
    "LoadRow",
    "LoadTable",
    "ServingInputs",
    "ServingSystem",
    "Transformer",
    "amplification",
    "levels_table",
    "load_table",
    "serving_system",
]


#: Utilisations of the table.
LOADS = (0.5, 0.7, 0.85, 0.95)
_LEVELS = (0.5, 0.9)
#: A service time that is 5 % longer.
_SLOWER = 1.05
_PREFILL = "prefill "


def _decode(inputs: ServingInputs) -> dict[Work, int]:
    """Kernels of a layer in a decode step of a full batch: one token of each request.

    Attention is bound by reading the keys and values of all requests.
    """
    model, device, tp = inputs.model, inputs.device, inputs.tensor_parallel
    found: dict[Work, int] = {}
    for work, count in forward(model, device, tp, batch=inputs.slots, length=1).items():
        if work.kernel_class != "attention":
            found[work] = count
            continue
        seen = inputs.slots * inputs.context
        flops = 4 * seen * model.hidden / tp
        size = BF16 * seen * 2 * model.kv_heads * model.head / tp
        found[Work("attention", "attention", flops, size, "", work.efficiency)] = count
    return found


def _prefill(inputs: ServingInputs) -> dict[Work, int]:
    """Kernels of a layer in the prefill of one prompt."""
    found = forward(
        inputs.model, inputs.device, inputs.tensor_parallel, batch=1, length=inputs.prompt
    )
    return {
        dataclasses.replace(work, kernel=_PREFILL + work.kernel): count
        for work, count in found.items()
    }


def _output_matrix(inputs: ServingInputs, name: str, rows: int) -> Work:
    width = inputs.model.vocabulary // inputs.tensor_parallel
    efficiency = inputs.device.gemm_efficiency
    return gemm(name, rows, width, inputs.model.hidden, efficiency=efficiency)


@dataclass(frozen=True)
class ServingSystem:
    """The server: kernels with their errors, and a graph for each level up to the request.

    Attributes
    ----------
    inputs : ServingInputs
        What it was made from.
    """

    inputs: ServingInputs

    @cached_property
    def decode(self) -> Mapping[str, int]:
        """Kernels of a layer in a decode step, and how often each runs."""
        return {work.kernel: count for work, count in _decode(self.inputs).items()}

    @cached_property
    def prefill(self) -> Mapping[str, int]:
        """Kernels of a layer in a prefill, and how often each runs."""
        return {work.kernel: count for work, count in _prefill(self.inputs).items()}

    @cached_property
    def work(self) -> Mapping[str, Work]:
        """Operations and bytes of every kernel on one device."""
        inputs = self.inputs
        tokens = [
            _output_matrix(inputs, "output matrix", inputs.slots),
            _output_matrix(inputs, _PREFILL + "output matrix", 1),
        ]
        return {work.kernel: work for work in (*_decode(inputs), *_prefill(inputs), *tokens)}

    @cached_property
    def kernels(self) -> Kernels:
        """Predicted time of one instance of every kernel, in milliseconds."""
        return table_of(self.work.values(), self.inputs.device)

    @cached_property
    def errors(self) -> ErrorModel:
        """Errors of the kernels: those of the efficiencies."""
        return errors_of(self.inputs.device)

    @cached_property
    def graphs(self) -> Mapping[str, Node]:
        """Execution graph of each level, from the decode layer to the request, in milliseconds."""
        return {
            "decode layer": Serial([Kernel(name, count) for name, count in self.decode.items()]),
            "decode step": self._decodes(1),
            "request": Serial([self._decodes(self.inputs.output), self._prefills()]),
        }

    def _decodes(self, times: int) -> Node:
        return self._steps(self.decode, "output matrix", self.inputs.slots, times)

    def _prefills(self) -> Node:
        last = _PREFILL + "output matrix"
        return self._steps(self.prefill, last, self.inputs.prompt, self.inputs.slots)

    def _steps(self, layer: Mapping[str, int], last: str, tokens: int, times: int) -> Node:
        """Return steps of the whole model with a number of tokens, one after the other."""
        inputs, n = self.inputs, self.inputs.model.layers * times
        size = BF16 * tokens * inputs.model.hidden
        reduce = inputs.device.on_link("all-reduce", inputs.tensor_parallel, size)
        return Serial(
            [
                *(Kernel(name, count * n) for name, count in layer.items()),
                Kernel(last, times),
                Scaled(reduce, 2 * n),
                Scaled(self._host(), times),
            ]
        )

    def _host(self) -> Node:
        time = self.inputs.host * MS
        return Quantity("host", time, self.inputs.host_spread) if time else Constant(0.0)

    @cached_property
    def service_time(self) -> float:
        """Predicted service time of a request in milliseconds, without errors."""
        times = zip(map(str, self.kernels.kernel), self.kernels.predicted, strict=True)
        return float(time_at(self.graphs["request"], dict(times)))

    def queue(self, utilisation: float) -> Queue:
        """Return the response time at an arrival rate that keeps this share of the slots busy.

        The rate is that at which the predicted service time gives the utilisation. If the service
        takes longer, the utilisation is higher: that is how the error is amplified.

        Parameters
        ----------
        utilisation : float
            ρ, 0 < ρ < 1.

        Raises
        ------
        InputError
            It is out of range.
        """
        _check_utilisation(utilisation)
        inputs = self.inputs
        return Queue(
            self.graphs["request"],
            arrival_rate=utilisation * inputs.slots / self.service_time,
            servers=inputs.slots,
            service_cv2=inputs.output_cv2,
            quantity="quantile",
            quantile=inputs.quantile,
        )


def serving_system(inputs: ServingInputs | None = None) -> ServingSystem:
    """Return the server; by default LLaMA-70B on 8 A100-80GB with up to 32 requests in a batch.

    Raises
    ------
    InputError
        Weights and the keys and values of a full batch do not fit in the memory of the devices.

    Examples
    --------
    >>> server = serving_system()
    >>> list(server.graphs)
    ['decode layer', 'decode step', 'request']
    >>> round(server.service_time / 1000, 2)  # seconds
    9.03
    """
    system = ServingSystem(ServingInputs() if inputs is None else inputs)
    inputs = system.inputs
    model = inputs.model
    cache = 2 * model.kv_heads * model.head * model.layers * (inputs.prompt + inputs.output)
    needed = BF16 * (model.parameters + inputs.slots * cache) / inputs.tensor_parallel
    if needed > inputs.device.memory:
        raise InputError(
            f"weights, keys and values need {needed / 1e9:.1f} GB, a device has "
            f"{inputs.device.memory / 1e9:.1f} GB. Use a larger tensor_parallel or fewer slots"
        )
    return system


def levels_table(
    assumption: str = "repeats",
    system: ServingSystem | None = None,
    *,
    draws: int = 16_384,
    seed: int = 0,
) -> LevelsTable:
    """Propagate the errors from kernels to a request under one assumption on what they share.

    Bandwidth, latency and host time have one value each in the whole server, independent of the
    kernels under every assumption.

    Parameters
    ----------
    assumption : {"independent", "repeats", "classes", "comonotonic"}
        See `errcomp.propagation.correlation`.
    system : ServingSystem, optional
        By default that of `serving_system`.
    draws, seed : int
        Of the Monte Carlo simulation.

    Raises
    ------
    InputError
        The assumption is unknown.
    """
    system = serving_system() if system is None else system
    return propagate_levels(
        system.kernels, system.errors, system.graphs, assumption, draws=draws, seed=seed
    )


def amplification(
    utilisation: float, servers: int = 1, *, quantile: float | None = None, service_cv2: float = 1.0
) -> float:
    r"""Relative error of the response time per relative error of the service time.

    .. math:: A = \frac{d \ln R}{d \ln S}, \qquad A = \frac{1}{1 - \rho} \;\text{(M/M/1)}

    For one server with exponential service mean and all quantiles of the response are proportional
    to :math:`1/(1/S - \lambda)`, so that A is the same for all. With more servers it is smaller,
    until nearly all slots are taken. A derivative: it holds for errors that are small against
    :math:`1 - \rho`; beyond, the response grows faster, up to infinity.

    Parameters
    ----------
    utilisation : float
        ρ, 0 < ρ < 1.
    servers : int
        Servers of the station.
    quantile : float, optional
        Of the response time; by default its mean.
    service_cv2 : float
        Variance over squared mean of the service time.

    Raises
    ------
    InputError
        The utilisation is out of range, or another argument is (see `Queue`).

    References
    ----------
    Kleinrock (1975), "Queueing Systems, volume 1: Theory", Wiley, section 3.2.

    Examples
    --------
    >>> round(amplification(0.95), 3), round(amplification(0.95, servers=32), 3)
    (20.0, 8.995)
    """
    _check_utilisation(utilisation)
    station = Queue(
        Constant(1.0),  # not used: the service times are given below
        arrival_rate=utilisation,
        servers=servers,
        service_cv2=service_cv2,
        quantity="mean" if quantile is None else "quantile",
        quantile=0.99 if quantile is None else quantile,
    )
    step = 1e-4 * (1 - utilisation)
    low, high = np.log(station.response(servers * np.exp([-step, step])))
    return float((high - low) / (2 * step))


def _check_utilisation(utilisation: float) -> None:
    if not isinstance(utilisation, Real) or not 0 < utilisation < 1:
        raise InputError(
            f"the utilisation must be between 0 and 1, got {utilisation!r}: from 1 on the queue "
            "grows without bound"
        )


def load_table(
    assumption: str = "repeats",
    system: ServingSystem | None = None,
    *,
    loads: Sequence[float] = LOADS,
    draws: int = 16_384,
    seed: int = 0,
) -> LoadTable:
    """Propagate the errors to the response time at several loads.

    Parameters
    ----------
    assumption : {"independent", "repeats", "classes", "comonotonic"}
        See `errcomp.propagation.correlation`.
    system : ServingSystem, optional
        By default that of `serving_system`.
    loads : sequence of float
        Utilisations, each between 0 and 1.
    draws, seed : int
        Of the Monte Carlo simulation.

    Raises
    ------
    InputError
        The assumption is unknown, or a load is out of range.
    """
    system = serving_system() if system is None else system
    inputs = system.inputs
    rows = []
    for load in loads:
        queue = system.queue(load)
        found = outcome_of(
            system.kernels, system.errors, queue, assumption, levels=_LEVELS, draws=draws, seed=seed
        )
        assert found.median is not None  # only bounds have none
        exact, slower = queue.response(np.array([1.0, _SLOWER]) * system.service_time)
        half, band = (found.band(level) for level in _LEVELS)
        rows.append(
            LoadRow(
                load,
                found.prediction,
                found.median,
                (half.low, half.high),
                (band.low, band.high),
                amplification(
                    load, inputs.slots, quantile=inputs.quantile, service_cv2=inputs.output_cv2
                ),
                float(slower / exact) - 1,
                found.saturated,
            )
        )
    return LoadTable(assumption, inputs.quantile, tuple(rows))


# Response times by load, and how they print.


@dataclass(frozen=True, slots=True)
class LoadRow:
    """Quantile of the response time at one load.

    Attributes
    ----------
    utilisation : float
        ρ of the predicted service time.
    predicted : float
        Without errors, in milliseconds.
    median : float
        Half of the distribution is below it, in milliseconds; infinite if saturation is as likely.
    half, band : tuple of float
        50 % and 90 % band in milliseconds; infinite where saturation reaches so far.
    amplification : float
        See `amplification`.
    if_slower : float
        What the response gains if the service takes 5 % longer: a fraction, or infinity.
    saturated : float
        Probability that the queue grows without bound.
    """

    utilisation: float
    predicted: float
    median: float
    half: tuple[float, float]
    band: tuple[float, float]
    amplification: float
    if_slower: float
    saturated: float


@dataclass(frozen=True, slots=True)
class LoadTable:
    """Response times by load, under one assumption; prints as a table.

    Attributes
    ----------
    assumption : str
        What the errors of kernels share.
    quantile : float
        Which quantile of the response time.
    rows : tuple of LoadRow
        In the order of the loads asked for.
    """

    assumption: str
    quantile: float
    rows: tuple[LoadRow, ...]

    def __str__(self) -> str:
        what = f"P{100 * self.quantile:g}"
        lines = [
            f"errors of kernels: {self.assumption}",
            f"{'load':>5}{what:>10}{'50 % band':>22}{'90 % band':>22}{'d ln R/d ln S':>15}"
            f"{'5 % slower':>12}{'saturated':>11}",
        ]
        for row in self.rows:
            half, band = (
                f"{format_time(low)} – {format_time(high)}" for low, high in (row.half, row.band)
            )
            gain = "never" if math.isinf(row.if_slower) else f"+{100 * row.if_slower:.0f} %"
            lines.append(
                f"{row.utilisation:>5.2f}{format_time(row.predicted):>10}{half:>22}{band:>22}"
                f"{row.amplification:>15.2f}{gain:>12}{100 * row.saturated:>9.1f} %"
            )
        return "\n".join(lines)


# What the serving example begins with.


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingInputs:
    """Every figure that the serving example begins with.

    Attributes
    ----------
    device : Accelerator
        Data sheet, efficiencies, links, and how uncertain they are.
    model : Transformer
        Sizes of the model.
    tensor_parallel : int
        Devices of the server.
    slots : int
        c: requests in a full batch.
    prompt, output : int
        Tokens of a request: in, and out on average.
    output_cv2 : float
        Variance over squared mean of the service time; 1: lengths as of a geometric distribution.
    host : float
        Work of the host between two steps, seconds.
    host_spread : float
        Its log-sd; one value for all steps.
    quantile : float
        Of the response time, between 0 and 1.

    Raises
    ------
    InputError
        A figure is not positive, or sizes do not divide each other.
    """

    device: Accelerator = field(default_factory=Accelerator)
    model: Transformer = field(default_factory=Transformer)
    tensor_parallel: int = 8
    slots: int = 32
    prompt: int = 1024
    output: int = 256
    output_cv2: float = 1.0
    host: float = 2e-3
    host_spread: float = 0.20
    quantile: float = 0.99

    def __post_init__(self) -> None:
        check_figures(self, may_be_zero=("output_cv2", "host", "host_spread"))
        self.model.check_tensor_parallel(self.tensor_parallel)
        if self.quantile >= 1:
            raise InputError(f"quantile must be between 0 and 1, got {self.quantile!r}")

    @property
    def context(self) -> float:
        """Tokens that a decode step attends to, on average over the answer."""
        return self.prompt + self.output / 2
