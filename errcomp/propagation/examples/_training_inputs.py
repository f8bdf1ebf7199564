"""What the training example begins with."""

from __future__ import annotations

from dataclasses import dataclass, field

from errcomp.errors import InputError
from errcomp.propagation.examples._figures import Accelerator, Transformer, check_figures

__all__ = ["TrainingInputs"]


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
