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
    Field,
    Inline,
    Log,
    Meta,
    Names,
    Part,
    Rows,
    Share,
    Undefined,
    shape_of,
    words,
)
from errcomp.halflife.gate.shifts import Law

__all__ = ["GREW", "VERDICTS", "GateResult"]

Floats = NDArray[np.float64]

#: The verdicts on a series; only the first one is a regression.
VERDICTS = (
    "error grew",
    "moved within the promise",
    "error no larger",
    "as before",
    "cannot be told",
    "not validated",
)
GREW = VERDICTS[0]

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


class _Series(Part):
    """A row for each series; the version before the new one by its name."""

    def write(self, result: GateResult) -> Mapping[str, Any]:
        columns = {name: getattr(result, name) for name, *_ in _SERIES.columns.values()
                   if name != "last_version"}  # fmt: skip
        last = [result.versions[at] if at >= 0 else None for at in result.last]
        return _SERIES.write(SimpleNamespace(**columns, last_version=last))

    def read(self, field: Field) -> Mapping[str, Any]:
        versions = shape_of(tuple[str, ...]).read(field.at("versions"))
        columns = dict(_SERIES.read(field))
        last = columns.pop("last_version")
        for version, place in zip(last, field.at("series").items(), strict=True):
            if version is not None and version not in versions:
                place.at("last_version").refuse(f"one of {', '.join(versions)}")
        positions = [-1 if version is None else versions.index(version) for version in last]
        return {**columns, "last": np.array(positions)}

    def schema(self, names: Names) -> dict[str, dict[str, Any]]:
        return _SERIES.schema(names)


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
        Mean error of the baseline, new error, and their difference; NaN if missing.
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
        Last version before the new one, as position in ``versions``; a shift happened after it.
        -1 if there is none.
    detectable : ndarray
        Shift that this look would detect with probability 1/2 in this series alone.
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
        Distribution of comparisons without a change.

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

    @property
    def outcome(self) -> str:
        """``"regression"``, ``"pass"``, or ``"cannot be told"`` if no series could be tested."""
        if (self.verdict == GREW).any():
            return "regression"
        return "cannot be told" if np.isnan(self.p).all() else "pass"

    @property
    def passed(self) -> bool:
        """Whether something was tested and nothing grew."""
        return self.outcome == "pass"

    def counts(self) -> dict[str, int]:
        """Return the number of series with each verdict, in the order of `VERDICTS`.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.halflife.gate.checking import check_validation
        >>> old = ec.History({"version": [f"1.{i}" for i in range(8)], "measured": [4.0, 4.1] * 4})
        >>> result = check_validation(old, {"version": ["1.8"], "measured": [8.0]}).result
        >>> {verdict: n for verdict, n in result.counts().items() if n}
        {'error grew': 1}
        """
        return {verdict: int((self.verdict == verdict).sum()) for verdict in VERDICTS}

    def blamed(self) -> NDArray[np.int64]:
        """Return the positions of the series whose error grew, the largest shift first.

        Examples
        --------
        >>> import errcomp as ec
        >>> from errcomp.halflife.gate.checking import check_validation
        >>> old = ec.History({"version": [f"1.{i}" for i in range(8)], "measured": [4.0, 4.1] * 4})
        >>> result = check_validation(old, {"version": ["1.8"], "measured": [8.0]}).result
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
        >>> old = ec.History({"version": [f"1.{i}" for i in range(8)], "measured": [4.0, 4.1] * 4})
        >>> check_validation(old, {"version": ["1.8"], "measured": [8.0]}).result.releases(0)
        '1.7 to 1.8'
        """
        before = int(self.last[series])
        return f"{self.versions[before]} to {self.version}" if before >= 0 else self.version
