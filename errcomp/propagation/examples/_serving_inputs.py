"""What the serving example begins with."""

from __future__ import annotations

from dataclasses import dataclass, field

from errcomp.errors import InputError
from errcomp.propagation.examples._figures import Accelerator, Transformer, check_figures

__all__ = ["ServingInputs"]


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
