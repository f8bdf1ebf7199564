r"""Does a calibrated model still hold under a new version? A gate for every new version.

The gate has a memory: it goes through the history as it would have at each version (a *look*), and
compares the latest values of each series, one to thirty of them, with all that came before since
the last accepted step. See ``errcomp.halflife.gate.monitor`` for the test, and
``errcomp.halflife.gate.laws`` for the noise that it allows for: heavy tails, single bad runs, slow
swings.

Look k may raise a false alarm, in any of its series, with probability

.. math:: \alpha_k = \alpha \Big( \frac{0.3 \cdot 20}{(k + 19)(k + 20)} + \frac{0.7}{1000} \Big)

so that over the first 1,000 looks the chance of even one is at most α, and it is 0.7 α for every
1,000 looks more. This is a union bound: it needs no independence of looks or of series, only the
right law of the noise, and there is no horizon to give. Within a look Holm's method corrects for
the number of series. A promise over *all* looks to come is possible, with an e-process; steps would
then be found later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from errcomp.errors import InputError, describe_names
from errcomp.halflife.gate.monitor import Look, Monitor, Shifts
from errcomp.halflife.gate.results import GREW, VERDICTS, GateResult, Law
from errcomp.halflife.panel import Panel
from errcomp.stats.significance import holm_adjusted

__all__ = ["VERDICTS", "GateResult", "check", "since_last_step", "spent"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_, _WITHIN, _NO_LARGER, _AS_BEFORE, _UNKNOWN, _ABSENT, _REPEAT = VERDICTS

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


def as_since(since: ArrayLike, panel: Panel) -> Codes:
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


def as_repeats(repeats: ArrayLike | None, panel: Panel) -> Floats:
    """Return the validations behind each row: several where its noise is that of repeats."""
    if repeats is None:
        return np.where(panel.noise_df[panel.series] > 0, 2.0, 1.0)
    given = np.asarray(repeats, dtype=float)
    if given.shape != panel.error.shape or not (given >= 1).all():
        raise InputError(
            f"repeats must be {len(panel.error)} numbers of at least 1, one per row of the panel, "
            f"got shape {given.shape}."
        )
    return given


def as_parts(
    panel: Panel,
    first: Codes,
    found: Shifts,
    reference: ArrayLike | None,
    predictor: ArrayLike | None,
) -> tuple[Floats, Floats]:
    """Return the changes of the measurement and of the prediction of each series."""
    if reference is None and predictor is None:
        if panel.frozen_at_first:
            return found.shift, np.where(np.isnan(found.shift), np.nan, 0.0)
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
    change = panel.error - panel.error[panel.starts[:-1]][series]
    off = np.abs(rows[0] + rows[1] - change) > 1e-6
    if off.any():
        wrong = np.unique(series[off])
        raise InputError(
            "reference (log measured, before minus now) and predictor (log predicted, now minus "
            f"before) must add up to the change of the error; they do not in {len(wrong)} series: "
            f"{', '.join(panel.names[i] for i in wrong[:3].tolist())}."
        )
    base = (panel.version >= first[series]) & (panel.version <= found.last[series])
    window = (panel.version >= found.begin[series]) & (panel.version <= found.at[series])
    # A prediction has no noise; the rest of the shift is the measurement's.
    predicted = _means(rows[1], series, window, panel) - _means(rows[1], series, base, panel)
    return found.shift - predicted, np.where(np.isnan(found.shift), np.nan, predicted)


def _means(values: Floats, series: Codes, which: NDArray[np.bool_], panel: Panel) -> Floats:
    """Return the mean of some of the values of each series; NaN without values."""
    n = np.bincount(series[which], minlength=panel.n_series)
    total = np.bincount(series[which], values[which], panel.n_series)
    return np.asarray(np.divide(total, n, out=np.full(panel.n_series, np.nan), where=n > 0))


def _is_larger(found: Shifts) -> NDArray[np.bool_]:
    return np.asarray(np.abs(found.level + found.shift) > np.abs(found.level))


def has_grown(found: Shifts, promise: Floats) -> NDArray[np.bool_]:
    """Say whether the error of each series is larger than before and than the promise."""
    return _is_larger(found) & ~(np.abs(found.level + found.shift) <= promise)


def verdicts(
    found: Shifts, p: Floats, moved: NDArray[np.bool_], again: NDArray[np.bool_], promise: Floats
) -> NDArray[Any]:
    """Return the verdict on each series."""
    verdict = np.full(len(p), _AS_BEFORE, dtype=object)
    larger = _is_larger(found)
    worse = has_grown(found, promise)
    verdict[again & worse] = _REPEAT
    verdict[moved & worse] = GREW
    verdict[moved & larger & ~worse] = _WITHIN
    verdict[moved & ~larger] = _NO_LARGER
    verdict[np.isnan(p) & (verdict != _REPEAT)] = _UNKNOWN
    verdict[np.isnan(found.new)] = _ABSENT
    return verdict


def reasons(monitor: Monitor, found: Shifts, panel: Panel, p: Floats) -> NDArray[Any]:
    """Return why a series cannot be tested; empty otherwise."""
    why = np.full(panel.n_series, "", dtype=object)
    unknown = np.isnan(p) & ~np.isnan(found.new)
    why[unknown] = "too few validations to know the noise"
    for i in np.flatnonzero(unknown).tolist():
        if more := monitor.values_needed(i):
            why[i] += f": {more} more needed"
    why[unknown & monitor.flat] = "all values of the baseline are equal and the noise is unknown"
    why[unknown & monitor.flat & (panel.noise_df > 0)] = (
        "noise unknown: all repeats are equal, probably rounded"
    )
    why[unknown & (found.n == 0)] = "no version in the baseline"
    return why


def moved_by(
    reference: Floats,
    predictor: Floats,
    found: Shifts,
    moved: NDArray[np.bool_],
    *,
    margin: float,
    level: float,
    df: Floats,
) -> NDArray[Any]:
    """Say whether measurement or prediction changed; only measurements have noise."""
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.maximum(np.abs(reference) - margin, 0) / found.se
    known = np.isfinite(z) & (df > 0)
    p = np.where(known, 2 * special.stdtr(np.where(known, df, 1), -np.where(known, z, 0)), np.nan)
    p[(found.se == 0) & (np.abs(reference) > margin)] = 0.0
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


#: A look asks for a repeat at this probability: without a change one look in a hundred asks.
REPEAT = 0.01
#: Share of α that falls with the number of the look, and how fast; looks of the promise.
_EARLY, _PACE, PROMISED_LOOKS = 0.3, 20, 1000


def spent(look: int, alpha: float = 0.05) -> float:
    r"""Return the probability of a false alarm that a look of a gate may have.

    .. math:: \alpha \Big( \frac{0.3 \cdot 20}{(k + 19)(k + 20)} + \frac{0.7}{1000} \Big)

    Parameters
    ----------
    look : int
        Number of the check, 1 for the first one since calibration.
    alpha : float
        Probability of any false alarm over the first 1,000 looks.

    Returns
    -------
    float

    Raises
    ------
    InputError
        A look below 1, or alpha not between 0 and 1.

    Examples
    --------
    >>> [round(spent(k), 6) for k in (1, 20, 1000)]
    [0.000749, 0.000227, 3.5e-05]
    >>> round(sum(spent(k) for k in range(1, 1001)), 4)
    0.0497
    """
    if isinstance(look, bool) or not isinstance(look, (int, np.integer)) or look < 1:
        raise InputError(f"look must be a whole number, 1 for the first check, got {look!r}.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, e.g. 0.05, got {alpha}.")
    k = int(look)
    early = _EARLY * _PACE / ((k + _PACE - 1) * (k + _PACE))
    return float(alpha * (early + (1 - _EARLY) / PROMISED_LOOKS))


def check(
    panel: Panel,
    *,
    version: str | None = None,
    since: ArrayLike | None = None,
    groups: Sequence[str] | None = None,
    promised: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    predictor: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    margin: float = 0.0,
    look: int | None = None,
    alpha: float = 0.05,
) -> GateResult:
    r"""Check a new version against the errors of each series before it.

    A series is a regression if its error shifted by more than noise (and the margin), is larger
    than the mean of its baseline, and exceeds the promised error, if there is one. A shift is the
    latest 1 to 30 values against all before them since the last accepted step. The history is gone
    through as the gate would have: a step that it would have reported is accepted, unless ``since``
    says where baselines begin.

    One value without repeats is never a regression: it may be one bad run. If a value like it would
    come less than once in 100 looks without a change, the verdict is "repeat", with the number of
    runs like it that would make it a regression. A validation with repeats (two rows of one
    version, or ``repeats``) decides at once.

    Simulated with 20 series over 1,000 looks at α = 5 %: 2 to 6 % of gates have a false alarm with
    normal and Student t noise, 5 % of bad runs, or noise in two levels; 8 to 12 % with an
    autocorrelation of 0.3 to 0.7 (50 gates each). ``docs/gate.md`` has these, and the delays.

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
        calibration, or of the last accepted step. By default steps that were found are accepted.
    groups : sequence of str, shape (s,), optional
        Name that each series is reported under, e.g. its operator. Its own name by default.
    promised : array_like, shape (s,) or scalar, optional
        Error on the log scale that the model promised, > 0: ``log(1.05)`` for 5 %.
    reference, predictor : array_like, shape (n,), optional
        Per row of the panel: the changes of the measurement and of the prediction since the first
        row of the series, in the direction of the error, so that they add up to its change. By
        default the prediction is frozen where the panel says so, and unknown elsewhere.
    repeats : array_like, shape (n,), optional
        Validations behind each row of the panel; by default 2 in series with known noise, else 1.
    margin : float
        Shift on the log scale that does not matter: ``log(1.02)`` for 2 %. The test is then
        whether the shift is larger than the margin.
    look : int, optional
        Number of this look at the gate, 1 for the first. By default the number of versions since
        the first one of the panel.
    alpha : float
        Probability of any false alarm over the first 1,000 looks.

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
    Statistics 6. Shin, Ramdas and Rinaldo (2023), "E-detectors: a nonparametric framework for
    sequential change detection", doi:10.51387/23-NEJSDS51 (promises for a rate of false alarms).
    Siegmund and Venkatraman (1995), "Using the generalized likelihood ratio statistic for
    sequential detection of a change-point", doi:10.1214/aos/1176324466 (windows of all lengths).

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
    level = spent(at if look is None else look, alpha)
    if not (panel.version == at).any():
        raise InputError(
            f"no series was validated under version {panel.versions[at]}. Name another version, or "
            "add its validations."
        )
    monitor = monitor_of(panel, since, repeats, margin)
    # With `since` the caller says what was accepted: then nothing else is.
    for _ in looks(panel, monitor, alpha, until=at, accepting=since is None):
        pass
    first = monitor.start
    seen = monitor.look(at, level)
    moved = seen.p_adjusted <= level
    window = monitor.suspected(seen, moved)
    found = monitor.described(seen, window)
    promise = as_promise(promised, panel.n_series)
    moved_reference, moved_predictor = as_parts(panel, first, found, reference, predictor)
    unlikely = np.minimum(holm_adjusted(seen.p_single), _or_one(seen.p_adjusted))
    verdict = verdicts(found, seen.p, moved, unlikely <= REPEAT, promise)
    half = monitor.critical(1 - _LEVEL) * found.se
    df = np.where(np.isnan(found.se), 0.0, monitor.df)
    asked = np.flatnonzero(verdict == _REPEAT)
    needed = np.zeros(panel.n_series, dtype=np.int64)
    tested = max(int((~np.isnan(seen.p)).sum()), 1)
    needed[asked] = monitor.repeats_needed(window, asked, level / tested)
    return GateResult(
        version=panel.versions[at],
        versions=tuple(panel.versions),
        names=tuple(panel.names),
        groups=as_labels(groups, panel),
        verdict=verdict,
        why=reasons(monitor, found, panel, seen.p),
        baseline=found.level,
        new=found.new,
        shift=found.shift,
        low=found.shift - half,
        high=found.shift + half,
        p=seen.p,
        p_adjusted=seen.p_adjusted,
        df=df,
        noise=monitor.sources(),
        n_baseline=found.n,
        last=found.last,
        begin=found.begin,
        n_shifted=window,
        repeats_needed=needed,
        detectable=monitor.detectable(level / tested, seen),
        reference=moved_reference,
        predictor=moved_predictor,
        moved_by=moved_by(
            moved_reference, moved_predictor, found, moved, margin=margin, level=level, df=df
        ),
        promised=promise,
        look=int(at if look is None else look),
        alpha=float(alpha),
        level=level,
        margin=float(margin),
        law=Law(monitor.noise_scale, monitor.tail_df, monitor.law_n),
        autocorrelation=monitor.ar,
    )


def _or_one(p: Floats) -> Floats:
    return np.where(np.isnan(p), 1.0, p)


def looks(
    panel: Panel, monitor: Monitor, alpha: float, *, until: int, accepting: bool = True
) -> Iterator[tuple[int, float, Look]]:
    """Go through versions as a gate would have, and yield version, level and look of each.

    What shifted is accepted once the caller has seen it, unless it accepts nothing.
    """
    monitor.skip(0)
    for at in range(1, until):
        if len(monitor.rows_at(at)[0]):
            level = spent(at, alpha)
            look = monitor.look(at, level)
            yield at, level, look
            if accepting:
                monitor.accept(look, look.p_adjusted <= level)


def monitor_of(
    panel: Panel, since: ArrayLike | None, repeats: ArrayLike | None, margin: float
) -> Monitor:
    """Return a gate that has seen nothing."""
    if not 0 <= margin < np.inf:
        raise InputError(f"margin must be 0 or larger, on the log scale, got {margin}.")
    first = as_since(panel.version[panel.starts[:-1]] if since is None else since, panel)
    return Monitor(panel, as_repeats(repeats, panel), first, margin)


def since_last_step(
    panel: Panel,
    *,
    version: str | None = None,
    since: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    margin: float = 0.0,
    alpha: float = 0.05,
) -> Codes:
    """Return where baselines begin if every step that the gate would have found was accepted.

    The gate is replayed, one look at each version before ``version``. A series that shifted starts
    a new baseline at the first value that shifted.

    Parameters
    ----------
    panel : Panel
    version : str, optional
        The version to check; the last one by default. This version and later ones are ignored.
    since : array_like of int, shape (s,) or scalar, optional
        Earliest version of the baselines.
    repeats, margin, alpha
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
    monitor = monitor_of(panel, since, repeats, margin)
    for _ in looks(panel, monitor, alpha, until=as_position(panel, version)):
        pass
    return monitor.start
