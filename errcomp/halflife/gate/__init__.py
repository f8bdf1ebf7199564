r"""Does a calibrated model still hold under a new version? A gate for every new version.

The new error of each series is compared with the mean of its errors since it was calibrated:

.. math:: T = \frac{e_{new} - \bar e}{s}, \qquad
          s^2 = s_{new}^2 + \frac{1}{n^2} \sum_j s_j^2 \quad\text{or}\quad
          s^2 = \frac{n + 1}{n (n - 1)} \sum_j (e_j - \bar e)^2

with the noise of repeats and its degrees of freedom, or, without repeats, the scatter of the
baseline, n - 1. The standard error includes the error of the baseline's own mean. Where baselines
scatter more than their noise explains, or with heavier tails, the distribution of T is widened
(`GateResult.law`).

Each check of a new version is a look. Look k of a gate may spend

.. math:: \alpha_k = \frac{\alpha}{k (k + 1)}, \qquad \sum_{k \ge 1} \alpha_k = \alpha

so that the probability of any false alarm over all its looks is at most α. This holds for any
number of looks, even though looks depend on each other (they share a baseline). Within a look,
Holm's method corrects for the number of series. The table has the power at α = 5 %, in per cent,
for a step of 2, 3 and 5 standard errors. It compares this rule with another way to spend α and with
a mixture of e-values (a normal mixture of variance 16, restarted at each look), which have less
power at the look where a step happens:

======  ==========  ==========  ==================  ============
series  look        α/(k(k+1))  6α/(π²k²)           e-values
======  ==========  ==========  ==================  ============
1       1           41 78 100   43 80 100           10 38 96
1       10          7 31 93     5 27 92             1 8 73
1       50          1 10 77     1 9 73              0 2 46
200     1           3 20 88     4 21 89             0 4 62
200     10          0 4 61      0 3 58              0 1 30
200     50          0 1 37      0 1 34              0 0 13
======  ==========  ==========  ==================  ============
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_names
from errcomp.halflife.gate.results import GREW, VERDICTS, GateResult
from errcomp.halflife.gate.shifts import (
    NOISE,
    Law,
    Shifts,
    critical,
    fit_law,
    holm_adjusted,
    means,
    p_values,
    shifts,
)
from errcomp.halflife.panel import Panel

__all__ = ["VERDICTS", "GateResult", "check", "since_last_step", "spent"]

Floats = NDArray[np.float64]

_, _WITHIN, _NO_LARGER, _AS_BEFORE, _UNKNOWN, _ABSENT = VERDICTS

#: Predictions are computed, without noise: any change above rounding counts.
_ROUNDING = 1e-9


def as_position(panel: Panel, version: str | None) -> int:
    """Return the position of a version in a panel, by default of the last one."""
    if version is not None and version not in panel.versions:
        raise InputError(
            f"unknown version {version!r}. Versions: "
            f"{describe_names(panel.versions, wanted=version)}."
        )
    at = len(panel.versions) - 1 if version is None else panel.versions.index(version)
    if at < 1:
        raise InputError(
            f"version {panel.versions[at]} is the first: there is no earlier version to compare it "
            "with. Name a later version."
        )
    return at


def as_since(since: ArrayLike, panel: Panel) -> NDArray[np.int64]:
    """Return the position of each series' calibration; a single number applies to all."""
    given = np.asarray(since)
    if given.dtype.kind not in "iu" or given.shape not in ((), (panel.n_series,)):
        raise InputError(
            f"since must be positions of versions (whole numbers), one for each of the "
            f"{panel.n_series} series or one for all, got {given.dtype} of shape {given.shape}."
        )
    return np.broadcast_to(given, panel.n_series).astype(np.int64)


def as_promise(promised: ArrayLike | None, s: int) -> Floats:
    """Return the promised error of each series, NaN without a promise."""
    if promised is None:
        return np.full(s, np.nan)
    given = np.asarray(promised, dtype=float)
    if given.shape not in ((), (s,)) or not ((given > 0) & np.isfinite(given)).all():
        raise InputError(
            f"promised must be positive finite errors on the log scale, one for each of the {s} "
            f"series or one for all, got {promised!r}. Write log(1.05) for 5 %."
        )
    return np.broadcast_to(given, s).copy()


def as_labels(groups: Sequence[str] | None, panel: Panel) -> tuple[str, ...]:
    """Return the group of each series; without groups, its own name."""
    if groups is None:
        return tuple(panel.names)
    if len(groups) != panel.n_series:
        raise InputError(
            f"groups must be {panel.n_series} names, one per series, got {len(groups)}."
        )
    return tuple(str(group) for group in groups)


def as_parts(
    panel: Panel,
    first: NDArray[np.int64],
    at: int,
    changes: Shifts,
    reference: ArrayLike | None,
    predictor: ArrayLike | None,
) -> tuple[Floats, Floats]:
    """Return the changes of the measurement and of the prediction of each series."""
    if reference is None and predictor is None:
        if panel.frozen_at_first:
            return changes.shift, np.where(np.isnan(changes.shift), np.nan, 0.0)
        return np.full(panel.n_series, np.nan), np.full(panel.n_series, np.nan)
    if reference is None or predictor is None:
        raise InputError("reference and predictor must be given together: give both or neither.")
    rows = [np.asarray(part, dtype=float) for part in (reference, predictor)]
    if any(part.shape != panel.error.shape for part in rows):
        raise InputError(
            f"reference and predictor must have {len(panel.error)} values, one per row of the "
            f"panel, got shapes {rows[0].shape} and {rows[1].shape}."
        )
    series = panel.series
    base = (panel.version < at) & (panel.version >= first[series])
    is_new = panel.version == at
    parts = []
    for part in rows:
        new = np.full(panel.n_series, np.nan)
        new[series[is_new]] = part[is_new]
        parts.append(new - means(part[base], series[base], changes.n))
    off = np.abs(parts[0] + parts[1] - changes.shift) > 1e-6
    if off.any():
        names = [panel.names[i] for i in np.flatnonzero(off)[:3]]
        raise InputError(
            "reference (log measured before - now) and predictor (log predicted now - before) must "
            f"add up to the change of the error; they do not in {int(off.sum())} series: "
            f"{', '.join(names)}."
        )
    return parts[0], parts[1]


def verdicts(changes: Shifts, p: Floats, moved: NDArray[np.bool_], promise: Floats) -> NDArray[Any]:
    """Return the verdict on each series."""
    verdict = np.full(len(p), _AS_BEFORE, dtype=object)
    grew = np.abs(changes.new) > np.abs(changes.level)
    within = np.abs(changes.new) <= promise
    verdict[moved & grew & ~within] = GREW
    verdict[moved & grew & within] = _WITHIN
    verdict[moved & ~grew] = _NO_LARGER
    verdict[np.isnan(p)] = _UNKNOWN
    verdict[np.isnan(changes.new)] = _ABSENT
    return verdict


def reasons(changes: Shifts, panel: Panel) -> NDArray[Any]:
    """Return why a series cannot be tested; empty otherwise."""
    why = np.full(panel.n_series, "", dtype=object)
    unknown = (changes.noise == 0) & ~np.isnan(changes.new)
    why[unknown] = "all values of the baseline are equal and the noise is unknown"
    why[unknown & (changes.n < 2)] = "noise unknown: one version in the baseline and no repeats"
    why[unknown & (panel.noise_df > 0)] = "noise unknown: all repeats are equal, probably rounded"
    why[unknown & (changes.n == 0)] = "no version in the baseline"
    return why


def moved_by(
    reference: Floats,
    predictor: Floats,
    changes: Shifts,
    moved: NDArray[np.bool_],
    *,
    margin: float,
    level: float,
    law: Law,
) -> NDArray[Any]:
    """Say whether measurement or prediction changed; only measurements have noise."""
    p = p_values(reference, changes.se, changes.df, margin=margin, law=law)
    by_reference = holm_adjusted(p) <= level
    by_predictor = np.abs(predictor) > max(margin, _ROUNDING)
    # A shifted error has a cause: the larger part, if neither part alone exceeds noise.
    neither = moved & ~by_reference & ~by_predictor
    by_reference |= neither & (np.abs(reference) >= np.abs(predictor))
    by_predictor |= neither & (np.abs(reference) < np.abs(predictor))
    name = np.full(len(reference), "", dtype=object)
    name[by_reference] = "reference"
    name[by_predictor] = "predictor"
    name[by_reference & by_predictor] = "both"
    name[moved & np.isnan(reference)] = "unknown"
    return name


#: Nominal coverage of the interval of each shift.
_LEVEL = 0.95


def spent(look: int, alpha: float = 0.05) -> float:
    r"""Return the part of α that a look of a gate may spend, :math:`\alpha / (k (k + 1))`.

    Parameters
    ----------
    look : int
        Number of the check, 1 for the first one since calibration.
    alpha : float
        Probability of any false alarm over all looks.

    Returns
    -------
    float

    Raises
    ------
    InputError
        A look below 1, or alpha not between 0 and 1.

    Examples
    --------
    >>> [round(spent(k), 5) for k in (1, 2, 10)]
    [0.025, 0.00833, 0.00045]
    """
    if isinstance(look, bool) or not isinstance(look, (int, np.integer)) or look < 1:
        raise InputError(f"look must be a whole number, 1 for the first check, got {look!r}.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, e.g. 0.05, got {alpha}.")
    return float(alpha / (int(look) * (int(look) + 1)))


def check(
    panel: Panel,
    *,
    version: str | None = None,
    since: ArrayLike | None = None,
    groups: Sequence[str] | None = None,
    promised: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    predictor: ArrayLike | None = None,
    margin: float = 0.0,
    look: int | None = None,
    alpha: float = 0.05,
) -> GateResult:
    r"""Check a new version against the errors of each series since its calibration.

    A series is a regression if its error shifted by more than noise (and the margin), is larger
    than the mean of its baseline, and exceeds the promised error, if there is one.

    Valid if the baseline has no step of its own. Begin it after the last accepted step: give
    ``since``, or `since_last_step` for a history that was never checked. Count each look once:
    later looks at the same gate need a larger ``look``.

    Without a change, the probability of any alarm over all looks is at most α with normal noise
    (simulated: 0 to 7 % over 50 looks at α = 5 %, the larger ones out of 30 gates; 1, 20 and 200
    series, noise by scatter or by repeats of 2, 8 or infinitely many degrees of freedom). Heavy
    tails are detected, and the distribution widened, once the baselines have about 30 rows; with
    fewer rows they raise alarms. With Student-t noise of 3 degrees of freedom: 12 to 30 % over 50
    looks where the noise is known or is scatter and the baseline begins with 4 versions, 7 to 20 %
    with 10, up to 8 % where it comes from repeats; without widening 80 % at the first look at 200
    series alone. A machine that shifts all series from day to day widens the distribution too. Few
    degrees of freedom cost power: a step of 5 standard deviations in a single series is found in
    93, 35 and 6 % at looks 1, 10 and 50 with 8 degrees of freedom, and in 99, 91 and 75 % with
    infinitely many.

    Misleads where many series share a small shift: each series is tested alone, and 1 % in each of
    200 series may pass in all. A pass rules out shifts above `GateResult.detectable` only.

    Parameters
    ----------
    panel : Panel
        With the new version in it. Versions after it are ignored.
    version : str, optional
        The new version; the last one by default.
    since : array_like of int, shape (s,) or scalar, optional
        First version of each baseline, as position in ``panel.versions``: the version of the
        calibration, or of the last accepted step. The first of each series by default.
    groups : sequence of str, shape (s,), optional
        Name that each series is reported under, e.g. its operator. Its own name by default.
    promised : array_like, shape (s,) or scalar, optional
        Error on the log scale that the model promised, > 0: ``log(1.05)`` for 5 %.
    reference, predictor : array_like, shape (n,), optional
        Per row of the panel: the changes of the measurement and of the prediction since the first
        row of the series, in the direction of the error, so that they add up to its change. By
        default the prediction is frozen where the panel says so, and unknown elsewhere.
    margin : float
        Shift on the log scale that does not matter: ``log(1.02)`` for 2 %. The test is then
        whether the shift is larger than the margin.
    look : int, optional
        Number of this look at the gate, 1 for the first. By default the number of versions since
        the first one of the panel, the careful choice.
    alpha : float
        Probability of any false alarm over all looks.

    Returns
    -------
    GateResult

    Raises
    ------
    InputError
        The version is unknown, is the first one or has no series; arrays have the wrong length, or
        values are out of range.

    References
    ----------
    Holm (1979), "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6. Howard, Ramdas, McAuliffe and Sekhon (2021), "Time-uniform, nonparametric,
    nonasymptotic confidence sequences", doi:10.1214/20-AOS1991.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2", "1.3"), months=np.arange(4.0), names=("Gelu", "Conv"),
    ...     clusters=np.arange(2), starts=np.array([0, 4, 8]), version=np.tile(np.arange(4), 2),
    ...     error=np.array([0.0, 0.011, -0.005, -0.7, 0.0, 0.004, -0.009, 0.006]),
    ...     sd=np.full(8, 0.01), noise_df=np.full(2, 20.0), frozen_at_first=True)
    >>> result = check(panel, look=1)
    >>> result.outcome, result.verdict.tolist(), result.releases(0), result.moved_by[0]
    ('regression', ['error grew', 'as before'], '1.2 to 1.3', 'reference')
    """
    at = as_position(panel, version)
    if not 0 <= margin < np.inf:
        raise InputError(f"margin must be 0 or larger, on the log scale, got {margin}.")
    level = spent(at if look is None else look, alpha)
    first = as_since(panel.version[panel.starts[:-1]] if since is None else since, panel)
    changes = shifts(panel, first, at)
    if np.isnan(changes.new).all():
        raise InputError(
            f"no series was validated under version {panel.versions[at]}. Name another version, or "
            "add its validations."
        )
    law = fit_law(changes.t, changes.t_df, changes.weights)
    p = p_values(changes.shift, changes.se, changes.df, margin=margin, law=law)
    adjusted = holm_adjusted(p)
    promise = as_promise(promised, panel.n_series)
    moved_reference, moved_predictor = as_parts(panel, first, at, changes, reference, predictor)
    moved = adjusted <= level
    tested = max(int((~np.isnan(p)).sum()), 1)
    half = critical(changes.df, 1 - _LEVEL, law) * changes.se
    return GateResult(
        version=panel.versions[at],
        versions=tuple(panel.versions),
        names=tuple(panel.names),
        groups=as_labels(groups, panel),
        verdict=verdicts(changes, p, moved, promise),
        why=reasons(changes, panel),
        baseline=changes.level,
        new=changes.new,
        shift=changes.shift,
        low=changes.shift - half,
        high=changes.shift + half,
        p=p,
        p_adjusted=adjusted,
        df=changes.df,
        noise=np.array(NOISE, dtype=object)[changes.noise],
        n_baseline=changes.n,
        last=changes.last,
        detectable=margin + critical(changes.df, level / tested, law) * changes.se,
        reference=moved_reference,
        predictor=moved_predictor,
        moved_by=moved_by(
            moved_reference, moved_predictor, changes, moved, margin=margin, level=level, law=law
        ),
        promised=promise,
        look=int(at if look is None else look),
        alpha=float(alpha),
        level=level,
        margin=float(margin),
        law=law,
    )


def since_last_step(
    panel: Panel,
    *,
    version: str | None = None,
    since: ArrayLike | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
) -> NDArray[np.int64]:
    """Return where baselines begin if every step that the gate would have found was accepted.

    The gate is replayed, one look at each version before ``version``. A series that shifted starts
    a new baseline at that version. A history that was never checked may contain steps; without this
    they would count as noise of the baseline and hide new steps.

    Parameters
    ----------
    panel : Panel
    version : str, optional
        The version to check; the last one by default. This version and later ones are ignored.
    since : array_like of int, shape (s,) or scalar, optional
        Earliest version of the baselines, as for `check`.
    margin, alpha : float
        As for `check`.

    Returns
    -------
    ndarray of int, shape (s,)
        Positions in ``panel.versions``, for ``since`` of `check` and of `recalibrate`.

    Raises
    ------
    InputError
        As `check`.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2", "1.3"), months=np.arange(4.0), names=("Gelu",),
    ...     clusters=np.arange(1), starts=np.array([0, 4]), version=np.arange(4),
    ...     error=np.array([0.0, 0.7, 0.71, 0.705]), sd=np.full(4, 0.01),
    ...     noise_df=np.full(1, 20.0), frozen_at_first=True)
    >>> begin = since_last_step(panel)
    >>> begin.tolist(), check(panel, since=begin).outcome
    ([1], 'pass')
    """
    end = as_position(panel, version)
    first = as_since(panel.version[panel.starts[:-1]] if since is None else since, panel).copy()
    for at in range(1, end):
        if (panel.version == at).any():
            result = check(
                panel, version=panel.versions[at], since=first, margin=margin, alpha=alpha
            )
            first[result.p_adjusted <= result.level] = at
    return first
