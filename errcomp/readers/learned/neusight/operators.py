"""The operators of the pairs of the NeuSight artifact, collected while reading the pairs."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers.learned.neusight.files import (
    Configuration,
    FailedCheck,
    Operator,
    agree,
    read_operators,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl


_KEYS = ("tool", "device", "model", "mode", "seq_len", "batch", "variant")
_VALUES = (
    "kernel",
    "kernel_class",
    "count",
    "measured",
    "predicted",
    "measured_forward",
    "predicted_forward",
    "shape",
)
#: Phases of a training step in the artifact.
PHASES = ("forward", "backward")


class OperatorTable:
    """Reads the operator files pair by pair, and collects the operators.

    Attributes
    ----------
    failed : list of FailedCheck
        Failed checks.
    missing : dict of str to list of str
        Per predictor: configurations whose operators could not be read.
    unmeasured : dict of str to None
        Configurations without measured operators, in order of appearance.
    """

    def __init__(self, root: Path) -> None:
        self.failed: list[FailedCheck] = []
        self.missing: dict[str, list[str]] = {}
        self.unmeasured: dict[str, None] = {}
        self._root = root
        self._columns: dict[str, list[Any]] = {key: [] for key in ("run", *_KEYS, *_VALUES)}
        self._measured: dict[Configuration, tuple[list[Operator], float | None]] = {}

    def add(self, row: dict[str, Any], configuration: Configuration) -> dict[str, Any]:
        """Read the operators of a pair; return the columns of the pair (None if unknown)."""
        facts: dict[str, Any] = dict.fromkeys(
            (
                "operators",
                "operator_rows",
                "measured_operator_sum",
                "predicted_operator_sum",
                "predicted_communication",
                "sum_rule",
            )
        )
        measured, facts["measured_operator_sum"] = self._measurements(configuration, row["layers"])
        if not measured:
            self.unmeasured[configuration.run] = None
        tool, where = row["tool"], f"{row['tool']}: {configuration.run}"
        folder = self._root / "results" / "prediction" / configuration.device_name / tool
        path = folder / f"{configuration.stem}.csv"
        if not path.is_file():
            self.missing.setdefault(tool, []).append(configuration.run)
            return facts
        operators = read_operators(path, measured=False)
        try:
            counts = repeat_counts([o.name for o in operators], row["layers"])
            total = add_up(operators, counts, configuration.variant)
        except InputError as error:
            self._fail(where, "rule for the sum of operators", str(error))
            self.missing.setdefault(tool, []).append(configuration.run)
            return facts
        if not agree(total.total, row["predicted"]):
            detail = f"sum {total.total!r} ms, prediction {row['predicted']!r} ms ({total.rule})"
            self._fail(where, "predicted operators sum to the prediction", detail)
        partners = self._partners(where, operators, measured)
        self._append(configuration.run, row, operators, counts, partners)
        return facts | {
            "operators": total.operators,
            "operator_rows": total.rows,
            "predicted_operator_sum": total.compute,
            "predicted_communication": total.communication,
            "sum_rule": total.rule,
        }

    def frame(self) -> pl.DataFrame:
        """Return the operators collected so far, one per row."""
        import polars as pl

        schema: dict[str, Any] = dict.fromkeys(self._columns, pl.String)
        schema |= dict.fromkeys(("seq_len", "batch", "count"), pl.Int64)
        numbers = ("measured", "predicted", "measured_forward", "predicted_forward")
        return pl.DataFrame(self._columns, schema=schema | dict.fromkeys(numbers, pl.Float64))

    def _fail(self, where: str, check: str, detail: str) -> None:
        self.failed.append(FailedCheck(where, check, detail))

    def _measurements(
        self, configuration: Configuration, layers: int
    ) -> tuple[list[Operator], float | None]:
        """Read and sum the measured operators of a configuration (once for all predictors)."""
        path = self._root / "label" / configuration.device_name / f"{configuration.stem}.csv"
        if not path.is_file():
            return [], None
        if configuration not in self._measured:
            operators = read_operators(path, measured=True)
            try:
                counts = repeat_counts([o.name for o in operators], layers)
                total = add_up(operators, counts, configuration.variant).compute
                self._measured[configuration] = operators, total
            except InputError as error:
                self._fail(f"label: {configuration.run}", "operators repeat", str(error))
                self._measured[configuration] = [], None
        return self._measured[configuration]

    def _partners(
        self, where: str, operators: Sequence[Operator], measured: Sequence[Operator]
    ) -> Sequence[Operator | None]:
        nobody = [None] * len(operators)
        if not measured:
            return nobody
        order = match_operators(operators, measured)
        if order is None:
            detail = f"{len(measured)} measured, {len(operators)} predicted: different networks"
            self._fail(where, "measured and predicted operators are the same", detail)
            return nobody
        return [measured[i] for i in order]

    def _append(
        self,
        run: str,
        row: dict[str, Any],
        operators: Sequence[Operator],
        counts: Sequence[int],
        partners: Sequence[Operator | None],
    ) -> None:
        columns, n = self._columns, len(operators)
        columns["run"] += [run] * n
        for key in _KEYS:
            columns[key] += [row[key]] * n
        for operator, count, partner in zip(operators, counts, partners, strict=True):
            # A transfer between stages is one-way; the file has the round trip.
            one_way = operator.kind == "sendrecv"
            values = (
                operator.name,
                operator.kind,
                PIPELINE_TRANSFERS if one_way else count,
                partner.total if partner else None,
                operator.forward if one_way else operator.total,
                partner.forward if partner else None,
                operator.forward,
                operator.shape,
            )
            for key, value in zip(_VALUES, values, strict=True):
                columns[key].append(value)


def by_phase(operators: pl.DataFrame) -> pl.DataFrame:
    """Give each operator a row for each phase in which it works; ``phase`` is the new column.

    An operator works backwards if that was measured, or was not and is predicted to take time. The
    row of one that only works forwards keeps its whole times, as the predictor also predicts
    backward passes that do not run. Communication is one row without a phase.
    """
    import polars as pl

    names = ("measured", "predicted")
    ahead = {name: pl.col(f"{name}_forward") for name in names}
    back = {name: pl.col(name) - ahead[name] for name in names}
    rows = operators.with_row_index("row")
    communicates = pl.col("kernel_class").is_in(_COMMUNICATION)
    returns = ~communicates & (pl.coalesce(back["measured"], back["predicted"]) > 0)
    forward, backward = PHASES
    parts = [
        rows.filter(~returns).with_columns(phase=pl.when(~communicates).then(pl.lit(forward))),
        rows.filter(returns).with_columns(**ahead, phase=pl.lit(forward)),
        rows.filter(returns).with_columns(**back, phase=pl.lit(backward)),
    ]
    together = pl.concat(parts).sort("row", maintain_order=True)
    return together.drop("row", *(f"{name}_forward" for name in names))


# Matching measured and predicted operators of the NeuSight artifact.


def match_operators(
    predicted: Sequence[Operator], measured: Sequence[Operator]
) -> list[int] | None:
    """Find the measured operator of each predicted operator.

    Two traces of a network may list their operators in a different order, and then number them
    differently: ``add_1`` of one is ``add`` of the other. Unless both list the same names,
    operators are matched by their type, by all that they depend on and by all that depends on them.

    Returns
    -------
    list of int or None
        Position in ``measured`` for each operator of ``predicted``; None if the operators are not
        the same operators.
    """
    if [o.name for o in predicted] == [o.name for o in measured]:
        order = list(range(len(predicted)))
    else:
        numbers: dict[object, int] = {}
        places: defaultdict[object, list[int]] = defaultdict(list)
        for i, key in enumerate(_dataflow(measured, numbers)):
            places[key].append(i)
        wanted = _dataflow(predicted, numbers)
        if Counter(wanted) != Counter({key: len(positions) for key, positions in places.items()}):
            return None
        order = [places[key].pop(0) for key in wanted]
    if any(o.shape != measured[i].shape for o, i in zip(predicted, order, strict=True)):
        return None
    return order


def _dataflow(operators: Sequence[Operator], numbers: dict[object, int]) -> list[tuple[int, int]]:
    """Give the same number to operators with the same inputs and the same dependents."""
    above: dict[str, int] = {}
    users: defaultdict[str, list[str]] = defaultdict(list)
    kind = {o.name: re.sub(r"_\d+$", "", o.name) for o in operators}
    for operator in operators:
        inputs = tuple(sorted(above.get(name, -1) for name in operator.inputs))
        key = ("above", kind[operator.name], operator.shape, inputs)
        above[operator.name] = numbers.setdefault(key, len(numbers))
        for name in operator.inputs:
            users[name].append(operator.name)
    below: dict[str, int] = {}
    for operator in reversed(operators):
        outputs = tuple(sorted(below.get(name, -1) for name in users[operator.name]))
        follows = ("below", kind[operator.name], outputs)
        below[operator.name] = numbers.setdefault(follows, len(numbers))
    return [(above[o.name], below[o.name]) for o in operators]


# Summing the operators of the NeuSight artifact to a configuration.
#
# A traced file holds one transformer layer and the operators around it; a fused one holds all
# layers. The rules below reproduce every predicted end-to-end latency of the artifact to rounding,
# except for ``pp4_4`` (several micro-batches), whose files lack the information.

#: Prefix of the operators of layer i, and of the first operator after the layers. BERT has no
#: such operator: its layer ends with the last operator that carries the layer's name.
_LAYERS = (
    (re.compile(r"transformer_h_(\d{1,9})_"), "transformer_ln_f"),
    (re.compile(r"model_decoder_layers_(\d{1,9})_"), "model_decoder_final_layer_norm"),
    (re.compile(r"bert_encoder_layer_(\d{1,9})_"), None),
)
_COMMUNICATION = ("allreduce", "sendrecv")
#: One-way transfers that a step adds with four pipeline stages and one micro-batch. Inferred from
#: the predictions, exact in all six of them; activations and gradients cross three boundaries each.
PIPELINE_TRANSFERS = 11


@dataclass(frozen=True, slots=True)
class OperatorSum:
    """Sum of operators: rule, number of computing operators (rows, and executions), times in ms."""

    rule: str
    rows: int
    operators: int
    compute: float
    communication: float

    @property
    def total(self) -> float:
        """The end-to-end latency by the rule."""
        return self.compute + self.communication


def repeat_counts(names: Sequence[str], layers: int) -> list[int]:
    """Return the number of executions of each traced operator.

    Parameters
    ----------
    names : sequence of str
        Operator names in the order of the trace.
    layers : int
        ``num_layer`` of the configuration.

    Returns
    -------
    list of int
        ``layers`` for the operators of the traced layer, 1 for all others.

    Raises
    ------
    InputError
        No operator names its layer, or the trace holds neither one layer nor all.

    Examples
    --------
    >>> repeat_counts(["embed", "transformer_h_0_ln_1", "add", "transformer_ln_f"], 36)
    [1, 36, 36, 1]
    """
    inside, indices, after = _layer_of(names)
    if len(indices) == layers:
        return [1] * len(names)
    if indices != {0}:
        raise InputError(
            f"the file has operators of {len(indices)} layers, expected 1 or all {layers}"
        )
    first, end = inside[0], inside[-1] + 1
    if after is not None:
        ends = [i for i, name in enumerate(names) if name.startswith(after)]
        if not ends or ends[0] < end:
            raise InputError(
                f"no operator {after} after layer 0, so the end of the layer is unknown"
            )
        end = ends[0]
    return [layers if first <= i < end else 1 for i in range(len(names))]


def _layer_of(names: Sequence[str]) -> tuple[list[int], set[int], str | None]:
    """Return the positions of operators with layers, the layers, and the operator after them."""
    for pattern, after in _LAYERS:
        # Fused operators join several names with "~": search, not match.
        matches = {i: match for i, name in enumerate(names) if (match := pattern.search(name))}
        if matches:
            return list(matches), {int(match[1]) for match in matches.values()}, after
    known = ", ".join(pattern.pattern for pattern, _ in _LAYERS)
    raise InputError(
        f"no operator name shows its layer (known names: {known}), so it is unknown which "
        "operators repeat"
    )


def add_up(operators: Sequence[Operator], counts: Sequence[int], variant: str) -> OperatorSum:
    """Sum the operators of a configuration.

    Raises
    ------
    InputError
        No rule is known for the communication of the trace.
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
    raise InputError(f"errcomp has no rule for the communication of the variant {variant!r}")


def _exposed(operators: Sequence[Operator], counts: Sequence[int]) -> float:
    """Return the time of all-reduces that the backward pass does not hide.

    The backward pass runs the operators in reverse order; the all-reduce of a gradient starts when
    the gradient and the previous all-reduce are done.
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
