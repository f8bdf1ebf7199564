"""Comparisons: errors of one tool, factors, and configurations that agree in everything else."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.drivers.inference import MIN_CLUSTERS
from errcomp.errors import InputError, describe_rows
from errcomp.tables import RESERVED_KEYS, Pairs

#: Keys of independent units, like subjects in a trial: errors of the same unit are dependent.
UNITS = ("device", "model")
#: Keys that count something: compared as multiples (batch 8 against 16), not as labels.
NUMERIC_FACTORS = ("batch", "seq_len")
#: A key with more values than this is a list of names, not a factor, unless the user names it.
MAX_LEVELS = 8
_ORDER = (
    "variant",
    "mode",
    "batch",
    "seq_len",
    "devices",
    "in_training",
    "in_distribution",
    "vendor",
)
_NOT_FACTORS = ("tool", "level", "date", "repeat", *UNITS)
_REFERENCES = {
    "mode": "inference",
    "variant": "base",
    "in_training": "true",
    "in_distribution": "true",
}
_MIN_SHARED = 3


@dataclass(frozen=True, slots=True)
class MatchKeys:
    """Keys on which two levels of a factor are matched, and keys on which they cannot be matched.

    Attributes
    ----------
    on : tuple of str
        Keys with the same value on both sides.
    impossible : tuple of str
        Keys that determine the factor or follow from it: no two rows can agree on them.
    """

    on: tuple[str, ...]
    impossible: tuple[str, ...]


def level_text(value: Any) -> str:
    """Write a key value as users do: whole numbers without a decimal point.

    Examples
    --------
    >>> level_text(8.0), level_text("fusion"), level_text(True)
    ('8', 'fusion', 'true')
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_complete(pairs: Pairs, key: str) -> bool:
    """Say whether no row lacks the key."""
    return not any(v is None or v != v for v in pairs.column(key).tolist())


def _is_label(pairs: Pairs, key: str) -> bool:
    return pairs.column(key).dtype.kind in "Ob"


def choose_factors(pairs: Pairs, factors: Sequence[str] | None) -> tuple[str, ...]:
    """Return the factors to compare: the named ones, or every key that can be one.

    A key can be a factor if no row lacks it, it has at least two values and, for labels, at most
    ``MAX_LEVELS``, and it is not another name of the device or the model. Numbers other than batch,
    seq_len and devices are usually measurements, so they are factors only if named.

    Raises
    ------
    InputError
        A named factor is not a column, has only one value, or is missing in some rows.
    """
    if factors is not None:
        for name in factors:
            _check_factor(pairs, name)
        return tuple(dict.fromkeys(factors))
    candidates = []
    for name in pairs.keys:
        if name in _NOT_FACTORS or not is_complete(pairs, name) or _names_unit(pairs, name):
            continue
        levels = len(set(pairs.column(name).tolist()))
        numeric = name in NUMERIC_FACTORS
        label = _is_label(pairs, name) or name == "devices"
        if levels >= 2 and (numeric or (label and levels <= MAX_LEVELS)):
            candidates.append(name)
    known = [name for name in _ORDER if name in candidates]
    return tuple(known + [name for name in candidates if name not in known])


def _names_unit(pairs: Pairs, name: str) -> bool:
    """Say whether one of the user's own keys is another name of the device or the model."""
    if name in _ORDER or not _is_label(pairs, name):
        return False
    values = pairs.column(name).tolist()
    units = [pairs.column(unit).tolist() for unit in UNITS if unit in pairs.keys]
    return any(determines(values, unit) and determines(unit, values) for unit in units)


def _check_factor(pairs: Pairs, name: str) -> None:
    values = pairs.column(name)
    if not is_complete(pairs, name):
        missing = [i for i, v in enumerate(values.tolist()) if v is None or v != v]
        raise InputError(
            f"factor {name!r} has no value in {len(missing)} of {pairs.n} rows. "
            f"Fill it in, or leave {name!r} out of the factors."
        )
    if len(set(values.tolist())) < 2:
        raise InputError(
            f"factor {name!r} is {level_text(values[0])!r} in every row, so there is nothing to "
            f"compare. Leave it out, or choose among: {', '.join(pairs.keys)}"
        )


def reference_level(pairs: Pairs, factor: str) -> Any:
    """Return the reference level: the usual one, else the most frequent."""
    values = pairs.column(factor).tolist()
    for value in dict.fromkeys(values):
        if level_text(value) == _REFERENCES.get(factor):
            return value
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return min(counts, key=lambda value: (-counts[value], level_text(value)))


def other_levels(pairs: Pairs, factor: str, reference: Any) -> list[Any]:
    """Return the levels that are compared with the reference, sorted by name."""
    return sorted((v for v in set(pairs.column(factor).tolist()) if v != reference), key=level_text)


def determines(a: Iterable[Hashable], b: Iterable[Hashable]) -> bool:
    """Say whether each value of ``a`` occurs with only one value of ``b``.

    Examples
    --------
    >>> determines(["H100", "H100", "MI100"], ["NVIDIA", "NVIDIA", "AMD"])
    True
    >>> determines(["NVIDIA", "NVIDIA", "AMD"], ["H100", "A100", "MI100"])
    False
    """
    seen: dict[Hashable, Hashable] = {}
    return all(seen.setdefault(x, y) == y for x, y in zip(a, b, strict=True))


def match_keys(
    pairs: Pairs, factor: str, factors: Sequence[str], *, rows: NDArray[np.bool_]
) -> MatchKeys:
    """Return the keys on which two levels of the factor are matched.

    Candidates are the reserved keys, the other factors and every label without missing values. A
    key that determines the factor (a device has one vendor) or follows from it (a distributed
    variant has four devices) cannot be matched, and is named as such. A key that follows from
    another key is matched with that key and not named. A label that follows from device and model
    together (was this model on this device in the training data?) adds nothing to them. It is not
    matched either, because it would separate devices that the factor should compare.
    """
    target = pairs.column(factor)[rows].tolist()
    on: dict[str, list[Any]] = {}
    impossible = []
    # Reserved keys first: of two keys with the same information, the known name stays.
    for name in sorted(pairs.keys, key=lambda key: key not in RESERVED_KEYS):
        if name in (factor, "tool", "date", "repeat") or not is_complete(pairs, name):
            continue
        if name not in RESERVED_KEYS and not _is_own_label(pairs, name, factors):
            continue
        values = pairs.column(name)[rows].tolist()
        if len(set(values)) < 2:
            continue
        if determines(values, target) or determines(target, values):
            impossible.append(name)
        else:
            on[name] = values
    for name in [key for key in reversed(on) if key not in UNITS]:
        if any(other != name and determines(on[other], on[name]) for other in on):
            del on[name]
    return MatchKeys(tuple(on), tuple(impossible))


def _is_own_label(pairs: Pairs, name: str, factors: Sequence[str]) -> bool:
    """Say whether one of the user's own keys describes a configuration."""
    if name not in factors and not _is_label(pairs, name):
        return False
    if not all(unit in pairs.keys for unit in UNITS):
        return True
    values = pairs.column(name).tolist()
    units = [pairs.column(unit).tolist() for unit in UNITS]
    alone = any(determines(unit, values) for unit in units)
    return alone or not determines(list(zip(*units, strict=True)), values)


def merged_devices(pairs: Pairs) -> dict[str, str]:
    """Map each device to the first device with which it shares all its predictions.

    If a tool predicts the same numbers for two devices (it does not distinguish them), their errors
    are not independent. Devices count as one if they share at least three configurations and all
    their predictions there are equal.
    """
    if "device" not in pairs.keys or not is_complete(pairs, "device"):
        return {}
    devices = pairs.column("device").tolist()
    keys = [
        name
        for name in RESERVED_KEYS
        if name in pairs.keys
        and name not in ("tool", "device")
        and not determines(devices, pairs.column(name).tolist())
    ]
    tables: dict[str, dict[tuple[Any, ...], float]] = {}
    for i, device in enumerate(devices):
        cell = tuple(pairs.column(name)[i] for name in keys)
        tables.setdefault(str(device), {})[cell] = float(pairs.predicted[i])
    merged: dict[str, str] = {}
    for device, table in tables.items():
        same = (merged[other] for other in merged if _same_predictions(tables[other], table))
        merged[device] = next(same, device)
    return merged


def _same_predictions(a: Mapping[Any, float], b: Mapping[Any, float]) -> bool:
    shared = [cell for cell in a if cell in b]
    if len(shared) < _MIN_SHARED:
        return False
    x: NDArray[np.float64] = np.array([a[cell] for cell in shared])
    return bool(np.allclose(x, [b[cell] for cell in shared], rtol=1e-9, atol=0.0))


#: An APE below this share of the table's median APE counts as that share.
FLOOR_SHARE = 0.01
#: Squares of larger APEs, or their sum, may overflow.
_LARGEST = 1e75


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Errors of the pairs of one tool, each of shape (n,).

    Attributes
    ----------
    ape : ndarray
        Absolute error over the measurement, as a fraction.
    log_ape : ndarray
        Natural logarithm of the APE, floored (see :func:`outcomes_of`).
    signed : ndarray
        Natural logarithm of predicted over measured: positive where the prediction is too high.
    floor : float
        The floor, as a fraction.
    n_floored : int
        Pairs with an APE below it.
    """

    ape: NDArray[np.float64]
    log_ape: NDArray[np.float64]
    signed: NDArray[np.float64]
    floor: float
    n_floored: int


def outcomes_of(pairs: Pairs) -> Outcomes:
    r"""Compute the errors on which factors are compared.

    .. math:: \mathrm{APE}_i = |p_i - m_i| / m_i, \quad
              a_i = \ln \max(\mathrm{APE}_i, f), \quad s_i = \ln(p_i / m_i)

    Definition: the floor f is 1 % of the median of the positive APEs of the table. An error of
    0.01 % is chance: the ratio of any other error to it is a ratio to noise, and the ratio to an
    exact prediction is infinite. The floor keeps such pairs (leaving them out would remove the best
    predictions) and limits their effect on a geometric mean. It is computed from all pairs
    together, so it favours no level of any factor: if a factor has no effect, tests remain exact. A
    true ratio of errors is slightly biased towards 1.

    Raises
    ------
    InputError
        A prediction is not positive, so that its log-ratio does not exist, or too large for its
        error to be squared.
    """
    p, m = pairs.predicted, pairs.measured
    prefix = f"{pairs.source}: " if pairs.source else ""
    bad = p <= 0
    if bad.any():
        raise InputError(
            f"{prefix}predicted must be positive for a log-ratio, got {p[bad][0]} in "
            f"{describe_rows(pairs.rows[bad].tolist())}. If these predictions failed, leave them "
            "empty and give the reason in a column 'status'."
        )
    with np.errstate(over="ignore"):
        ape = np.abs(p - m) / m
    bad = ape > _LARGEST
    if bad.any():
        raise InputError(
            f"{prefix}predicted is more than {_LARGEST:.0e} times measured, got "
            f"predicted={p[bad][0]:g}, measured={m[bad][0]:g} in "
            f"{describe_rows(pairs.rows[bad].tolist())}. Check that both have the same unit."
        )
    positive = ape[ape > 0]
    # If every prediction is exact, any floor gives the same ratio of 1.
    floor = FLOOR_SHARE * float(np.median(positive)) if len(positive) else 1.0
    return Outcomes(
        ape=ape,
        log_ape=np.log(np.maximum(ape, floor)),
        signed=np.log(p) - np.log(m),
        floor=floor,
        n_floored=int(np.sum(ape < floor)),
    )


#: Compared multiples: neighbouring values of a number within otherwise equal configurations.
FOLDS = (2, 4)


@dataclass(frozen=True, slots=True)
class Question:
    """Two levels of a factor to compare: two values, or each value and its multiple."""

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
        """Return the rows at one of the two levels, as a mask."""
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
        """Keep the rows that satisfy the conditions; None if no rows do."""
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

    def counted_as_one(self, devices: Iterable[str]) -> list[list[str]]:
        """Return groups of devices that count as one, because their predictions are the same."""
        groups: dict[str, list[str]] = {}
        for name in devices:
            groups.setdefault(self.merged.get(name, name), []).append(name)
        return [group for group in groups.values() if len(group) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Configurations found at both levels: one entry per configuration, a and b as row lists.

    ``stricter`` holds the configurations that agree in more keys, if they are too few to use.
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
    """Return the comparisons of the factors, before knowing which have matches."""
    asked: list[Question] = []
    for factor in table.factors:
        values = table.pairs.column(factor)
        if factor in NUMERIC_FACTORS and values.dtype.kind in "iuf":
            asked += [Question(factor, fold=k) for k in FOLDS]
            continue
        reference = reference_level(table.pairs, factor)
        others = other_levels(table.pairs, factor, reference)
        asked += [Question(factor, reference, other) for other in others]
    return asked


def match(table: Table, question: Question) -> Matched | None:
    """Find the configurations that occur at both levels; None if there are none.

    All keys that can be matched are matched, with two relaxations. Each is named in the result,
    because an answer with a known weakness is better than no answer:

    * If fewer than three clusters remain, batches are averaged, if that gives three.
    * If nothing remains, devices are compared with each other, if each has only one level.

    Different models on different devices are never compared: models could explain any difference.
    """
    matching = match_keys(table.pairs, question.factor, table.factors, rows=question.rows(table))
    on, impossible = matching.on, matching.impossible
    if all(unit in impossible for unit in UNITS):
        return None
    if question.fold is not None:
        # Sequence lengths that differ only between models would compare models.
        fixed = any(unit in impossible for unit in UNITS)
        return None if fixed else _match_on(table, question, on, impossible)
    matched = _match_on(table, question, on, impossible)
    if "batch" in on and (matched is None or not (matched.between or _has_interval(matched))):
        relaxed = _match_on(table, question, _without(on, "batch"), ("batch", *impossible))
        if relaxed is not None and (matched is None or _has_interval(relaxed)):
            matched = replace(relaxed, stricter=matched)
    if matched is None and "device" in on and "model" not in impossible:
        across = _match_on(table, question, _without(on, "device"), ("device", *impossible))
        matched = across if across is not None and across.between == "device" else None
    return matched


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

    Devices come first, because a predictor must work on the next device; the interval is then for
    devices like these and for the same models. Models are used if the pairs come from fewer than
    three devices.
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
