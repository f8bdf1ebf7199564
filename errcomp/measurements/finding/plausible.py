"""Impossible values, and doubtful ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from errcomp.datasets.devices import figures_of
from errcomp.tables.columns import role_of, words_of
from errcomp.tables.memory.measurements import Measurements
from errcomp.tables.units import SECONDS

__all__ = ["Broken", "implausible"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Relative slack, for rounding, of an order and of a product.
_SLACK = 1e-3
_PRODUCT = 0.05
#: A product, or a peak, is a rule of the table where this share of the rows keeps it.
_RULE = 0.8
#: A rate above this multiple of the peak is more than the rounding of the data sheet.
_ABOVE = 1.02
_QUANTILE = re.compile(r"(?:(?<![A-Za-z])[pP]|(?<=[a-z])P)(\d{1,2})(?:[._]?(\d))?")
_ORDER = {"min": 0.0, "minimum": 0.0, "median": 50.0, "med": 50.0, "max": 100.0, "maximum": 100.0}
_MEANS = frozenset(("mean", "avg", "average"))
_RATES = {"flops": ("peak", 1e12), "flop": ("peak", 1e12), "bytes": ("bandwidth", 1e9)}
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_COUNTS = ("requests", "samples", "queries", "iterations", "repeats", "count", "n")


@dataclass(frozen=True, slots=True, eq=False)
class Broken:
    """Rows that break a rule.

    Attributes
    ----------
    rule : str
        What must hold.
    columns : tuple of str
    rows : ndarray of int
        Positions of the rows.
    seen : str
        The values of the first of them.
    certain : bool
        Whether such values are impossible, or only doubtful.
    """

    rule: str
    columns: tuple[str, ...]
    rows: NDArray[np.int64]
    seen: str
    certain: bool = True


def implausible(table: Measurements) -> list[Broken]:
    """Return the rules that rows break.

    * Measurements are positive and finite, and all in one unit (of a column ``unit``).
    * Percentiles, minimum, median and maximum of one quantity are in order; a mean is between the
      minimum and the maximum. Columns belong together where their names differ in these words only.
    * Work per time is below the peak of the device, where the table has columns of FLOP or bytes
      and a device that `errcomp.datasets.devices` lists, and the unit is one of time.
    * Throughput times time is work. This rule, and that of the peak, must hold for at least 80 % of
      the rows: otherwise the columns mean something else.
    * Doubtful only: a percentile of so few requests that it is their maximum.
    """
    columns = _numeric(table)
    found = [*_measured(table), *_units(table), *_ordered(columns)]
    return [*found, *_above_peak(table, columns), *_products(columns), *_few_requests(columns)]


def _broken(
    rule: str, columns: Mapping[str, Floats], bad: Mask, *, certain: bool = True
) -> Iterator[Broken]:
    rows = np.flatnonzero(bad)
    if len(rows):
        seen = ", ".join(f"{name} {values[rows[0]]:g}" for name, values in columns.items())
        yield Broken(rule, tuple(columns), rows, seen, certain)


def _numeric(table: Measurements) -> dict[str, Floats]:
    """Return every column of numbers that the table has."""
    columns = dict(zip(table.measured, table.values.T, strict=True))
    for name in table.frame.columns:
        column = table.frame[name]
        if name not in columns and column.dtype.is_numeric():
            columns[name] = column.cast(float).fill_null(float("nan")).to_numpy()
    return columns


def _measured(table: Measurements) -> Iterator[Broken]:
    for name, values in zip(table.measured, table.values.T, strict=True):
        bad = (values <= 0) | np.isinf(values)
        yield from _broken("a measurement is positive and finite", {name: values}, bad)


def _units(table: Measurements) -> Iterator[Broken]:
    """Yield rows of another unit than most, where no key says that their quantity is another."""
    if "unit" not in table.frame.columns:
        return
    units = ["" if unit is None else str(unit).strip() for unit in table.frame["unit"].to_list()]
    (usual, _), *others = Counter(units).most_common()
    code = np.unique(units, return_inverse=True)[1]
    if not others or any(_decides(values, code) for values in table.keys.values()):
        return
    rows = np.flatnonzero([unit != usual for unit in units])
    seen = f"unit {units[rows[0]] or 'missing'}, usually {usual or 'missing'}"
    yield Broken("all rows have one unit", ("unit",), rows, seen)


def _decides(key: NDArray[np.int64], unit: NDArray[np.int64]) -> bool:
    """Say whether each value of a key, of which several rows have one, has one unit."""
    values = len(np.unique(key))
    return values <= len(key) / 2 and len(np.unique(np.stack([key, unit]), axis=1).T) == values


# Percentiles of one quantity.


def _ordered(columns: Mapping[str, Floats]) -> Iterator[Broken]:
    places: dict[tuple[str, ...], dict[str, float]] = {}
    means: dict[tuple[str, ...], list[str]] = {}
    for name in columns:
        place, rest = _place(name)
        if place is None:
            continue
        if place < 0:
            means.setdefault(rest, []).append(name)
        else:
            places.setdefault(rest, {})[name] = place
    for rest, of_name in places.items():
        names = sorted(of_name, key=of_name.__getitem__)
        for low, high in pairwise(names):
            if of_name[low] < of_name[high]:
                yield from _at_most(columns, low, high)
        for mean in means.get(rest, ()):
            if of_name[names[0]] == 0:
                yield from _at_most(columns, names[0], mean)
            if of_name[names[-1]] == 100:
                yield from _at_most(columns, mean, names[-1])


def _place(name: str) -> tuple[float | None, tuple[str, ...]]:
    """Return the percentile that a name stands for (-1: a mean), and the rest of the name."""
    match = _QUANTILE.search(name)
    if match is not None:
        rest = f"{name[: match.start()]} {name[match.end() :]}"
        return float(f"{match[1]}.{match[2] or 0}"), tuple(words_of(rest))
    words = words_of(name)
    for i, word in enumerate(words):
        rest_words = (*words[:i], *words[i + 1 :])
        if word in _ORDER:
            return _ORDER[word], rest_words
        if word in _MEANS:
            return -1.0, rest_words
    return None, ()


def _at_most(columns: Mapping[str, Floats], low: str, high: str) -> Iterator[Broken]:
    a, b = columns[low], columns[high]
    yield from _broken(f"{low} is at most {high}", {low: a, high: b}, a > b + _SLACK * np.abs(b))


# Rates.


def _above_peak(table: Measurements, columns: Mapping[str, Floats]) -> Iterator[Broken]:
    device = role_of("device", table.frame.columns)
    if device is None or table.unit not in SECONDS:
        return
    known = {name: figures_of(str(name)) for name in table.frame[device].unique().to_list()}
    seconds = table.values[:, 0] * SECONDS[table.unit]
    for name in columns:
        for word in words_of(name):
            scale = _SCALES.get(word[:1] if word[1:] in _RATES else "", 1.0)
            work = word[1:] if word[1:] in _RATES else word
            if work not in _RATES or {"per", "s", "sec"} & set(words_of(name)):
                continue
            figure, unit = _RATES[work]
            peaks = {k: getattr(v, figure) / v.dies if v else np.inf for k, v in known.items()}
            most = np.array([peaks[value] for value in table.frame[device].to_list()]) * unit
            rate = columns[name] * scale / np.where(seconds > 0, seconds, np.nan)
            above = rate > _ABOVE * most
            if above.mean() > 1 - _RULE:
                continue  # the column is a rate itself, or of a lower precision
            rule = f"{name} per time is below the {figure} of the device"
            shown = {name: columns[name], table.measured[0]: table.values[:, 0]}
            yield from _broken(rule, shown, above)


def _products(columns: Mapping[str, Floats]) -> Iterator[Broken]:
    rates = [name for name in columns if "throughput" in words_of(name) or "per_s" in name.lower()]
    times = [name for name in columns if {"duration", "elapsed", "makespan"} & set(words_of(name))]
    works = [
        name
        for name in columns
        if {"tokens", "requests", "samples", "items", "queries"} & set(words_of(name))
    ]
    for rate in rates:
        for time in times:
            for work in works:
                if work in (rate, time):
                    continue
                yield from _product(columns, rate, time, work)


def _product(columns: Mapping[str, Floats], rate: str, time: str, work: str) -> Iterator[Broken]:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log10(columns[rate] * columns[time] / columns[work])
    usual = round(float(np.nanmedian(ratio))) if np.isfinite(ratio).any() else 0
    holds = np.abs(ratio - usual) <= np.log10(1 + _PRODUCT)
    if usual % 3 == 0 and holds.mean() >= _RULE:
        shown = {name: columns[name] for name in (rate, time, work)}
        yield from _broken(f"{rate} times {time} is {work}", shown, ~holds)


def _few_requests(columns: Mapping[str, Floats]) -> Iterator[Broken]:
    counts = [name for name in columns if words_of(name) and words_of(name)[-1] in _COUNTS]
    for name in columns:
        place, _ = _place(name)
        if place is None or not 50 < place < 100:
            continue
        for count in counts[:1]:
            need = 100 / (100 - place)
            few = (columns[count] < need) & (columns[count] > 0)
            rule = f"{name} needs {need:.0f} or more of {count}: of fewer it is their maximum"
            yield from _broken(rule, {count: columns[count]}, few, certain=False)
