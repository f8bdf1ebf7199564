"""What a gate found: verdicts, shifts and probabilities of all series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.halflife.gate.shifts import Law
from errcomp.halflife.gate.verdicts import GREW, VERDICTS

__all__ = ["GateResult"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GateResult:
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

    version: str
    versions: tuple[str, ...]
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
    look: int
    alpha: float
    level: float
    margin: float
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
        return {one: int((self.verdict == one).sum()) for one in VERDICTS}

    def blamed(self) -> NDArray[np.int64]:
        """Return the series whose error grew, the largest shift first."""
        found = np.flatnonzero(self.verdict == GREW)
        return found[np.argsort(-np.abs(self.shift[found]), kind="stable")]

    def releases(self, series: int) -> str:
        """Say between which versions a series moved, e.g. ``"1.29 to 1.30"``."""
        before = int(self.last[series])
        return f"{self.versions[before]} to {self.version}" if before >= 0 else self.version

    def row(self, series: int) -> dict[str, Any]:
        """Return what is known of a series as plain values for JSON; NaN and inf are None."""
        figures = ("baseline", "new", "shift", "low", "high", "p", "p_adjusted", "df", "detectable",
                   "reference", "predictor", "promised")  # fmt: skip
        values = {name: float(getattr(self, name)[series]) for name in figures}
        before = int(self.last[series])
        return {
            "series": self.names[series],
            "group": self.groups[series],
            "verdict": str(self.verdict[series]),
            "why": str(self.why[series]),
            "moved_by": str(self.moved_by[series]),
            "last_version": self.versions[before] if before >= 0 else None,
            "noise": str(self.noise[series]),
            "n_baseline": int(self.n_baseline[series]),
            **{name: value if np.isfinite(value) else None for name, value in values.items()},
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; one row a series."""
        return {
            "version": self.version,
            "versions": list(self.versions),
            "outcome": self.outcome,
            "passed": self.passed,
            "look": self.look,
            "alpha": self.alpha,
            "level": self.level,
            "margin": self.margin,
            "noise_scale": self.law.scale,
            "noise_df": self.law.df if np.isfinite(self.law.df) else None,
            "noise_n": self.law.n,
            "counts": self.counts(),
            "series": [self.row(i) for i in range(len(self.names))],
        }
