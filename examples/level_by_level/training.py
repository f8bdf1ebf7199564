r"""LLaMA-70B training on 64 A100-80GB: from the data sheet to the time of an iteration.

Tensor parallel 8 (a node), pipeline parallel 4, data parallel 2. Every level has a graph:

==================  ==============================================================================
kernels             rooflines of the kernels of a layer, forward and backward
layer               their sum
layer and TP        with its four all-reduces among the 8 ranks of a node
stage               20 layers, on the last stage with the output matrix and the loss
pipeline            128 micro-batches through 4 stages, with the bubble
gradients           with the all-reduce over 2 replicas beside the last backward, and the optimizer
iteration           the slowest of 64 ranks
==================  ==============================================================================

Taken as given: bf16, fused causal attention, no recomputation, no sequence parallelism, 1F1B
schedule, no sharding of the optimizer. Left out: embedding look-up, the small all-reduces of the
loss and of the gradient norm, gaps between kernels, loading of data, checkpoints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.propagation.errors.components import correlation
from errcomp.propagation.graph import (
    Kernel,
    Node,
    Overlap,
    Pipeline,
    Quantity,
    Replicas,
    Scaled,
    Serial,
    attach,
)
from level_by_level.levels import LevelRow, LevelsTable, propagate_levels
from level_by_level.rooflines import (
    BF16,
    MS,
    Accelerator,
    Transformer,
    Work,
    backward,
    check_figures,
    elementwise,
    errors_of,
    forward,
    head,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from errcomp.propagation.errors import ErrorModel
    from errcomp.propagation.terms import Terms
    from errcomp.tables import Kernels

__all__ = [
    "Accelerator",
    "LevelRow",
    "LevelsTable",
    "TrainingInputs",
    "TrainingJob",
    "Transformer",
    "Utilisation",
    "levels_table",
    "training_job",
]


#: Bytes of a gradient: summed in float32.
_GRADIENT = 4
#: Bytes per parameter that the optimizer moves: weight and two moments in float32, in and out; the
#: gradient in; the weight out in bf16.
_OPTIMIZER_TRAFFIC = 24 + _GRADIENT + BF16
#: Bytes per parameter kept: weight in bf16, gradient, weight and two moments in float32.
_KEPT = BF16 + _GRADIENT + 12


@dataclass(frozen=True)
class Utilisation:
    """Model FLOP utilisation: useful operations per peak operations in the time taken.

    Attributes
    ----------
    median, low, high : float
        Fractions; median and 90 % band. They are those of the time, turned round.
    """

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.median:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class TrainingJob:
    """The job: kernels with their errors, and a graph for each level.

    Attributes
    ----------
    inputs : TrainingInputs
        What it was made from.
    """

    inputs: TrainingInputs

    @cached_property
    def _forward(self) -> dict[Work, int]:
        i = self.inputs
        return forward(i.model, i.device, i.tensor_parallel, batch=i.micro_batch, length=i.sequence)

    @cached_property
    def _head(self) -> tuple[Work, ...]:
        i = self.inputs
        return head(i.model, i.device, i.tensor_parallel, tokens=i.tokens)

    @property
    def forward(self) -> Mapping[str, int]:
        """Kernels of the forward pass of a layer, and how often each runs."""
        return {work.kernel: count for work, count in self._forward.items()}

    @property
    def backward(self) -> Mapping[str, int]:
        """Kernels of the backward pass of a layer, and how often each runs."""
        return {work.kernel: count for work, count in backward(self._forward).items()}

    @cached_property
    def work(self) -> Mapping[str, Work]:
        """Operations and bytes of every kernel on one device."""
        update = elementwise("optimizer", _OPTIMIZER_TRAFFIC * self.parameters_per_device)
        every = (*self._forward, *backward(self._forward), *self._head, update)
        return {work.kernel: work for work in every}

    @cached_property
    def kernels(self) -> Kernels:
        """Predicted time of one instance of every kernel, in milliseconds."""
        return table_of(self.work.values(), self.inputs.device)

    @cached_property
    def errors(self) -> ErrorModel:
        """Errors of the kernels: those of the efficiencies."""
        return errors_of(self.inputs.device)

    def terms(self, assumption: str = "repeats") -> Terms:
        """Return kernels and quantities of an iteration as random terms, named as in the graphs.

        For engines that a graph is given to: ``graph.evaluate(MomentsAlgebra(terms))``.
        """
        found = self.errors.terms(self.kernels, correlation(assumption))
        named = replace(found, ids=np.array([str(name) for name in self.kernels.kernel]))
        return attach(named, self.graphs["iteration"])

    @property
    def parameters_per_device(self) -> float:
        """Parameters of the last stage on one device."""
        model, tp = self.inputs.model, self.inputs.tensor_parallel
        layers = self.inputs.layers_per_stage * model.layer_matrices
        return (layers + model.vocabulary * model.hidden) / tp

    @property
    def memory(self) -> float:
        """Bytes that the first stage needs on one device.

        Weights, gradients and optimizer, and the activations of as many micro-batches as there are
        stages (1F1B): inputs of both norms and of all products, and what fused attention keeps.
        """
        inputs, model = self.inputs, self.inputs.model
        shared = model.qkv + model.hidden + 3 * model.ffn  # divided among the ranks
        per_token = BF16 * (4 * model.hidden + shared / inputs.tensor_parallel)
        at_once = min(inputs.pipeline_parallel, inputs.microbatches)
        kept = at_once * inputs.layers_per_stage * inputs.tokens * per_token
        return _KEPT * self.parameters_per_device + kept

    @cached_property
    def graphs(self) -> Mapping[str, Node]:
        """Execution graph of each level, from the layer up; times in milliseconds."""
        inputs = self.inputs
        m = inputs.microbatches
        last = inputs.pipeline_parallel - 1
        pipeline = Pipeline([self._mean_of(m, s) for s in range(last + 1)], m)
        gradients = self._with_gradients()
        jitter = Quantity("jitter of a rank", 1.0, inputs.jitter)
        layer = Serial(self._kernels_of({**self.forward, **self.backward}, 1))
        return {
            "layer": layer,
            "layer and TP": Serial([layer, Scaled(self._all_reduce(), 4)]),
            "stage": self._stage(last, 1),
            "pipeline": pipeline,
            "gradients": gradients,
            "iteration": Replicas(gradients, inputs.devices, jitter, inputs.jitter_correlation),
        }

    @staticmethod
    def _kernels_of(counts: Mapping[str, int], times: int) -> list[Node]:
        return [Kernel(name, count * times) for name, count in counts.items()]

    def _all_reduce(self) -> Node:
        """Sum of the activations of a micro-batch over the ranks that share a layer."""
        inputs = self.inputs
        size = BF16 * inputs.tokens * inputs.model.hidden
        return inputs.device.on_link("all-reduce", inputs.tensor_parallel, size)

    def _transfer(self) -> Node:
        """Activations to the next stage: each rank sends its share, then the node gathers them."""
        inputs, device = self.inputs, self.inputs.device
        size = BF16 * inputs.tokens * inputs.model.hidden
        send = device.on_network("send", 2, size / inputs.tensor_parallel)
        return Serial([send, device.on_link("all-gather", inputs.tensor_parallel, size)])

    def _pass(self, stage: int, times: int, *, backward: bool) -> Node:
        """Forward or backward pass of micro-batches through a stage, one after the other.

        Instances of kernels that err on their own do so in every layer and micro-batch.
        """
        inputs = self.inputs
        layers = inputs.layers_per_stage * times
        parts = self._kernels_of(self.backward if backward else self.forward, layers)
        sums = 2 * layers
        if stage < inputs.pipeline_parallel - 1:
            parts.append(Scaled(self._transfer(), times))
        else:
            matrix, loss, *back = [work.kernel for work in self._head]
            parts += [Kernel(name, times) for name in (back if backward else [matrix, loss])]
            sums += times if backward else 0
        return Serial([*parts, Scaled(self._all_reduce(), sums)])

    def _stage(self, stage: int, times: int) -> Node:
        """Micro-batches through a stage, forward and backward."""
        return Serial([self._pass(stage, times, backward=back) for back in (False, True)])

    def _mean_of(self, times: int, stage: int) -> Node:
        return Scaled(self._stage(stage, times), 1 / times)

    def _with_gradients(self) -> Node:
        """Return the iteration of a replica: gradients are summed while the last backward runs.

        Those of the layer that comes last cannot be: nothing is left to hide them behind.
        """
        inputs, device = self.inputs, self.inputs.device
        m, last = inputs.microbatches, inputs.pipeline_parallel - 1
        size = _GRADIENT * self.parameters_per_device
        exposed = 1 / inputs.layers_per_stage
        hidden = device.on_network("all-reduce", inputs.data_parallel, size * (1 - exposed))
        rest = device.on_network("all-reduce", inputs.data_parallel, size * exposed)
        slower = inputs.contention
        contention = Quantity("contention", slower, inputs.contention_spread) if slower else 0.0
        parts: list[Node] = []
        if m > 1:
            stages = [self._mean_of(m - 1, s) for s in range(last + 1)]
            parts.append(Pipeline(stages, m - 1))
        else:
            parts += [self._stage(s, 1) for s in range(last)]
        return Serial(
            [
                *parts,
                self._pass(last, 1, backward=False),
                Overlap(self._pass(last, 1, backward=True), hidden, contention),
                rest,
                Kernel("optimizer"),
            ]
        )

    @property
    def model_flops(self) -> float:
        """Operations of an iteration over all devices: those of matrix products and attention.

        Three times the forward pass: what attention recomputes backward does not count.
        """
        inputs, tp = self.inputs, self.inputs.tensor_parallel
        layers = sum(self.work[name].flops * n for name, n in self.forward.items())
        per_microbatch = inputs.model.layers * layers + self.work["output matrix"].flops
        return 3.0 * tp * per_microbatch * inputs.microbatches * inputs.data_parallel

    @property
    def rule_of_thumb(self) -> float:
        """6 N operations per token, N without the embedding: the same without attention.

        References
        ----------
        Kaplan et al. (2020), "Scaling laws for neural language models", arXiv:2001.08361,
        section 2.1.
        """
        model = self.inputs.model
        n = model.layers * model.layer_matrices + model.vocabulary * model.hidden
        return 6.0 * n * self.inputs.tokens_per_iteration

    def utilisation(self, milliseconds: float) -> float:
        r"""Return the model FLOP utilisation if an iteration takes this long, a fraction.

        References
        ----------
        Chowdhery et al. (2023), "PaLM: Scaling language modeling with pathways", Journal of Machine
        Learning Research 24(240), appendix B.
        """
        if not (math.isfinite(milliseconds) and milliseconds > 0):
            raise InputError(f"the time must be positive and finite, got {milliseconds!r}")
        peak = self.inputs.devices * self.inputs.device.peak_flops
        return self.model_flops / (peak * milliseconds / MS)

    def utilisation_of(self, row: LevelRow) -> Utilisation:
        """Return the model FLOP utilisation with its band, from the time of an iteration.

        Parameters
        ----------
        row : LevelRow
            Of the level ``"iteration"``.
        """
        return Utilisation(*(self.utilisation(time) for time in (row.median, row.high, row.low)))


def training_job(inputs: TrainingInputs | None = None) -> TrainingJob:
    """Return the job; by default LLaMA-70B on 64 A100-80GB.

    Raises
    ------
    InputError
        The job does not fit in the memory of a device.

    Examples
    --------
    >>> job = training_job()
    >>> list(job.graphs)
    ['layer', 'layer and TP', 'stage', 'pipeline', 'gradients', 'iteration']
    >>> round(job.memory / 1e9, 1)  # GB of 80
    69.1
    >>> round(job.model_flops / job.rule_of_thumb, 3)  # attention is what 6 N tokens leaves out
    1.039
    """
    job = TrainingJob(TrainingInputs() if inputs is None else inputs)
    if job.memory > job.inputs.device.memory:
        raise InputError(
            f"the first stage needs {job.memory / 1e9:.1f} GB, a device has "
            f"{job.inputs.device.memory / 1e9:.1f} GB. Use more stages, a larger tensor_parallel "
            "or shorter sequences"
        )
    return job


def levels_table(
    assumption: str = "repeats",
    job: TrainingJob | None = None,
    *,
    draws: int = 16_384,
    seed: int = 0,
) -> LevelsTable:
    """Propagate the errors level by level under one assumption on what kernels share.

    Bandwidths, latencies, contention and jitter are figures of their own, with one value each in
    the whole job, and independent of the kernels under every assumption.

    Parameters
    ----------
    assumption : {"independent", "repeats", "classes", "comonotonic"}
        See `errcomp.propagation.correlation`.
    job : TrainingJob, optional
        By default that of `training_job`.
    draws, seed : int
        Of the Monte Carlo simulation.

    Raises
    ------
    InputError
        The assumption is unknown.

    Examples
    --------
    >>> job = training_job()
    >>> iteration = levels_table("repeats", job, draws=2048).row("iteration")
    >>> print(job.utilisation_of(iteration))
    46.5 % [44.5, 48.3]
    """
    job = training_job() if job is None else job
    return propagate_levels(job.kernels, job.errors, job.graphs, assumption, draws=draws, seed=seed)


# What the training example begins with.


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInputs:
    """Every figure that the training example begins with.

    Attributes
    ----------
    device : Accelerator
        Data sheet, efficiencies, links, and how uncertain they are.
    model : Transformer
        Sizes of the model.
    tensor_parallel, pipeline_parallel, data_parallel : int
        Devices that share a layer, stages, replicas.
    sequence : int
        Tokens per sequence.
    micro_batch, global_batch : int
        Sequences per micro-batch, and per iteration over all replicas.
    contention : float
        κ of `Overlap`: how much all-reduce and backward slow each other, 0 to 1.
    contention_spread : float
        Its log-sd.
    jitter, jitter_correlation : float
        Log-sd of the time of one rank in one iteration, and how far ranks jitter together.

    Raises
    ------
    InputError
        A figure is not positive, or sizes do not divide each other.
    """

    device: Accelerator = field(default_factory=Accelerator)
    model: Transformer = field(default_factory=Transformer)
    tensor_parallel: int = 8
    pipeline_parallel: int = 4
    data_parallel: int = 2
    sequence: int = 4096
    micro_batch: int = 1
    global_batch: int = 256
    contention: float = 0.15
    contention_spread: float = 0.40
    jitter: float = 0.01
    jitter_correlation: float = 0.0

    def __post_init__(self) -> None:
        free = ("contention", "contention_spread", "jitter", "jitter_correlation")
        check_figures(self, may_be_zero=free)
        for name in ("contention", "jitter_correlation"):
            if getattr(self, name) > 1:
                raise InputError(f"{name} must be at most 1, got {getattr(self, name)!r}")
        if self.model.layers % self.pipeline_parallel:
            raise InputError(
                f"pipeline_parallel must divide the {self.model.layers} layers, got "
                f"{self.pipeline_parallel}"
            )
        if self.global_batch % (self.data_parallel * self.micro_batch):
            raise InputError(
                f"global_batch must be a multiple of data_parallel x micro_batch = "
                f"{self.data_parallel * self.micro_batch}, got {self.global_batch}"
            )
        self.model.check_tensor_parallel(self.tensor_parallel)

    @property
    def devices(self) -> int:
        """Devices of the job."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    @property
    def microbatches(self) -> int:
        """Micro-batches of a replica per iteration."""
        return self.global_batch // (self.data_parallel * self.micro_batch)

    @property
    def layers_per_stage(self) -> int:
        """Layers of a stage."""
        return self.model.layers // self.pipeline_parallel

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch."""
        return self.micro_batch * self.sequence

    @property
    def tokens_per_iteration(self) -> int:
        """Tokens of all replicas per iteration."""
        return self.global_batch * self.sequence
