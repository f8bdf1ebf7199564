"""The operators behind the pairs of the NeuSight artifact, collected while its pairs are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError
from errcomp.readers._neusight_files import Configuration, Operator, read_operators
from errcomp.readers._neusight_match import match_operators
from errcomp.readers._neusight_report import FailedCheck, agree
from errcomp.readers._neusight_sums import PIPELINE_TRANSFERS, add_up, repeat_counts

if TYPE_CHECKING:
    import polars as pl

__all__ = ["OperatorTable"]

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


class OperatorTable:
    """Reads the operator files of one pair after the other and keeps what it found.

    Attributes
    ----------
    failed : list of FailedCheck
        Rules that did not hold.
    missing : dict of str to list of str
        Per predictor: configurations whose operators could not be read.
    unmeasured : dict of str to None
        Configurations without measured operators, in the order they were met.
    """

    def __init__(self, root: Path) -> None:
        self.failed: list[FailedCheck] = []
        self.missing: dict[str, list[str]] = {}
        self.unmeasured: dict[str, None] = {}
        self._root = root
        self._columns: dict[str, list[Any]] = {key: [] for key in ("run", *_KEYS, *_VALUES)}
        self._measured: dict[Configuration, tuple[list[Operator], float | None]] = {}

    def add(self, row: dict[str, Any], configuration: Configuration) -> dict[str, Any]:
        """Read the operators of a pair; return what they say about it (None where unknown)."""
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
            self._fail(where, "it is known how operators add up", str(error))
            self.missing.setdefault(tool, []).append(configuration.run)
            return facts
        if not agree(total.total, row["predicted"]):
            detail = f"{total.total!r} and {row['predicted']!r} ms ({total.rule})"
            self._fail(where, "predicted operators add up to the prediction", detail)
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
        """Return all operators read so far, one row each."""
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
        """Read the measured operators of a configuration (once for all predictors), and add up."""
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
            detail = f"{len(measured)} measured, {len(operators)} predicted, not the same network"
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
            # A transfer between stages is one way; the file gives there and back.
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
