"""Did a predictor see what it is evaluated on? Overlap with its training table, and what it hides.

Rows of the evaluated table are put into classes by their distance to the training table: the same
measurement, the same configuration, a near one, another one. The error of each class says what the
pooled error hides. Beside it: what a simple predictor that remembers would print if rows of the
evaluated table were left out at random, or whole configurations, models or devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import Count, Document, Size
from errcomp.errors import InputError, describe_names, offer
from errcomp.report.shown import Shown
from errcomp.results import Dropped, Estimate

if TYPE_CHECKING:
    import polars as pl

    from errcomp.report.model import Report
    from errcomp.tables import Pairs

__all__ = ["DistanceClass", "Leakage", "LeftOut", "UnseenValue", "leakage"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Keys of an evaluated table that say nothing about what was run.
_NOT_FEATURES = ("tool", "level", "reference", "status", "in_training", "in_distribution", "unit")
#: Relative difference up to which a measurement, or a number that is a key, is the same.
_SAME, _EQUAL = 1e-6, 1e-9
#: Classes by the ratio of the numeric key that differs most, the nearest first.
_CLASSES = ("same measurement", "same configuration", "within 10 %", "within a factor of 2")
_LIMITS = (math.log(1.1), math.log(2.0))
_FURTHER, _NEW = "further", "new values of other keys"
#: Rows among which the nearest is searched for when rows are left out.
_MOST = 1_000
#: Values of a key that can be left out one by one.
_FEWEST, _VALUES = 3, 50
#: Parts into which rows, or configurations, are divided to be left out; and the ridge of the line.
_FOLDS, _RIDGE = 10, 0.01


@dataclass(frozen=True, slots=True)
class DistanceClass(Document):
    """Evaluated rows at one distance from the training table.

    Attributes
    ----------
    name : str
    n : int
    rows : tuple of int
        The first three, as the user counts them.
    mape : Estimate
    """

    name: str
    n: Count
    rows: tuple[Count, ...]
    mape: Estimate


@dataclass(frozen=True, slots=True)
class UnseenValue(Document):
    """Evaluated rows whose value of a key the training table does not have.

    Attributes
    ----------
    column : str
    values : tuple of str
        The first ten.
    n : int
    mape : Estimate
    seen_mape : Estimate or None
        Of the other rows.
    """

    column: str
    values: tuple[str, ...]
    n: Count
    mape: Estimate
    seen_mape: Estimate | None


@dataclass(frozen=True, slots=True)
class LeftOut(Document):
    """What a simple predictor would print if these rows were left out.

    Attributes
    ----------
    what : str
        ``rows``, ``configurations``, or a key whose values are left out one by one.
    n : int
        Rows that could be predicted.
    mape : float
    """

    what: str
    n: Count
    mape: Size


@dataclass(frozen=True, slots=True)
class Leakage(Shown, Document):
    """How much of an evaluated table a predictor was trained on, and what that hides.

    Attributes
    ----------
    source, training, tool : str
    n, trained : int
        Pairs, and rows of the training table.
    shared : tuple of str
        Columns by which rows of both are compared.
    mape : Estimate
        Of all pairs.
    classes : tuple of DistanceClass
        The nearest first.
    new : Estimate or None
        MAPE of the pairs whose configuration is not in the training table.
    unseen : tuple of UnseenValue
    left_out : tuple of LeftOut
    dropped : tuple of Dropped
    """

    SCHEMA: ClassVar = "errcomp.leakage/1"
    COMMAND: ClassVar = "measurements leakage"

    source: str
    training: str
    tool: str
    n: Count
    trained: Count
    shared: tuple[str, ...]
    mape: Estimate
    classes: tuple[DistanceClass, ...]
    new: Estimate | None
    unseen: tuple[UnseenValue, ...]
    left_out: tuple[LeftOut, ...]
    dropped: tuple[Dropped, ...]

    @property
    def seen(self) -> int:
        """Number of pairs whose configuration is in the training table."""
        return sum(one.n for one in self.classes if one.name in _CLASSES[:2])

    def rows_document(self) -> Mapping[str, Any]:
        """Return the classes: what ``-o FILE.csv`` writes.

        Examples
        --------
        >>> table = {"batch": [1, 2, 4], "measured": [1.0, 2.0, 4.0], "predicted": [1.0, 2.2, 5.0]}
        >>> found = leakage(table, {"batch": [1], "measured": [1.0]})
        >>> [(row["name"], row["n"]) for row in found.rows_document()["rows"]]
        [('same measurement', 1), ('within a factor of 2', 1), ('further', 1)]
        """
        return {"rows": [one.to_dict() for one in self.classes]}

    def view(self) -> Report:
        """Return the report: classes by distance, new values, rows left out.

        Examples
        --------
        >>> table = {"batch": [1, 2, 4], "measured": [1.0, 2.0, 4.0], "predicted": [1.0, 2.2, 5.0]}
        >>> leakage(table, {"batch": [1], "measured": [1.0]}).view().title
        'Leakage'
        """
        from errcomp.measurements.view.leakage import leakage_view

        return leakage_view(self)


def leakage(
    pairs: Any,
    training: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    tool: str | None = None,
    keys: Sequence[str] | None = None,
    seed: int = 0,
) -> Leakage:
    """Compare the pairs that a predictor is evaluated on with the table it was trained on.

    Parameters
    ----------
    pairs : path, dataframe, mapping of columns or Pairs
        Predictions and measurements, of one tool or with ``tool``.
    training : path, dataframe or mapping of columns
        Rows that the predictor was trained on, with the same names of columns. A column of
        measurements is optional: with it, rows that state the same measurement are a class.
    predicted, measured : str, optional
        Columns of the pairs; the training table may have the same column of measurements, or one
        called ``measured``.
    tool : str, optional
        Which of several tools.
    keys : sequence of str, optional
        Columns by which rows are compared; by default all keys of the pairs that the training
        table has as well.
    seed : int
        Of the intervals.

    Returns
    -------
    Leakage

    Raises
    ------
    InputError
        A table cannot be read, there are several tools, or the tables share no column.

    Notes
    -----
    Numbers are near by the ratio of the one that differs most; of other keys, all must agree. A
    configuration is in the training table if all shared keys agree. MAPEs have 95 % intervals,
    clustered by model or device where the table has them.

    ``left_out`` is about the evaluated table alone: a straight line in logarithms, plus what it
    missed at the nearest row. The less this prints for rows at random than for whole values of a
    key, the more a random split flatters.

    Examples
    --------
    >>> table = {"batch": [1, 2, 4, 8], "measured": [1.0, 2.0, 4.0, 8.0],
    ...          "predicted": [1.0, 2.0, 4.4, 10.0]}
    >>> found = leakage(table, {"batch": [1, 2], "measured": [1.0, 2.1]})
    >>> [one.name for one in found.classes]
    ['same measurement', 'same configuration', 'within a factor of 2', 'further']
    >>> round(found.mape.value, 4), round(found.new.value, 4)
    (0.0875, 0.175)
    """
    from errcomp.measurements.attribution import of_one_tool
    from errcomp.measurements.audited import rows_of
    from errcomp.tables import Table

    reading = {} if isinstance(pairs, Table) else {"predicted": predicted, "measured": measured}
    own = of_one_tool(pairs, tool, **reading)
    rows = rows_of(own)
    frame, source = _training(training)
    features = [name for name in rows.keys if name not in (*_NOT_FEATURES, "predicted")]
    shared = _shared(own, features, frame, keys)
    both = _Both.of(own, frame, shared)
    name = "measured" if "measured" in frame.columns else measured
    values = None
    if name is not None and name in frame.columns:
        values = frame[name].cast(float, strict=False).to_numpy()
    classes = both.classes(own.measured, values)
    of = _Errors(own, seed)
    new = np.isin(classes, [_CLASSES.index(name) for name in _CLASSES[:2]], invert=True)
    order = [*_CLASSES, _FURTHER, _NEW]
    return Leakage(
        source=own.source,
        training=source,
        tool=own.tools[0] if own.tools else "",
        n=own.n,
        trained=frame.height,
        shared=tuple(shared),
        mape=of(np.ones(own.n, dtype=bool)),
        classes=tuple(
            DistanceClass(name, int(some.sum()), tuple(own.rows[some][:3].tolist()), of(some))
            for name, some in ((name, classes == i) for i, name in enumerate(order))
            if some.any()
        ),
        new=of(new) if new.any() else None,
        unseen=tuple(_unseen(own, frame, shared, of)),
        left_out=tuple(_left_out(own, shared)),
        dropped=own.dropped,
    )


def _training(training: Any) -> tuple[pl.DataFrame, str]:
    from os import PathLike, fspath
    from pathlib import Path

    from errcomp.measurements import read_file
    from errcomp.tables.frames import to_eager
    from errcomp.tables.memory.measurements import in_polars

    if not isinstance(training, str | PathLike):
        return in_polars(to_eager(training)), ""
    frame, _ = read_file(Path(fspath(training)))
    return in_polars(to_eager(frame)), fspath(training)


def _shared(
    own: Pairs, features: Sequence[str], frame: pl.DataFrame, keys: Sequence[str] | None
) -> list[str]:
    if keys is not None:
        own.check_columns(keys)
        for name in keys:
            if name not in frame.columns:
                raise InputError(
                    f"the training table has no column {name!r}. "
                    f"{offer('Columns', frame.columns, wanted=name)}"
                )
        return list(keys)
    shared = [name for name in features if name in frame.columns]
    if not shared:
        raise InputError(
            f"{own.prefix}no key is in both tables. Keys of the pairs: "
            f"{describe_names(list(features))}; columns of the training table: "
            f"{describe_names(frame.columns)}. Rename a column, or name the keys with --keys."
        )
    return shared


class _Errors:
    """The MAPE of some of the pairs."""

    def __init__(self, own: Pairs, seed: int) -> None:
        from errcomp.metrics.intervals.dependence import cluster_keys

        self.own, self.seed = own, seed
        self.labels = [own.column(name) for name in cluster_keys(None, own.keys)]

    def __call__(self, some: NDArray[np.bool_]) -> Estimate:
        from errcomp.metrics.intervals import estimate

        clusters = [labels[some].astype(str) for labels in self.labels]
        return estimate(
            "mape",
            predicted=self.own.predicted[some],
            measured=self.own.measured[some],
            clusters=clusters or None,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Both:
    """The shared keys of evaluated and of training rows.

    Attributes
    ----------
    group, trained_group : ndarray of int
        Number of the values of keys that are not numbers.
    place, trained_place : ndarray, shape (rows, numbers)
        Logarithms of the other keys.
    """

    group: Ints
    trained_group: Ints
    place: Floats
    trained_place: Floats

    @classmethod
    def of(cls, own: Pairs, frame: pl.DataFrame, shared: Sequence[str]) -> _Both:
        """Return the keys of both tables."""
        from errcomp.tables.memory.measurements import numbered

        n, codes, places = own.n, [], []
        for name in shared:
            mine, theirs = _plain(own.column(name)), _plain(frame[name].to_list())
            numbers = _logs([*mine, *theirs])
            if numbers is not None:
                places.append(numbers)
            else:
                texts = [str(value) for value in (*mine, *theirs)]
                codes.append(np.unique(texts, return_inverse=True)[1])
        group = numbered(codes, n + frame.height)
        place = np.stack(places, axis=1) if places else np.zeros((n + frame.height, 0))
        return cls(group[:n], group[n:], place[:n], place[n:])

    def classes(self, measured: Floats, trained: Floats | None) -> Ints:
        """Return the class of each evaluated row."""
        from scipy.spatial import cKDTree

        found = np.full(len(self.group), len(_CLASSES) + 1)
        theirs_of = _members(self.trained_group)
        for code, mine in _members(self.group).items():
            theirs = theirs_of.get(code)
            if theirs is None:
                continue
            distance: Any = np.zeros(len(mine))
            if self.place.shape[1]:
                tree = cKDTree(self.trained_place[theirs])
                distance = tree.query(self.place[mine], p=np.inf)[0]
            found[mine] = 1 + np.searchsorted([_EQUAL, *_LIMITS], distance, side="left")
        if trained is not None:
            found[(found == 1) & self._same(measured, trained)] = 0
        return found

    def _same(self, measured: Floats, trained: Floats) -> NDArray[np.bool_]:
        """Say which evaluated rows have the measurement of a training row, to six digits."""
        from errcomp.tables.memory.measurements import numbered

        n = len(measured)
        both = np.r_[measured, np.where(trained > 0, trained, np.nan)]
        place = np.concatenate([self.place, self.trained_place])
        codes = [np.unique(np.round(x, 8), return_inverse=True)[1] for x in place.T]
        key = numbered([np.r_[self.group, self.trained_group], *codes], len(both))
        step = np.round(np.log(both) / _SAME)
        known = {*zip(key[n:].tolist(), step[n:].tolist(), strict=True)}
        near = zip(key[:n].tolist(), step[:n].tolist(), strict=True)
        return np.array([any((k, s + d) in known for d in (-1, 0, 1)) for k, s in near])


def _members(group: Ints) -> dict[int, Ints]:
    """Return the positions of each number."""
    order = np.argsort(group, kind="stable")
    codes, starts = np.unique(group[order], return_index=True)
    return dict(zip(codes.tolist(), np.split(order, starts[1:]), strict=True))


def _plain(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _logs(values: Sequence[Any]) -> Floats | None:
    """Return the logarithms of positive numbers; None for anything else."""
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        return None
    numbers = np.array(values, dtype=float)
    return np.log(numbers) if np.all(np.isfinite(numbers) & (numbers > 0)) else None


def _unseen(
    own: Pairs, frame: pl.DataFrame, shared: Sequence[str], of: _Errors
) -> Iterator[UnseenValue]:
    """Yield the keys with values that the training table does not have."""
    for name in shared:
        known = {str(value) for value in frame[name].to_list()}
        texts = [str(value) for value in _plain(own.column(name))]
        new = np.array([text not in known for text in texts])
        if new.any():
            values = tuple(
                dict.fromkeys(text for text, is_new in zip(texts, new, strict=True) if is_new)
            )
            seen = of(~new) if not new.all() else None
            yield UnseenValue(name, values[:10], int(new.sum()), of(new), seen)


def _left_out(own: Pairs, shared: Sequence[str]) -> Iterator[LeftOut]:
    """Yield what a predictor that remembers prints with rows, or whole values of a key, left out.

    It is a straight line in logarithms (one effect for each value of keys that are not numbers),
    plus what the line missed at the nearest row that it was fitted to.
    """
    n = min(own.n, _MOST)
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(own.n, n, replace=False))
    columns, codes = [], {}
    for name in shared:
        values = [_plain(own.column(name))[i] for i in some]
        place = {text: i for i, text in enumerate(dict.fromkeys(map(str, values)))}
        codes[name] = np.array([place[str(value)] for value in values])
        numbers = _logs(values)
        if numbers is not None:
            columns.append((numbers - numbers.mean())[:, None])
        elif codes[name].max() < _VALUES:
            columns.append(np.eye(int(codes[name].max()) + 1)[codes[name]])
    if not columns or n < 2 * _FEWEST:
        return
    x, y = np.concatenate(columns, axis=1), np.log(own.measured[some])
    every = np.unique(np.stack(list(codes.values()), axis=1), axis=0, return_inverse=True)[1]
    whole = {"rows": np.arange(n), **codes, "configurations": every.ravel()}
    seen: list[Ints] = []
    for what, code in whole.items():
        number = len(np.unique(code))
        if what in codes and not _FEWEST <= number <= _VALUES:
            continue
        if any(np.array_equal(code, other) for other in seen):
            continue  # another name of the same values
        seen.append(code)
        fold = code if what in codes else rng.permutation(number)[code] % _FOLDS
        errors = np.concatenate([_remembered(x, y, fold == one) for one in np.unique(fold)])
        if len(errors):
            yield LeftOut(what, len(errors), float(np.abs(np.expm1(errors)).mean()))


def _remembered(x: Floats, y: Floats, out: NDArray[np.bool_]) -> Floats:
    """Return the errors (of logarithms) in rows that are left out."""
    from scipy.spatial import cKDTree

    if (~out).sum() < _FEWEST:
        return np.empty(0)
    known, middle = x[~out], float(y[~out].mean())
    normal = known.T @ known + _RIDGE * np.eye(x.shape[1])
    slope = np.linalg.solve(normal, known.T @ (y[~out] - middle))
    _, nearest = cKDTree(known).query(x[out])
    missed = (y[~out] - middle - known @ slope)[nearest]
    return np.asarray(middle + x[out] @ slope + missed - y[out])
