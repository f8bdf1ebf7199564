"""The result of a gate: a verdict on each series of a new version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from errcomp.codec import (
    Count,
    Derived,
    Document,
    Endless,
    Field,
    Inline,
    Log,
    Meta,
    Names,
    Part,
    Positive,
    Rows,
    Share,
    Undefined,
    if_known,
    key,
    shape_of,
    words,
)

__all__ = ["GREW", "VERDICTS", "GateResult", "Law"]

Floats = NDArray[np.float64]

#: The verdicts on a series; only the first one is a regression.
VERDICTS = (
    "error grew",
    "moved within the promise",
    "error no larger",
    "as before",
    "cannot be told",
    "not validated",
    "repeat",
)
GREW, REPEAT = VERDICTS[0], VERDICTS[-1]

_MAYBE_LOG, _MAYBE_SHARE = Annotated[Log, Undefined], Annotated[Share, Undefined]
_MAYBE_NUMBER = Annotated[float, Undefined]
_SERIES = Rows(
    "series",
    {
        "series": ("names", str, tuple),
        "group": ("groups", str, tuple),
        "verdict": ("verdict", Literal[VERDICTS], words),
        "why": ("why", str, words),
        "moved_by": ("moved_by", str, words),
        "last_version": ("last_version", str | None, list),
        "noise": ("noise", str, words),
        "n_baseline": ("n_baseline", Count, np.array),
        **{
            name: (name, type_, np.array)
            for name, type_ in (
                *((name, _MAYBE_LOG) for name in ("baseline", "new", "shift", "low", "high")),
                *((name, _MAYBE_SHARE) for name in ("p", "p_adjusted")),
                *((name, _MAYBE_NUMBER) for name in ("df", "detectable")),
                *((name, _MAYBE_LOG) for name in ("reference", "predictor", "promised")),
            )
        },
    },
    fewest=1,
)


#: Keys that documents of older versions do not have.
_LATER = Rows(
    "series",
    {
        "n_shifted": ("n_shifted", Count, np.array),
        "repeats_needed": ("repeats_needed", Count, np.array),
        "first_version": ("first_version", str | None, list),
    },
)


class _Series(Part):
    """A row for each series; versions by their names."""

    def write(self, result: GateResult) -> Mapping[str, Any]:
        columns = {name: getattr(result, name) for name, *_ in _SERIES.columns.values()
                   if name != "last_version"}  # fmt: skip
        last = _named(result.last, result.versions)
        rows = _SERIES.write(SimpleNamespace(**columns, last_version=last))["series"]
        if result.begin is None:
            return {"series": rows}
        later = _LATER.write(
            SimpleNamespace(
                n_shifted=result.n_shifted,
                repeats_needed=result.repeats_needed,
                first_version=_named(result.begin, result.versions),
            )
        )["series"]
        return {"series": [{**row, **more} for row, more in zip(rows, later, strict=True)]}

    def read(self, field: Field) -> Mapping[str, Any]:
        versions = shape_of(tuple[str, ...]).read(field.at("versions"))
        columns = dict(_SERIES.read(field))
        rows = list(field.at("series").items())
        positions = [("last", "last_version")]
        if any(row.has(name) for row in rows for name in _LATER.columns):
            columns |= _LATER.read(field)
            positions.append(("begin", "first_version"))
        for name, key_ in positions:
            named = columns.pop(key_)
            for value, place in zip(named, rows, strict=True):
                if value is not None and value not in versions:
                    place.at(key_).refuse(f"one of {', '.join(versions)}")
            columns[name] = np.array([-1 if v is None else versions.index(v) for v in named])
        return columns

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        schema = _SERIES.schema(names)
        schema["series"]["items"]["properties"] |= _LATER.schema(names)["series"]["items"][
            "properties"
        ]
        return schema


def _named(positions: NDArray[np.int64], versions: tuple[str, ...]) -> list[str | None]:
    return [versions[at] if at >= 0 else None for at in positions]


@dataclass(frozen=True, slots=True)
class Law(Document):
    """The noise between looks, as learned from the looks before.

    Attributes
    ----------
    scale : float
        Its standard deviation over that of repeats; 1 agrees with repeats, or has none.
    df : float
        Degrees of freedom of a Student t with tails like its tails; inf is normal.
    n : float
        Number of values that it was learned from.
    """

    KEYS: ClassVar = (key("noise_scale", "scale"), key("noise_df", "df"), key("noise_n", "n"))

    scale: Positive = 1.0
    df: Annotated[Positive, Endless] = np.inf
    n: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class GateResult(Document):
    """The result of a gate. Arrays have one value per series; errors are on the log scale.

    Attributes
    ----------
    version : str
        The version that was checked.
    versions : tuple of str
        All of the panel, in order.
    names, groups : tuple of str
        Names of the series, and names that they are reported under.
    verdict : ndarray of str
        One of `VERDICTS`.
    why : ndarray of str
        Why a series cannot be tested; empty otherwise.
    baseline, new, shift : ndarray
        Mean error of the baseline, new error, and mean error since the suspected shift minus the
        baseline (the median of these errors); NaN if missing.
    low, high : ndarray
        95 % interval of each shift alone, not corrected for the number of series.
    p, p_adjusted : ndarray
        p-value of each shift, and corrected for the number of series; NaN if not testable.
    df : ndarray
        Degrees of freedom of the noise.
    noise : ndarray of str
        Source of the noise: ``"repeats"``, ``"scatter"`` of the baseline or ``"none"``.
    n_baseline : ndarray of int
        Number of versions in the baseline.
    last : ndarray of int
        Last version before a shift, as position in ``versions``; -1 if there is none.
    detectable : ndarray
        Shift that would be detected with probability 1/2 in this series alone: at this look if
        validations have repeats, otherwise once it has lasted five looks. NaN if none would.
    reference, predictor : ndarray
        Parts of ``shift`` due to the measurement and to the prediction; NaN if unknown.
    moved_by : ndarray of str
        ``"reference"``, ``"predictor"``, ``"both"``, ``"unknown"``, or ``""`` if neither changed.
        If both changed and cancel, the error is as before.
    promised : ndarray
        Promised error; NaN without a promise.
    look : int
        Number of this look at the gate.
    alpha, level : float
        Probability of a false alarm over all looks, and its part for this look.
    margin : float
        Shift that does not matter.
    law : Law
        The noise between looks.
    begin : ndarray of int or None
        First version after a shift, as position in ``versions``; -1 if there is none. This and
        what follows is None in a document of an older version.
    n_shifted : ndarray of int or None
        Validations since the suspected shift.
    repeats_needed : ndarray of int or None
        Where the verdict is "repeat": how many more runs like the suspected ones would make it a
        regression; 0 elsewhere, and if more than 20.
    autocorrelation : float or None
        Correlation of the noise of one look with that of the next.

    Examples
    --------
    >>> from errcomp.halflife.gate import check
    >>> from errcomp.halflife.panel import Panel
    >>> result = check(Panel(
    ...     versions=("1.0", "1.1"), months=np.arange(2.0), names=("Gelu", "Conv"),
    ...     clusters=np.arange(2), starts=np.array([0, 2, 4]), version=np.tile(np.arange(2), 2),
    ...     error=np.array([0.0, -0.7, 0.0, 0.004]), sd=np.full(4, 0.01),
    ...     noise_df=np.full(2, 20.0), frozen_at_first=True))
    >>> result.outcome, result.passed
    ('regression', False)
    """

    KEYS: ClassVar = (
        *("version", "versions"),
        Derived("outcome", str, lambda result: result.outcome),
        Derived("passed", bool, lambda result: result.passed),
        *("look", "alpha", "level", "margin", Inline("law", Law)),
        if_known("autocorrelation"),
        Derived("counts", Mapping[str, Count], lambda result: result.counts()),
        _Series(),
    )

    version: str
    versions: Annotated[tuple[str, ...], Meta(min_length=1)]
    names: tuple[str, ...]
    groups: tuple[str, ...]
    verdict: NDArray[Any]
    why: NDArray[Any]
    baseline: Floats
    new: Floats
    shift: Floats
    low: Floats
    high: Floats
    p: Floats
    p_adjusted: Floats
    df: Floats
    noise: NDArray[Any]
    n_baseline: NDArray[np.int64]
    last: NDArray[np.int64]
    detectable: Floats
    reference: Floats
    predictor: Floats
    moved_by: NDArray[Any]
    promised: Floats
    look: Count
    alpha: Share
    level: Share
    margin: Log
    law: Law
    begin: NDArray[np.int64] | None = None
    n_shifted: NDArray[np.int64] | None = None
    repeats_needed: NDArray[np.int64] | None = None
    autocorrelation: float | None = None

    @property
    def outcome(self) -> str:
        """``"regression"``, ``"repeat"``, ``"pass"`` or ``"cannot be told"`` (nothing tested)."""
        if (self.verdict == GREW).any():
            return "regression"
        if (self.verdict == REPEAT).any():
            return "repeat"
        return "cannot be told" if np.isnan(self.p).all() else "pass"

    @property
    def passed(self) -> bool:
        """Whether something was tested and nothing grew."""
        return self.outcome == "pass"

    def counts(self) -> dict[str, int]:
        """Return the number of series with each verdict; "repeat" only where one has it.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.halflife.gate.checking import check_validation
        >>> versions = [f"1.{i}" for i in range(20)]
        >>> old = ec.History({"version": versions, "measured": [4.0, 4.1] * 10})
        >>> new = {"version": ["1.20"] * 3, "measured": [8.0, 8.1, 8.05]}
        >>> result = check_validation(old, new).result
        >>> {verdict: n for verdict, n in result.counts().items() if n}
        {'error grew': 1}
        """
        counts = {verdict: int((self.verdict == verdict).sum()) for verdict in VERDICTS}
        # Documents of older versions do not have it.
        return {name: n for name, n in counts.items() if n or name != REPEAT}

    def blamed(self) -> NDArray[np.int64]:
        """Return the positions of the series whose error grew, the largest shift first.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.halflife.gate.checking import check_validation
        >>> versions = [f"1.{i}" for i in range(20)]
        >>> old = ec.History({"version": versions, "measured": [4.0, 4.1] * 10})
        >>> new = {"version": ["1.20"] * 3, "measured": [8.0, 8.1, 8.05]}
        >>> result = check_validation(old, new).result
        >>> result.blamed().tolist()
        [0]
        """
        grown = np.flatnonzero(self.verdict == GREW)
        return grown[np.argsort(-np.abs(self.shift[grown]), kind="stable")]

    def releases(self, series: int) -> str:
        """Return the versions between which a series shifted, e.g. ``"1.29 to 1.30"``.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.halflife.gate.checking import check_validation
        >>> versions = [f"1.{i}" for i in range(20)]
        >>> old = ec.History({"version": versions, "measured": [4.0, 4.1] * 10})
        >>> new = {"version": ["1.20"] * 3, "measured": [8.0, 8.1, 8.05]}
        >>> check_validation(old, new).result.releases(0)
        '1.19 to 1.20'
        """
        before = int(self.last[series])
        first = -1 if self.begin is None else int(self.begin[series])
        shifted = self.versions[first] if first >= 0 else self.version
        return f"{self.versions[before]} to {shifted}" if before >= 0 else shifted
