r"""Is today's model still within its promised error, and until when?

A forecast gives the probability that the error of a series is within the promise, now and ahead.
The model was calibrated at the last version of a history, or some releases earlier. Three methods
answer, each with its assumptions (see `errcomp.halflife.forecast.probabilities`):

========  ========================================================================================
survival  has it stayed within its promise until then? By the series that were followed
drift     is it within its promise then? By the drift variogram, with normal drift
steps     the same, by the sizes and the rate of the steps in the history
========  ========================================================================================

Simulated with 60 series of 24 versions, validated twice with a noise of 1 %, and a promise of 10 %.
Steps are 25 % in 5 % of all releases, for each series or for clusters of four series; drift is 3 %
per release. The table has the per cent of new series within the promise (for survival: that never
left it), and the mean forecast over 60 to 200 histories (a part is in tests/statistical):

==================  ========  =====  =====  =====  =====
histories of        by        1      2      5      10
==================  ========  =====  =====  =====  =====
steps               true      94.9   90.3   78.5   63.4
steps               steps     95.1   90.5   78.7   63.8
steps               true      94.9   90.2   77.4   59.6
steps               survival  94.8   89.6   76.4   58.8
steps in clusters   steps     95.0   90.4   78.5   63.6
drift               true      99.8   97.5   84.5   68.6
drift               drift     99.9   97.6   84.6   68.7
==================  ========  =====  =====  =====  =====

Intervals at a nominal 95 % covered the truth in 93 to 96 % of the histories (steps), 94 to 95 %
(steps in clusters), 94 to 98 % (drift; 85 % for the 99.8 %, where they are 0.1 wide), and 93 to
100 % (survival). Drift and steps never answered both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError
from errcomp.halflife.drift import fit_variogram
from errcomp.halflife.estimators.expiry import expiry_of
from errcomp.halflife.fitting import Group, searched
from errcomp.halflife.forecast.methods import Question, by_drift, by_steps, by_survival
from errcomp.halflife.forecast.probabilities import (
    Drop,
    Forecast,
    date_after,
    drops_below,
    forecast_drift,
    forecast_steps,
    forecast_survival,
)
from errcomp.halflife.forecast.results import (
    AHEAD,
    Answer,
    GroupForecast,
    HalfLifeForecast,
    Method,
)
from errcomp.halflife.panel import Clock, Panel, check_level
from errcomp.halflife.threshold import Threshold, doubling_threshold
from errcomp.system.processes import Progress
from errcomp.tables import History
from errcomp.tables.backends import history_of
from errcomp.tables.engine.history import HistoryRows

Floats = NDArray[np.float64]

__all__ = [
    "AHEAD",
    "Answer",
    "Drop",
    "Forecast",
    "GroupForecast",
    "HalfLifeForecast",
    "date_after",
    "drops_below",
    "forecast_drift",
    "forecast_half_life",
    "forecast_steps",
    "forecast_survival",
]


#: Number of further times of the forecast, up to the end.
_POINTS = 16
_METHODS: tuple[Method, ...] = ("survival", "drift", "steps")


def forecast_half_life(
    history: History | HistoryRows | Any,
    *,
    by: str | Sequence[str] = (),
    error: float | None = None,
    cluster: str | None = None,
    age: int = 0,
    below: float = 0.9,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> HalfLifeForecast:
    r"""Forecast whether a model is within its promised error now, and until when.

    Definition: the probability that the error of a series is within the promise,
    :math:`|\ln(p / m)| < \ln(1 + \text{error})`, at the last version of the history and later. The
    model was calibrated ``age`` releases before that version, and releases continue as before. The
    spread of errors at calibration is the spread at the first version of each series.

    Valid if future releases are like past ones. Misleads if a group mixes series that change with
    series that never do: the probability is that of a series drawn at random from the group.

    Parameters
    ----------
    history : History, HistoryRows or dataframe
        As in `half_life`.
    by : str or sequence of str
        Keys to group series by; each must have one value per series.
    error : float, optional
        The promised error, as a fraction. By default, the limit of `half_life`.
    cluster : str, optional
        Key of series that change together: series with the same value are one cluster.
    age : int
        Releases since calibration: 0 is a model calibrated at the last version.
    below : float
        Probability; the forecast reports when it drops below it.
    level : float
        Coverage of the intervals.
    seed : int
    progress : callable, optional
        Called with what is done and how much there is.

    Returns
    -------
    HalfLifeForecast

    Raises
    ------
    InputError
        As `half_life`; the history has fewer releases than ``age``, or ``below`` is not between 0
        and 1.

    Examples
    --------
    Forty operators; each release makes one in 20 a quarter slower or faster.

    >>> rng = np.random.default_rng(0)
    >>> steps = rng.choice([-0.25, 0.25], (40, 24)) * (rng.random((40, 24)) < 0.05)
    >>> forecast = forecast_half_life(
    ...     {
    ...         "version": [f"1.{i}" for i in range(24)] * 40,
    ...         "op": [f"op{i}" for i in range(40) for _ in range(24)],
    ...         "measured": np.exp(steps.cumsum(1) + rng.normal(0, 0.01, (40, 24))).ravel(),
    ...     },
    ...     error=0.1,
    ... )
    >>> for row in forecast.rows():
    ...     print(row["method"], [round(within["probability"], 2) for within in row["within"][:4]])
    survival [1.0, 0.92, 0.92, 0.78]
    drift []
    steps [1.0, 0.95, 0.9, 0.78]
    >>> forecast.groups[0].answers[1].refused.partition(".")[0]
    'drift is dominated by a few large steps'
    """
    table = history_of(history, by, cluster)
    if not 0 < below < 1:
        raise InputError(f"below must be a probability between 0 and 1, e.g. 0.9, got {below}.")
    if error is not None and not (math.isfinite(error) and error > 0):
        raise InputError(
            f"the promised error must be positive and finite, got {error}. Give it as a fraction: "
            "error=0.1 is 10 %."
        )

    check_level(level)
    found = searched(table, by=by, cluster=cluster)
    forecast = partial(
        _group, table, found.clocks, error=error, age=age, below=below, level=level, seed=seed
    )
    groups = []
    for group in found.groups():
        groups.append(forecast(group))
        if progress is not None:
            progress(len(groups), len(found.members))
    return HalfLifeForecast(
        source=table.source,
        groups=tuple(groups),
        by=found.by,
        clocks=found.clocks,
        error=error,
        age=age,
        below=below,
        versions=table.versions,
        dropped=found.panel_data.dropped,
        notes=found.notes,
        level=level,
        seed=seed,
    )


def _group(
    history: History,
    clocks: Sequence[Clock],
    group: Group,
    *,
    error: float | None,
    age: int,
    below: float,
    level: float,
    seed: int,
) -> GroupForecast:
    panel = group.panel
    last = len(panel.versions) - 1
    if not 0 <= age <= last:
        name = ", ".join(map(str, group.key.values()))
        raise InputError(
            f"age must be between 0 and {last} releases, got {age}: "
            f"{name + ' has' if name else 'the history has'} {last + 1} versions, "
            f"{panel.versions[0]} to {panel.versions[-1]}."
        )
    today = history.version_dates[history.versions.index(panel.versions[-1])]
    day: date | None = None if np.isnat(today) else today.astype("M8[D]").item()
    threshold = doubling_threshold(panel, level=level)
    limit, spread, notes = _promise(panel, threshold, error)
    answers = []
    for clock in clocks:
        if limit is None:
            answers += [_refused(name, clock, threshold.refused) for name in _METHODS]
            continue
        since = float(age)
        if clock == "months":
            since = float(panel.months[last] - panel.months[last - age])
        ahead = _times(panel, clock, since)
        asked = Question(panel, clock, limit, spread, since + ahead, level, seed)
        fit = fit_variogram(panel, clock)
        forecasts = (
            by_survival(asked, expiry_of(panel, limit, clock, level=level)),
            by_drift(asked, fit),
            by_steps(asked, group.steps, fit),
        )
        for name, forecast in zip(_METHODS, forecasts, strict=True):
            answers.append(_answer(name, clock, forecast, ahead, below, day))
    return GroupForecast(
        key=group.key,
        n_series=panel.n_series,
        promise=limit,
        calibrated_error=spread,
        calibrated=panel.versions[last - age],
        today=panel.versions[last],
        date=day,
        answers=tuple(answers),
        notes=notes,
    )


def _promise(
    panel: Panel, threshold: Threshold, error: float | None
) -> tuple[float | None, float, tuple[str, ...]]:
    """Return the promise, the spread of errors at calibration, and notes on both."""
    if panel.frozen_at_first:
        note = (
            "Without predictions, only changes of the measurements are known, so the model is "
            "assumed to be exact when calibrated."
        )
        if error is not None:
            return math.log1p(error), 0.0, (note,)
        return threshold.value, 0.0, (*threshold.notes, note)
    limit = threshold.value if error is None else math.log1p(error)
    return limit, threshold.error, threshold.notes


def _times(panel: Panel, clock: Clock, since: float) -> Floats:
    """Return the times of `AHEAD`, and further times up to twice the record."""
    time = panel.times(clock)
    spans = time[panel.starts[1:] - 1] - time[panel.starts[:-1]]
    end = max(2 * float(spans.max()) - since, AHEAD[clock][-1])
    more = np.geomspace(1.0, end, _POINTS)
    if clock == "releases":
        more = np.append(np.arange(1.0, AHEAD[clock][-1]), np.rint(more))
    return np.unique(np.append(more, AHEAD[clock]))


def _answer(
    method: Method,
    clock: Clock,
    forecast: Forecast | str,
    ahead: Floats,
    below: float,
    today: date | None,
) -> Answer:
    if isinstance(forecast, str):
        return _refused(method, clock, forecast)
    forecast = replace(forecast, ahead=ahead)
    drop = drops_below(forecast, below)
    if clock == "releases":
        drop = replace(drop, time=_whole(drop.time), low=_whole(drop.low), high=_whole(drop.high))
    known = today if clock == "months" else None
    dates = (_date(known, drop.time), _date(known, drop.low), _date(known, drop.high))
    shown = np.isin(ahead, AHEAD[clock])
    values = {
        name: getattr(forecast, name)[shown] for name in ("ahead", "probability", "low", "high")
    }
    return Answer(method, clock, replace(forecast, **values), drop, dates, "")


def _date(today: date | None, months: float | None) -> date | None:
    if today is None or months is None or math.isinf(months):
        return None
    return date_after(today, months)


def _whole(time: float | None) -> float | None:
    """Return the first whole release at or after a time."""
    if time is None or math.isinf(time):
        return time
    return float(math.ceil(time - 1e-9))


def _refused(method: Method, clock: Clock, why: str) -> Answer:
    return Answer(method, clock, None, None, (None, None, None), why)
