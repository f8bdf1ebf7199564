r"""Which release moved the error, and by how much: change points in short, noisy series.

Detection is tested where most tools are weakest: series of 6 to 200 values, most without a step.
See `find_steps` for the method and its simulated rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.errors import InputError, describe_rows
from errcomp.halflife.panel import Panel
from errcomp.halflife.steps.laws import learned
from errcomp.halflife.steps.null import segments_tabulated
from errcomp.halflife.steps.scan import Batch
from errcomp.halflife.steps.summary import Step, Steps, steps_of, too_short

__all__ = ["Step", "Steps", "find_steps", "find_steps_of"]

Floats = NDArray[Any]


def find_steps(
    values: ArrayLike,
    *,
    sd: ArrayLike | None = None,
    df: float = 0.0,
    alpha: float = 0.05,
    min_segment: int = 2,
    labels: Sequence[str] | None = None,
) -> Steps:
    r"""Find steps of the mean in one series, with a stated false-alarm rate.

    The mean is constant except for steps; the noise has one variance, and neighbouring values may
    be correlated. Every admissible split at k, and every interval [i, j) against all other values,
    is a contrast with

    .. math:: t^2 = \frac{B}{s^2}, \qquad
              B = \frac{(\bar x_{in} - \bar x_{out})^2}{1/W_{in} + 1/W_{out}}, \qquad
              s^2 = \frac{\nu_0 \sigma_0^2 + S - B}{\nu_0 + n - 2}

    where W are sums of weights, S the squares about the mean, and :math:`\sigma_0^2` the variance
    of repeats with :math:`\nu_0` degrees of freedom (0 without ``sd``). The statistic of the series
    is the largest :math:`-\ln p` of these t-tests. Intervals are numerous and pay a penalty of
    :math:`\ln(7/3 \cdot \text{intervals} / \text{splits})`. Its distribution without a step does
    not depend on mean and variance; it was simulated for 4 to 400 values, :math:`\nu_0` from 0 to
    infinity, and autocorrelations from 0 to 0.75. The p-value is the mean over the autocorrelations
    that the series may have (see below). If a step is found, both parts are searched with a share
    of alpha proportional to their length. Every step must pass a t-test between its levels.

    **Bad runs.** Values beyond 3 robust standard deviations (1.4826 median absolute deviations) are
    first pulled back to that limit, or to their nearer neighbour if that is beyond it, too: one bad
    run is not a step. Where bad runs are so frequent that two may follow each other by chance,
    three or more are needed, and the limit is 2.

    **Correlation.** A slow swing of the machine looks like a step, and few values do not show the
    difference. The autocorrelation of the noise is learned from the values about their levels, of
    this series and, in `find_steps_of`, of all series of the history. ``Steps.autocorrelation`` is
    its mean; each step has its p-value with and without correlation.

    The set of positions holds 95 % of the posterior over all positions between the neighbouring
    steps (with a uniform prior). The interval of the size is that of the mixture of Student t over
    them. Both allow for the autocorrelation.

    The table has the per cent of series with a false step at alpha = 5 %, simulated for series in
    groups of 200 (10,000 series each, 3,000 for n of 100 and more; standard error 0.2 and 0.4), and
    for a series alone (an eighth of that):

    ====  ======  ====  ==============  ==============  ========  =============  =============
    n     normal  t3    log-normal 0.5  log-normal 1    bad runs  AR 0.3 (0.5)   alone
    ====  ======  ====  ==============  ==============  ========  =============  =============
    6     4.5     3.4   4.8             6.8             3.1       4.6 (5.4)      6.3 (8.3)
    8     4.3     2.6   5.0             4.5             1.9       4.4 (5.1)      6.6 (9.9)
    12    4.2     2.9   5.9             3.6             2.2       4.1 (3.9)      5.5 (15)
    20    4.3     5.0   7.0             3.9             3.9       4.1 (3.2)      6.2 (16)
    50    4.2     6.4   7.8             6.7             4.7       4.9 (2.3)      6.7 (15)
    100   3.7     6.0   8.0             7.6             3.4       4.8 (3.1)      6.9 (11)
    200   3.9     6.2   7.3             6.6             3.8       4.7 (4.6)      7.2 (8.8)
    ====  ======  ====  ==============  ==============  ========  =============  =============

    (log-normal: sigma of the logarithm; bad runs: 5 % of values off by 6 standard deviations;
    AR: normal noise with this autocorrelation; alone: the same for a series alone, which is at 1 to
    3 % with normal noise.) At an autocorrelation of 0.7 it is 4 to 9 % in groups, and 10 to 37 %
    alone. In groups of 20 the rates are those of groups of 200, except that it is 2.7 to 3.8 % with
    normal noise, 7 to 9 % with an autocorrelation of 0.5 and up to 20 values, and 7 to 17 % with
    0.7; and that a step of 3 sd is found in 75 % of the series at n = 12.

    The next table has the per cent of series in which a true step is detected, with unknown noise
    that is normal and independent: a step of 3 or 5 standard deviations of one value anywhere, or
    up for some values and down again. In a group of 200, all of which have a step (in brackets, a
    series alone):

    ===  ========  ==========  ==============  ==============  ==============
    n    3 sd      5 sd        2 values, 5 sd  3 values, 5 sd  4 values, 5 sd
    ===  ========  ==========  ==============  ==============  ==============
    6    19 (32)   81 (74)     85 (78)
    8    43 (41)   96 (89)     78 (66)         87 (75)         90 (84)
    12   83 (66)   100 (97)    84 (65)         97 (87)         99 (94)
    20   96 (85)   100 (98)    91 (73)         100 (94)        100 (99)
    40   98 (94)   100 (100)   94 (81)         100 (99)        100 (100)
    ===  ========  ==========  ==============  ==============  ==============

    A series alone can have both only in part: at n = 12, a test that keeps 5 % at an
    autocorrelation of 0.5 finds 37 % of such steps of 3 sd, whatever its statistic. In about 5 % of
    the series with one true step, a second one is reported. If a step of 3 sd is detected, the set
    of positions covers the true one in 97 to 99 % (positions are discrete, so the coverage exceeds
    95 %), and the interval of the size covers the true size in 93 to 96 %; with an autocorrelation
    of 0.3 or 0.5, in 94 % or more and 90 to 98 %. For 2 sd at n = 8 it is 91 %, because only larger
    steps are detected.

    A step within the last ``min_segment - 1`` versions is not distinguishable from a bad run yet,
    and a step just before is detected only if it is large (``smallest_end``). Series that jump up
    and down throughout look like noise.

    Parameters
    ----------
    values : array_like, shape (n,)
        In order of versions: log errors, or other values with constant noise.
    sd : array_like, shape () or (n,), optional
        Standard deviation of the values due to noise, from repeats.
    df : float
        Degrees of freedom of ``sd``; inf if it is exact. They set its weight relative to the
        scatter of the series. Repeats that miss a part of the noise cause false alarms (see
        ``Steps.noise_ratio``); in groups of ten series or more, `find_steps_of` allows for what
        they miss.
    alpha : float
        False-alarm rate per series. For many series, correct the values of ``Steps.p``.
    min_segment : {2, 3, 4}
        Fewest versions between steps.
    labels : sequence of str, optional
        Names of the versions; their positions by default.

    Returns
    -------
    Steps
        Refused, with the reason, for fewer than ``2 * min_segment`` values.

    Raises
    ------
    InputError
        Values or sd are not finite or differ in length, sd is not positive or has no df, alpha is
        not between 0 and 1, or min_segment is not tabulated.

    References
    ----------
    Worsley (1979), "On the likelihood ratio test for a shift in location of normal populations",
    doi:10.1080/01621459.1979.10482519. Levin and Kline (1985), "The CUSUM test of homogeneity with
    an application in spontaneous abortion epidemiology", doi:10.1002/sim.4780040408. Olshen,
    Venkatraman, Lucito and Wigler (2004), "Circular binary segmentation for the analysis of
    array-based DNA copy number data", doi:10.1093/biostatistics/kxh008.

    Examples
    --------
    >>> (step,) = find_steps([0.00, 0.01, -0.01, 0.00, 0.21, 0.19, 0.20, 0.21]).steps
    >>> step.at, round(step.size, 4), [round(end, 3) for end in (step.size_low, step.size_high)]
    (4, 0.2025, [0.184, 0.221])
    >>> find_steps([0.00, 0.01, -0.01, 0.00, 0.01, 0.02, -0.01, 0.01]).steps
    ()
    >>> print(find_steps([0.1, 0.2]).refused)
    at least 4 values are needed (2 before and 2 after a step), the series has 2
    """
    x, spread = _checked(values, sd, df)
    names = [str(i) for i in range(len(x))] if labels is None else [str(label) for label in labels]
    if len(names) != len(x):
        raise InputError(f"labels must be {len(x)} names, one per value, got {len(names)}.")
    at = np.arange(len(x))
    return steps_in(
        x, spread, np.array([0, len(x)]), np.array([float(df)]), names, at, alpha, min_segment
    )[0]


def find_steps_of(panel: Panel, *, alpha: float = 0.05, min_segment: int = 2) -> list[Steps]:
    """Find the steps of every series of a panel: `find_steps`, for all series at once.

    The noise of a series is known if all of its values have a standard deviation with degrees of
    freedom. The series are one group: what they have in common of correlation, bad runs, and noise
    that repeats miss is learned from all of them (see ``errcomp.halflife.steps.laws``). A share
    alpha of the series without a step raises a false alarm. For thousands of
    series, control the share of false steps by `Steps.p` (e.g. with Benjamini and Hochberg).

    Parameters
    ----------
    panel : Panel
    alpha : float
        False-alarm rate per series.
    min_segment : {2, 3, 4}
        Fewest versions between steps.

    Returns
    -------
    list of Steps
        One for each series, in the order of ``panel.names``; versions are those of the panel.

    Raises
    ------
    InputError
        An error is not finite, or an option cannot be used.

    Examples
    --------
    >>> panel = Panel(
    ...     versions=("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"),
    ...     months=np.arange(8.0),
    ...     names=("Gelu",),
    ...     clusters=np.array([0]),
    ...     starts=np.array([0, 8]),
    ...     version=np.arange(8),
    ...     error=np.array([0.0, 0.01, -0.01, 0.0, 0.69, 0.70, 0.68, 0.69]),
    ...     sd=np.full(8, np.nan),
    ...     noise_df=np.zeros(1),
    ...     frozen_at_first=True,
    ... )
    >>> (step,) = find_steps_of(panel)[0].steps
    >>> step.versions, f"{step.change[0]:.0%}"
    (('1.3', '1.4'), '99%')
    """
    bad = np.flatnonzero(~np.isfinite(panel.error))
    if len(bad):
        where = describe_rows(bad.tolist())
        raise InputError(
            f"panel.error must be finite, got {panel.error[bad[0]]} in {where}. Leave out failed "
            "validations."
        )
    # The noise of a series is unknown unless all of its values have one.
    measured = np.isfinite(panel.sd) & (panel.sd > 0)
    known = np.logical_and.reduceat(measured, panel.starts[:-1]) & (panel.noise_df > 0)
    return steps_in(
        panel.error,
        np.where(known[panel.series], panel.sd, 1.0),
        panel.starts,
        np.where(known, panel.noise_df, 0.0),
        panel.versions,
        panel.version,
        alpha,
        min_segment,
        panel.clusters,
    )


def steps_in(
    x: Floats,
    sd: Floats,
    starts: NDArray[Any],
    df: Floats,
    names: Sequence[str],
    version: NDArray[Any],
    alpha: float,
    min_segment: int = 2,
    clusters: NDArray[Any] | None = None,
) -> list[Steps]:
    """Find the steps of series end to end (see `Batch`); series that are too short are refused.

    They are one group: their noise is learned together.
    """
    _check_options(alpha, min_segment)
    lengths = np.diff(starts)
    long = lengths >= 2 * min_segment
    used = np.repeat(long, lengths)
    batch = Batch.of(x[used], sd[used], np.append(0, np.cumsum(lengths[long])), df[long])
    clusters = np.arange(len(lengths)) if clusters is None else clusters
    batch = learned(batch, clusters[long])
    searched = iter(steps_of(batch, alpha, min_segment, names, version[used]))
    return [
        next(searched) if enough else too_short(n, alpha, min_segment)
        for n, enough in zip(lengths.tolist(), long.tolist(), strict=True)
    ]


def _check_options(alpha: float, min_segment: int) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, got {alpha!r}.")
    if isinstance(min_segment, bool) or min_segment not in segments_tabulated():
        known = ", ".join(map(str, segments_tabulated()))
        raise InputError(
            f"min_segment must be one of {known} (for which the false-alarm rate is known), got "
            f"{min_segment!r}."
        )


def _checked(values: ArrayLike, sd: ArrayLike | None, df: float) -> tuple[Floats, Floats]:
    """Return the values and their standard deviations, 1 if unknown."""
    x = vector(values, "values")
    if isinstance(df, bool) or not isinstance(df, (int, float)) or not df >= 0:
        raise InputError(f"df must be 0 or more, got {df!r}.")
    if (sd is None) != (df == 0):
        raise InputError(
            f"sd and df must be given together, got sd={'None' if sd is None else 'given'}, "
            f"df={df:g}. df is the degrees of freedom of sd (inf if sd is exact)."
        )
    if sd is None:
        return x, np.ones(len(x))
    spread = _floats(sd, "sd")
    if spread.shape not in ((), x.shape):
        raise InputError(
            f"sd must be one number or {len(x)} numbers (one per value), got shape {spread.shape}."
        )
    spread = np.broadcast_to(spread, x.shape)
    bad = np.flatnonzero(spread <= 0)
    if len(bad):
        where = describe_rows(bad.tolist())
        raise InputError(
            f"sd must be positive, got {spread[bad[0]]:g} in {where}. If the noise is unknown, "
            "leave out sd and df."
        )
    return x, spread


def vector(values: ArrayLike, name: str) -> Floats:
    """Return finite numbers in one dimension."""
    array = _floats(values, name)
    if array.ndim != 1:
        raise InputError(f"{name} must have 1 dimension, got {array.ndim} dimensions.")
    return array


def _floats(values: ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}.") from None
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        where = describe_rows(bad.tolist())
        raise InputError(f"{name} must be finite, got {array.ravel()[bad[0]]} in {where}.")
    return array
