"""Matching: which configurations agree in everything but the factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from errcomp.drivers.design import (
    NUMERIC_FACTORS,
    UNITS,
    determines,
    level_text,
    match_keys,
    reference_level,
)
from errcomp.drivers.inference import MIN_CLUSTERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.drivers.outcomes import Outcomes
    from errcomp.tables import Pairs

#: Multiples compared: neighbouring values of a number within otherwise equal configurations.
FOLDS = (2, 4)

__all__ = ["Matched", "Question", "Table", "match", "questions_for"]


@dataclass(frozen=True, slots=True)
class Question:
    """Which two levels of which factor to compare: two values, or each value and its k-fold."""

    factor: str
    level_a: Any = None
    level_b: Any = None
    fold: int | None = None
    where: Mapping[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, str]:
        """The two levels as text."""
        if self.fold is not None:
            return "×1", f"×{self.fold}"
        return level_text(self.level_a), level_text(self.level_b)

    @property
    def name(self) -> str:
        """The contrast's name."""
        a, b = self.labels
        text = f"{self.factor} {b}" if self.fold is not None else f"{self.factor}: {b} vs {a}"
        subset = ", ".join(f"{k}={v}" for k, v in self.where.items())
        return f"{text} (where {subset})" if subset else text

    def rows(self, table: Table) -> NDArray[np.bool_]:
        """Return the rows at one of the levels asked about, as a mask."""
        values = table.pairs.column(self.factor).tolist()
        wanted = (self.level_a, self.level_b)
        return np.array([self.fold is not None or v in wanted for v in values], dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The pairs of one tool with their outcomes, factors and independent devices."""

    pairs: Pairs
    outcomes: Outcomes
    factors: tuple[str, ...]
    merged: Mapping[str, str]

    def where(self, conditions: Mapping[str, str]) -> Table | None:
        """Keep the rows that satisfy the conditions; None where there are none."""
        mask = np.ones(self.pairs.n, dtype=bool)
        for key, wanted in conditions.items():
            mask &= np.array([level_text(v) == wanted for v in self.pairs.column(key)])
        if not mask.any():
            return None
        o = self.outcomes
        cut = replace(o, ape=o.ape[mask], log_ape=o.log_ape[mask], signed=o.signed[mask])
        return replace(self, pairs=self.pairs.take(mask), outcomes=cut)

    def unit_labels(self, unit: str) -> list[str]:
        """Return each row's device (merged where predictions are the same) or model."""
        labels = [str(v) for v in self.pairs.column(unit).tolist()]
        return [self.merged.get(v, v) for v in labels] if unit == "device" else labels


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Configurations found at both levels: one entry per configuration, a and b as row lists.

    ``stricter`` holds the configurations that agree in more, where they are too few to use.
    """

    rows_a: tuple[NDArray[np.int64], ...]
    rows_b: tuple[NDArray[np.int64], ...]
    matched_on: tuple[str, ...]
    not_matched_on: tuple[str, ...]
    between: str | None
    clusters: tuple[str, ...]
    cluster_key: str
    stricter: Matched | None = None

    @property
    def n(self) -> int:
        """Number of matched configurations."""
        return len(self.rows_a)

    def differences(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean at b minus mean at a in each configuration."""
        pairs = zip(self.rows_a, self.rows_b, strict=True)
        return np.array([values[b].mean() - values[a].mean() for a, b in pairs])


def questions_for(table: Table) -> list[Question]:
    """Return the comparisons that the factors ask for, before knowing which can be answered."""
    asked: list[Question] = []
    for factor in table.factors:
        values = table.pairs.column(factor)
        if factor in NUMERIC_FACTORS and values.dtype.kind in "iuf":
            asked += [Question(factor, fold=k) for k in FOLDS]
            continue
        reference = reference_level(table.pairs, factor)
        others = sorted((v for v in set(values.tolist()) if v != reference), key=level_text)
        asked += [Question(factor, reference, other) for other in others]
    return asked


def match(table: Table, question: Question) -> Matched | None:
    """Find the configurations that occur at both levels; None where there are none.

    All keys that can be matched on are. Two relaxations, each named in the result, because an
    answer that says what was not held equal is better than none:

    * Where fewer than three clusters remain, batches are averaged, if that gives three.
    * Where nothing remains, devices are compared with each other, if each has one level only.

    Different models on different devices are never compared: any difference could be theirs.
    """
    matching = match_keys(table.pairs, question.factor, table.factors, rows=question.rows(table))
    on, impossible = matching.on, matching.impossible
    if all(unit in impossible for unit in UNITS):
        return None
    if question.fold is not None:
        # Sequence lengths that differ only between models would compare the models.
        fixed = any(unit in impossible for unit in UNITS)
        return None if fixed else _match_on(table, question, on, impossible)
    found = _match_on(table, question, on, impossible)
    if "batch" in on and (found is None or not (found.between or _has_interval(found))):
        relaxed = _match_on(table, question, _without(on, "batch"), ("batch", *impossible))
        if relaxed is not None and (found is None or _has_interval(relaxed)):
            found = replace(relaxed, stricter=found)
    if found is None and "device" in on and "model" not in impossible:
        across = _match_on(table, question, _without(on, "device"), ("device", *impossible))
        found = across if across is not None and across.between == "device" else None
    return found


def _without(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    return tuple(k for k in keys if k != key)


def _has_interval(matched: Matched) -> bool:
    return len(set(matched.clusters)) >= MIN_CLUSTERS


def _match_on(
    table: Table, question: Question, on: tuple[str, ...], not_on: tuple[str, ...]
) -> Matched | None:
    values = table.pairs.column(question.factor).tolist()
    columns = [table.pairs.column(key).tolist() for key in on]
    cells: dict[tuple[Any, ...], dict[Any, list[int]]] = {}
    for i, value in enumerate(values):
        cell = tuple(column[i] for column in columns)
        cells.setdefault(cell, {}).setdefault(value, []).append(i)
    rows_a, rows_b = [], []
    for levels in cells.values():
        for a, b in _level_pairs(question, list(levels)):
            rows_a.append(np.array(levels[a], dtype=np.int64))
            rows_b.append(np.array(levels[b], dtype=np.int64))
    if not rows_a:
        return None
    used = np.concatenate([*rows_a, *rows_b])
    between = next((u for u in UNITS if u in not_on and _fixes(table, u, question, used)), None)
    clusters, key = _clusters(table, question, on, rows_a)
    return Matched(tuple(rows_a), tuple(rows_b), on, not_on, between, clusters, key)


def _fixes(table: Table, unit: str, question: Question, rows: NDArray[np.int64]) -> bool:
    values = table.pairs.column(question.factor)[rows].tolist()
    return determines(table.pairs.column(unit)[rows].tolist(), values)


def _level_pairs(question: Question, present: list[Any]) -> list[tuple[Any, Any]]:
    if question.fold is not None:
        ordered = sorted(v for v in present if v > 0)
        return [(a, b) for a, b in pairwise(ordered) if b == question.fold * a]
    both = question.level_a in present and question.level_b in present
    return [(question.level_a, question.level_b)] if both else []


def _clusters(
    table: Table, question: Question, on: Sequence[str], rows: Sequence[NDArray[np.int64]]
) -> tuple[tuple[str, ...], str]:
    """Label each configuration with its unit: device, else model, else itself.

    Devices come first because a predictor is judged by the next device; the interval then speaks
    for devices like these and takes the models as given. Models take their place where the pairs
    come from fewer than three devices.
    """
    units = [u for u in UNITS if u in on and u != question.factor]
    if not units:
        return tuple(str(i) for i in range(len(rows))), "pair"
    labelled = []
    for unit in units:
        labels = table.unit_labels(unit)
        labelled.append((tuple(labels[int(r[0])] for r in rows), unit))
    enough = [entry for entry in labelled if len(set(entry[0])) >= MIN_CLUSTERS]
    return enough[0] if enough else max(labelled, key=lambda entry: len(set(entry[0])))
