"""What a gate says of each series of a new version."""

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

#: What a series can be told to be; only the first one is a regression.
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
    """What a gate found; arrays have one value a series, on the log scale where they are errors.

    Attributes
    ----------
    version : str
        That was checked.
    versions : tuple of str
        All of the panel, in order.
    names, groups : tuple of str
        Of the series, and what they are reported under.
    verdict : ndarray of str
        One of `VERDICTS`.
    why : ndarray of str
        Why a series cannot be told; empty otherwise.
    baseline, new, shift : ndarray
        Mean error of the baseline, new error, and their difference. NaN where there is none.
    low, high : ndarray
        95 % interval of each shift by itself, not corrected for their number.
    p, p_adjusted : ndarray
        Of each shift, and corrected for the number of series; NaN where it cannot be told.
    df : ndarray
        Degrees of freedom of the noise.
    noise : ndarray of str
        Where it comes from: ``"repeats"``, ``"scatter"`` of the baseline or ``"none"``.
    n_baseline : ndarray of int
        Versions in the baseline.
    last : ndarray of int
        Last version before, as position in ``versions``: what moved, moved after it. -1 without.
    detectable : ndarray
        Shift from which on this look would have found it with probability 1/2, alone.
    reference, predictor : ndarray
        Parts of ``shift`` by what moved: the measurement, or the prediction. NaN where not known.
    moved_by : ndarray of str
        ``"reference"``, ``"predictor"``, ``"both"``, ``"unknown"``, or ``""`` where neither
        moved. Both may move and cancel: the error is then as before.
    promised : ndarray
        Promised error; NaN where none was given.
    look : int
        Which look of the gate it was.
    alpha, level : float
        Probability of a false alarm over all looks, and its part for this one.
    margin : float
        Shift that does not matter.
    law : Law
        Law of comparisons under no change.
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
        """``"regression"``, ``"pass"``, or ``"cannot be told"`` where no series could be tested."""
        if (self.verdict == GREW).any():
            return "regression"
        return "cannot be told" if np.isnan(self.p).all() else "pass"

    @property
    def passed(self) -> bool:
        """Whether something was tested and nothing grew."""
        return self.outcome == "pass"

    def counts(self) -> dict[str, int]:
        """Return how many series each verdict has, in the order of `VERDICTS`."""
        return {verdict: int((self.verdict == verdict).sum()) for verdict in VERDICTS}

    def blamed(self) -> NDArray[np.int64]:
        """Return the series whose error grew, the largest shift first."""
        grown = np.flatnonzero(self.verdict == GREW)
        return grown[np.argsort(-np.abs(self.shift[grown]), kind="stable")]

    def releases(self, series: int) -> str:
        """Say between which versions a series moved, e.g. ``"1.29 to 1.30"``."""
        before = int(self.last[series])
        return f"{self.versions[before]} to {self.version}" if before >= 0 else self.version
