"""How the operators of the NeuSight artifact add up to a configuration.

A traced file holds one transformer layer and what surrounds it; a fused one holds all layers. The
rules below reproduce every predicted end-to-end latency of the artifact to rounding, except for
``pp4_4`` (several micro-batches), for which the files do not say enough.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from errcomp.errors import InputError
from errcomp.readers._neusight_files import Operator

__all__ = ["PIPELINE_TRANSFERS", "OperatorSum", "add_up", "repeat_counts"]

#: Prefix of the operators of layer i, and of the first operator after the layers. BERT has no
#: such operator: its layer ends with the last operator that carries the layer's name.
_LAYERS = (
    (re.compile(r"transformer_h_(\d+)_"), "transformer_ln_f"),
    (re.compile(r"model_decoder_layers_(\d+)_"), "model_decoder_final_layer_norm"),
    (re.compile(r"bert_encoder_layer_(\d+)_"), None),
)
_COMMUNICATION = ("allreduce", "sendrecv")
#: One-way transfers that a step adds with four pipeline stages and one micro-batch. Read off the
#: predictions, exact in all six of them; activations and gradients cross three boundaries each.
PIPELINE_TRANSFERS = 11


@dataclass(frozen=True, slots=True)
class OperatorSum:
    """How operators combine, how many compute (rows, and with layers repeated), times in ms."""

    rule: str
    rows: int
    operators: int
    compute: float
    communication: float

    @property
    def total(self) -> float:
        """What the rule says the end-to-end latency is."""
        return self.compute + self.communication


def repeat_counts(names: Sequence[str], layers: int) -> list[int]:
    """Say how often each traced operator runs.

    Parameters
    ----------
    names : sequence of str
        Operator names in the order of the trace.
    layers : int
        ``num_layer`` of the configuration.

    Returns
    -------
    list of int
        ``layers`` for the operators of the traced layer, 1 for the others.

    Raises
    ------
    InputError
        No operator carries the name of a layer, or the trace holds neither one layer nor all.

    Examples
    --------
    >>> repeat_counts(["embed", "transformer_h_0_ln_1", "add", "transformer_ln_f"], 36)
    [1, 36, 36, 1]
    """
    inside, indices, after = _layer_of(names)
    if len(indices) == layers:
        return [1] * len(names)
    if indices != {0}:
        raise InputError(f"operators of {len(indices)} layers, expected 1 or all {layers}")
    first, end = inside[0], inside[-1] + 1
    if after is not None:
        ends = [i for i, name in enumerate(names) if name.startswith(after)]
        if not ends or ends[0] < end:
            raise InputError(f"no operator {after} after layer 0: it is unknown where it ends")
        end = ends[0]
    return [layers if first <= i < end else 1 for i in range(len(names))]


def _layer_of(names: Sequence[str]) -> tuple[list[int], set[int], str | None]:
    """Return the positions that carry a layer's name, the layers, and what follows the last."""
    for pattern, after in _LAYERS:
        # Fused operators join several names with "~": search, not match.
        found = {i: match for i, name in enumerate(names) if (match := pattern.search(name))}
        if found:
            return list(found), {int(match[1]) for match in found.values()}, after
    known = ", ".join(pattern.pattern for pattern, _ in _LAYERS)
    raise InputError(
        f"no operator name says which layer it belongs to (known: {known}): it is unknown which "
        "operators repeat"
    )


def add_up(operators: Sequence[Operator], counts: Sequence[int], variant: str) -> OperatorSum:
    """Combine operators into a configuration.

    Raises
    ------
    InputError
        The trace communicates in a way for which no rule is known.
    """
    computing = [
        (o, n) for o, n in zip(operators, counts, strict=True) if o.kind not in _COMMUNICATION
    ]
    rule, communication = _communication(operators, counts, variant)
    return OperatorSum(
        rule,
        len(computing),
        sum(n for _, n in computing),
        math.fsum(o.total * n for o, n in computing),
        communication,
    )


def _communication(
    operators: Sequence[Operator], counts: Sequence[int], variant: str
) -> tuple[str, float]:
    """Return the rule and the time that communication adds."""
    transfers = [(o, n) for o, n in zip(operators, counts, strict=True) if o.kind in _COMMUNICATION]
    kinds = {o.kind for o, _ in transfers}
    if not kinds:
        return "sum", 0.0
    if variant.startswith("tp") and kinds == {"allreduce"}:
        return "sum + all-reduce", math.fsum(o.total * n for o, n in transfers)
    if variant.startswith("dp") and kinds == {"allreduce"}:
        return "sum + exposed all-reduce", _exposed(operators, counts)
    if variant == "pp4_1" and kinds == {"sendrecv"} and len(transfers) == 1:
        return "sum + 11 transfers", PIPELINE_TRANSFERS * transfers[0][0].forward
    raise InputError(f"no rule is known for the communication of {variant!r}")


def _exposed(operators: Sequence[Operator], counts: Sequence[int]) -> float:
    """Time of the all-reduces that the backward pass does not hide.

    The backward pass runs the operators in reverse order; the all-reduce of a gradient starts when
    the gradient is there and the one before it is done.
    """
    backward = reduced = 0.0
    for operator in reversed(_expand(operators, counts)):
        if operator.kind == "allreduce":
            reduced = max(reduced, backward) + operator.total
        else:
            backward += operator.backward
    return max(reduced - backward, 0.0)


def _expand(operators: Sequence[Operator], counts: Sequence[int]) -> list[Operator]:
    layers = max(counts)
    inside = [o for o, n in zip(operators, counts, strict=True) if n > 1]
    if not inside:
        return list(operators)
    first = next(i for i, n in enumerate(counts) if n > 1)
    rest = operators[first + len(inside) :]
    return [*operators[:first], *inside * layers, *rest]
