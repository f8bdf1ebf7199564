r"""A gate with memory: many series, one look after the other, against their accepted past.

Every value is a score: its distance from the centre of its baseline in standard deviations of its
series, clipped. At each look the last w values (w from `SIZES`) are tested against all values
before them since the last accepted step:

.. math:: D_w = \sum_{window} \psi_i - w\,\bar\psi_{baseline}, \qquad
          \operatorname{Var} D_w = w\,g(w) + \frac{w^2}{m}\,g(m), \qquad
          g(n) = 1 + 2 \sum_{k<n} (1 - k/n)\,\rho^k

with m values in the baseline and the autocorrelation ρ of the noise over all series. (A value with
more repeats than others has a smaller standard deviation, and counts for more.) A suspected
shift is in its window, and so not in the baseline that it is compared with. A drift that adds up is
a shift of the window against all that was accepted. The probability of :math:`D_w` under the law of
the noise (``errcomp.halflife.gate.laws``) becomes that of a Student t with the degrees of freedom
of the series' scale. The smallest over windows counts three times, which in simulation is what
several windows at overlapping looks cost.

A single value never raises an alarm by itself, unless it is the mean of repeats: it may be one bad
run. Two or more may.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.halflife.gate.laws import SIZES, NoiseLaw, noise_law
from errcomp.halflife.gate.scales import (
    EFFICIENCY,
    EXACT,
    FEWEST_OWN,
    SHARES,
    Repeats,
    autocorrelation,
    centres,
    medians,
    memory,
    scales,
    typical,
)
from errcomp.halflife.panel import Panel
from errcomp.stats.significance import holm_adjusted

__all__ = ["Look", "Monitor", "Shifts"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: What several windows, at looks that overlap, multiply the smallest probability by.
_WINDOWS = 3.0
#: With fewer degrees of freedom of its scale a series cannot be tested.
FEWEST_DF = 4.0
#: Values in a baseline, without repeats.
_FEWEST_BASELINE = 2
#: The last values, at most, that do not count for scale and law: they may have shifted.
_LATEST = 8
#: A window that is less probable does not count for scale and law, up to half of the baseline.
_SUSPICIOUS = 0.1
#: Scale and law are learned again when the number of looks has grown by this factor.
_AGAIN = 1.1
#: Of windows that are less probable than this, the one with the largest mean shift counts; scores
#: of that mean end here.
_CERTAIN, _FARTHEST = 1e-6, 1e4
#: Below this the probability is averaged over the scale.
_RARE = 0.003
#: Series whose probabilities are averaged over the scale at once.
_AT_ONCE = 500
#: What is summed over the values of a series, see `Monitor._scored`.
_SUMS = 8
#: Looks after which a shift without repeats counts as found, for what is detectable.
_WITHIN = 5
#: Halvings of the interval in which a detectable shift lies, 1 to `_FARTHEST`.
_HALVINGS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a look found.

    Attributes
    ----------
    series, at : ndarray of int, shape (k,)
        Series with a value at this look, and its place among the values of the series.
    p, p_adjusted : ndarray, shape (s,)
        Probability of the most unlikely window, and corrected for the number of series; NaN where
        nothing can be tested.
    p_single : ndarray, shape (s,)
        Probability of the new value alone.
    window : ndarray of int, shape (s,)
        Values in the most unlikely window.
    """

    series: Codes
    at: Codes
    p: Floats
    p_adjusted: Floats
    p_single: Floats
    window: Codes


@dataclass(frozen=True, slots=True, eq=False)
class Shifts:
    """The window of a look against its baseline, shape (s,); NaN, 0 or -1 without a value.

    Attributes
    ----------
    n : ndarray of int
        Values in the baseline.
    begin, last, at : ndarray of int
        Versions of the first value of the window, of the last value before it, and of this look.
    level, new, shift, se : ndarray
        Mean of the baseline, the new value, median of the window minus the level, and its error.
    """

    n: Codes
    begin: Codes
    last: Codes
    at: Codes
    level: Floats
    new: Floats
    shift: Floats
    se: Floats


class Monitor:
    """The state of a gate over many series; looks must be in the order of versions.

    Parameters
    ----------
    panel : Panel
    repeats : ndarray, shape (rows,)
        Validations behind each row of the panel.
    since : ndarray of int, shape (s,)
        First version of each baseline.
    margin : float
        Shift that does not matter, on the log scale.
    """

    def __init__(self, panel: Panel, repeats: Floats, since: Codes, margin: float) -> None:
        s, starts = panel.n_series, panel.starts
        series = panel.series
        at = np.arange(len(series)) - starts[series]
        self._place = (series, at)
        self._order = np.argsort(panel.version, kind="stable")
        self._bounds = np.searchsorted(
            panel.version[self._order], np.arange(len(panel.versions) + 1)
        )
        self._cap = int(np.diff(starts).max())
        self._x = self._table(panel.error)
        self._version = self._table(panel.version, -1).astype(np.int64)
        self._start = np.bincount(series, panel.version < since[series], s).astype(np.int64)
        self._since = since
        self._n = np.zeros(s, dtype=np.int64)
        self._margin = margin
        # A series has repeats if most of its values have.
        self.repeated = medians(self._table(repeats)) > 1
        self._is_repeated = self._table(repeats, 0) > 1
        sd = np.where(panel.noise_df[series] > 0, panel.sd, np.nan)
        self._noise_sd, self._noise_df = typical(sd, series, s), panel.noise_df
        known = self.repeated[series] & np.isfinite(sd) & (self._noise_sd[series] > 0)
        relative = np.where(known, sd / np.where(known, self._noise_sd[series], 1), 1.0)
        self._relative = self._table(np.maximum(relative, 1e-6), 1.0)
        self._units = self._table(np.where(self.repeated[series], 1.0, repeats), 1.0)
        # Set when they are first learned.
        self._centre = np.full((s, self._cap), np.nan)
        self._centred = np.zeros(s, dtype=np.int64)
        #: Baselines of each series, from the first to the present one.
        self._baselines = np.ones(s)
        #: Values of the latest window, where it may have shifted.
        self._suspected = np.zeros(s, dtype=np.int64)
        self._scale = np.full(s, np.nan)
        self.df = np.zeros(s)
        self.law: NoiseLaw | None = None
        self.ar, self.noise_scale = 0.0, 1.0
        #: Series whose values are equal: their noise is unknown.
        self.flat = np.zeros(s, dtype=bool)
        self._next, self._looks = 0.0, 0
        self._sums = np.zeros((_SUMS, s, self._cap + 1))

    def _table(self, values: NDArray[Any], missing: float = np.nan) -> Floats:
        """Put the rows of the panel into a table of series by their own values in order."""
        table = np.full((int(self._place[0].max()) + 1, self._cap), missing)
        table[self._place] = values
        return table

    def rows_at(self, version: int) -> tuple[Codes, Codes]:
        """Return the series with a value at a version, and where it is among their values."""
        rows = self._order[self._bounds[version] : self._bounds[version + 1]]
        return self._place[0][rows], self._place[1][rows]

    def skip(self, version: int) -> None:
        """Take the values of a version into the past without a test."""
        series, _ = self.rows_at(version)
        self._n[series] += 1

    def settled(self) -> Floats:
        """Take all values into the past, and return the scale of each series."""
        for version in range(len(self._bounds) - 1):
            self.skip(version)
        self._learn(1e-3)
        return self._scale

    @property
    def start(self) -> Codes:
        """First version of each baseline."""
        at = np.minimum(self._start, np.maximum(self._n - 1, 0))
        begun = self._version[np.arange(len(at)), at]
        return np.maximum(begun, self._since)

    def look(self, version: int, level: float) -> Look:
        """Test the values of a version, and take them into the past."""
        series, at = self.rows_at(version)
        self._looks += 1
        if self._looks >= self._next or self.law is None:
            self._learn(level)
            self._next = self._looks * _AGAIN
        stale = self._n[series] >= _AGAIN * self._centred[series] + 0.5
        if stale.any():
            self._centre_on(series[stale])
            self._sum(series[stale])
        self._add(series, at)
        self._n[series] = at + 1
        p, single, window = self._tested(series, at)
        self._suspected[series] = np.where(p[series] < _SUSPICIOUS, window[series], 0)
        return Look(series, at, p, holm_adjusted(p), single, window)

    @staticmethod
    def suspected(look: Look, moved: Mask) -> Codes:
        """Return the windows that shifted, or may have; the new value alone elsewhere."""
        alone = ~moved & ~((look.p < _SUSPICIOUS) & (look.p <= look.p_single))
        return np.where(alone, np.minimum(look.window, 1), look.window)

    def accept(self, look: Look, moved: Mask) -> None:
        """Begin new baselines where the windows that moved begin."""
        which = np.flatnonzero(moved)
        if len(which):
            self._start[which] = self._n[which] - look.window[which]
            self._suspected[which] = 0
            self._baselines[which] += 1
            self._centre_on(which)
            self._sum(which)

    # What is learned from the past

    def _inside(self, which: Codes, *, early: bool) -> tuple[Mask, Mask]:
        """Return the past values of series, and those of the baseline; not the latest if early."""
        at = np.arange(self._cap)
        n, start = self._n[which], self._start[which]
        late = np.maximum(np.minimum(_LATEST, (n - start) // 8), self._suspected[which])
        late = np.clip(late, 0, np.maximum(n - start, 0) // 2) if early else 0
        past = at < (n - late)[:, None]
        return past, past & (at >= start[:, None])

    def _centre_on(self, which: Codes) -> None:
        """Centre the baselines of series; earlier values keep the centre that they had."""
        _, inside = self._inside(which, early=True)
        upto = int(self._n[which].max(initial=1))
        centre = centres(np.where(inside, self._x[which], np.nan)[:, :upto])[:, None]
        current = np.arange(self._cap) >= self._start[which][:, None]
        self._centre[which] = np.where(current & np.isfinite(centre), centre, self._centre[which])
        self._centred[which] = self._n[which]

    def _sum(self, which: Codes) -> None:
        """Sum scores over the values of series."""
        past, _ = self._inside(which, early=False)
        away = self._x[which] - self._centre[which]
        units = np.where(past, self._units[which], 0.0)
        scored = self._scored(away, self._scale[which][:, None], self._relative[which], units)
        self._sums[:, which, 1:] = np.cumsum(scored, axis=2)

    def _scored(self, away: Floats, scale: Floats, relative: Floats, units: Floats) -> Floats:
        """Return what is summed over windows, and over baselines.

        Of windows: units, their inverse noise, and units times scores: plain, a margin lower and
        higher, not clipped. Of baselines: units by their inverse variance, and scores by their
        inverse noise. Noise is relative to that of a typical value of the series.
        """
        assert self.law is not None
        clip = self.law.clip
        with np.errstate(invalid="ignore", divide="ignore"):
            parts = [(away - m) / (scale * relative) for m in (0.0, self._margin, -self._margin)]
        plain, up, down = (units * np.clip(np.nan_to_num(part), -clip, clip) for part in parts)
        far = units * np.clip(np.nan_to_num(parts[0]), -_FARTHEST, _FARTHEST)
        inverse = units / relative
        of_baseline = inverse / relative, plain / relative
        return np.stack([units, inverse, plain, up, down, far, *of_baseline])

    def _add(self, series: Codes, at: Codes) -> None:
        """Add one value to each of the series."""
        self._centre[series, at] = self._centre[series, np.maximum(at - 1, 0)]
        away = self._x[series, at] - self._centre[series, at]
        relative = self._relative[series, at]
        new = self._scored(away, self._scale[series], relative, self._units[series, at])
        self._sums[:, series, at + 1] = self._sums[:, series, at] + new

    def _learn(self, level: float) -> None:
        """Learn centres, scales, autocorrelation and law from the past, and score it."""
        everything = np.arange(len(self._n))
        self._centre_on(everything)
        past, _ = self._inside(everything, early=True)
        known = past & np.isfinite(self._centre)
        upto = int(self._n.max(initial=1))
        away = np.where(known, (self._x - self._centre) / self._relative, np.nan)[:, :upto]
        count = known.sum(axis=1)
        repeats = Repeats(self._noise_sd, self._noise_df, self.repeated)
        size = np.abs(np.nan_to_num(self._x[:, 0]))
        found = scales(away, size, self._baselines, repeats)
        self._scale, self.df, self.flat = found.sd, found.df, found.flat
        self.noise_scale = found.of_repeats
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = away / self._scale[:, None]
        scores = np.where(np.isfinite(scores), scores, np.nan)
        # The mean of a baseline follows each of its values.
        free = count - self._baselines
        scores *= np.sqrt(count / np.maximum(free, 1))[:, None]
        scores[free < FEWEST_OWN - 1] = np.nan
        self.ar = autocorrelation(scores, count)
        seen = scores[np.isfinite(scores)]
        tested = max(int((self.df >= FEWEST_DF).sum()), 1)
        p = level / tested / _WINDOWS
        self.law = noise_law(seen, p, repeated=bool(self.repeated.mean() > 0.5))
        self._sum(everything)

    # The test

    def _tested(self, series: Codes, at: Codes) -> tuple[Floats, Floats, Codes]:
        """Test all windows that end at these values; return p, that of one, and windows."""
        df, start, scale = self.df[series], self._start[series], self._scale[series]
        # A mean of repeats, or more runs than usual, is more than one run.
        confirmed = self._is_repeated[series, at]
        fewest = np.where(self.repeated[series], 1, _FEWEST_BASELINE)
        usable = (df >= FEWEST_DF) & np.isfinite(scale)
        # All windows at once: with few series, most of the time is that of calls.
        first = at + 1 - np.asarray(SIZES)[:, None]
        fits = usable & (first - start >= fewest)
        row, of = np.nonzero(fits)
        p, far = np.full(fits.shape, np.inf), np.zeros(fits.shape)
        p[fits], far[fits] = self._p(series[of], at[of], first[row, of])
        single = np.full(len(at), np.nan)
        single[fits[0]] = self._unknown_scale(p[0], series, at, first[0], fits[0])
        p[0, ~confirmed] = np.inf
        least, largest = np.full(len(at), np.inf), np.zeros(len(at))
        chosen = np.ones(len(at), dtype=np.int64)
        for k, size in enumerate(SIZES[: int(row.max(initial=-1)) + 1]):
            certain = p[k] < _CERTAIN
            better = np.where(certain, far[k] > largest, (p[k] < least) & (largest == 0))
            largest = np.where(certain, np.maximum(far[k], largest), largest)
            chosen[better], least = size, np.minimum(p[k], least)
        tested = np.isfinite(least)
        p = np.full(len(at), np.nan)
        mixed = self._unknown_scale(least, series, at, at + 1 - chosen, tested)
        p[tested] = np.minimum(_WINDOWS * mixed, 1.0)
        return (
            self._spread(series, p),
            self._spread(series, single),
            self._spread(series, chosen, 0),
        )

    def _spread(self, series: Codes, values: NDArray[Any], missing: float = np.nan) -> NDArray[Any]:
        """Put values of some series into an array of all."""
        everywhere = np.full(len(self._n), missing, dtype=values.dtype)
        everywhere[series] = values
        return everywhere

    def _unknown_scale(
        self, p: Floats, series: Codes, at: Codes, first: Codes, which: Mask
    ) -> Floats:
        """Return the probabilities of some windows with an estimated scale, not a known one."""
        p, df = p[which], np.minimum(self.df[series[which]], EXACT)
        away = special.ndtri(np.maximum(p, 1e-300) / 2)
        mixed = np.where(p == 0, 0.0, 2 * special.stdtr(df, away))
        # Clipped scores of a large shift are the same for all scales that are likely.
        rare = (p < _RARE) & (self._scale[series[which]] > 0)
        if rare.any():
            some = np.flatnonzero(which)[rare]
            mixed[rare] = self._mixed(series[some], at[some], first[some])
        return mixed

    def _mixed(self, series: Codes, at: Codes, first: Codes, more: int = 0) -> Floats:
        """Average probabilities of windows over the scale; ``more`` values like theirs follow."""
        assert self.law is not None
        if len(series) > _AT_ONCE:  # all series of a large gate would take gigabytes
            parts = [slice(i, i + _AT_ONCE) for i in range(0, len(series), _AT_ONCE)]
            return np.concatenate([self._mixed(series[i], at[i], first[i], more) for i in parts])
        m, precision, mean = self._baseline(series, first)
        place = np.minimum(first[:, None] + np.arange(int((at - first).max()) + 1), at[:, None])
        inside = first[:, None] + np.arange(place.shape[1]) <= at[:, None]
        away = self._x[series[:, None], place] - self._centre[series, at][:, None]
        relative = self._relative[series[:, None], place]
        scale = self._scale[series][:, None] * relative
        units = np.where(inside, self._units[series[:, None], place], 0.0)
        w = units.sum(axis=1)
        grown = (w + more) / w
        inverse = (units / relative).sum(axis=1) * grown
        w = w + more
        inflation, steady = (
            self._inflation(w, inverse, m, precision, swings=swings) for swings in (True, False)
        )
        of_nearest = np.sqrt(1 + (inverse / w) ** 2 / precision * memory(m, self.ar))
        df = np.minimum(self.df[series] + EFFICIENCY * more, EXACT)
        # A scale that is larger by this factor, for which the estimate came out as it is.
        shares, weights = SHARES
        factor = np.sqrt(df / 2 / special.gammaincinv(df / 2, shares[:, None]))
        below = inverse * mean / factor
        margins = (self._margin, -self._margin)
        with np.errstate(invalid="ignore", divide="ignore"):
            scores = [(away - x) / (scale * factor[:, :, None]) for x in margins]
        clipped = (np.clip(score, -self.law.clip, self.law.clip) for score in scores)
        sides = [(units * score).sum(axis=2) * grown - below for score in clipped]
        p = self._p_of(w, inflation, *sides)
        if self.ar > 0:
            # A swing does not reach the value nearest to the baseline, and bad runs do not come in
            # swings.
            up, down = (np.where(inside, x, np.inf).min(axis=2) for x in (scores[0], -scores[1]))
            swing = 2 * special.ndtr(-np.maximum(np.maximum(up, down), 0) / of_nearest)
            p = np.minimum(p, np.maximum(self._p_of(w, steady, *sides), swing))
        if (single := w == 1).any():
            alone = (score[:, single, 0] - below[:, single] for score in scores)
            p[:, single] = self.law.p_of_one(*(one / np.sqrt(inflation[single]) for one in alone))
        return np.asarray(weights @ p)

    def _baseline(self, series: Codes, first: Codes) -> tuple[Floats, Floats, Floats]:
        """Return values, precision, and mean of the baselines of windows from first.

        The mean is in standard deviations of a typical value, and its variance is one over the
        precision.
        """
        start = self._start[series]
        sums = self._sums[:, series, first] - self._sums[:, series, start]
        precision = np.where(sums[6] > 0, sums[6], 1.0)
        return np.maximum(sums[0], 1), precision, sums[7] / precision

    def _inflation(
        self, w: Floats, inverse: Floats, m: Floats, precision: Floats, *, swings: bool = True
    ) -> Floats:
        """Return the variance of the sum of w values beyond their baseline, per value."""
        ar = self.ar if swings else 0.0
        return memory(w, ar) + inverse**2 / np.maximum(w, 1) / precision * memory(m, ar)

    def _windows(self, series: Codes, at: Codes, first: Codes) -> tuple[Floats, Floats, Floats]:
        """Return values, inflation of the variance, and the sums, of windows from first.

        The sums are those of scores beyond the baseline: a margin lower and higher, not clipped.
        """
        inside = self._sums[:, series, at + 1] - self._sums[:, series, first]
        m, precision, mean = self._baseline(series, first)
        w, inverse = inside[:2]
        return w, self._inflation(w, inverse, m, precision), inside[3:6] - inverse * mean

    def _p(self, series: Codes, at: Codes, first: Codes) -> tuple[Floats, Floats]:
        """Return the probability of each window without a change, and its mean shift.

        The scale is taken as known; the shift is in standard errors, and not clipped.
        """
        assert self.law is not None
        w, inflation, (up, down, plain) = self._windows(series, at, first)
        p = self._p_of(w, inflation, up, down)
        one = (first == at) & (w == 1)
        if one.any():
            # Single scores are not clipped.
            scale = self._scale[series] * self._relative[series, at]
            margin = self._margin / np.where(scale > 0, scale, 1.0)[one]
            sides = (plain[one] - margin, plain[one] + margin)
            p[one] = self.law.p_of_one(*(side / np.sqrt(inflation[one]) for side in sides))
        exact = self._scale[series] == 0
        p[exact] = np.where((up[exact] > 0) | (down[exact] < 0), 0.0, 1.0)
        return p, np.abs(plain) / np.sqrt(w * inflation)

    def _p_of(self, w: Floats, inflation: Floats, up: Floats, down: Floats) -> Floats:
        """Return the probability of sums of w values, shape (…, k) with w of shape (k,)."""
        assert self.law is not None
        p = np.ones(up.shape)
        sizes = np.asarray(SIZES)
        size = np.maximum(np.searchsorted(sizes, w, side="right") - 1, 0)
        shrink = np.sqrt(sizes[size] / np.maximum(w, 1) / inflation)
        for k in np.unique(size).tolist():
            of = size == k
            sides = (side[..., of] * shrink[of] for side in (up, down))
            p[..., of] = self.law.p(k, *sides)
        return p

    def described(self, look: Look, window: Codes) -> Shifts:
        """Return the size of shifts in windows of this many values."""
        series, at = look.series, look.at
        first, start = np.maximum(at + 1 - window[series], 0), self._start[series]
        n = np.maximum(first - start, 0)
        some = n > 0
        m, precision, mean = self._baseline(series, first)
        scale = self._scale[series]
        level = np.where(some, self._centre[series, at] + np.nan_to_num(scale) * mean, np.nan)
        place = np.arange(self._cap)
        inside = (place >= first[:, None]) & (place <= at[:, None])
        # The median of one and of two values is their mean.
        middle = medians(np.where(inside, self._x[series], np.nan))
        units = np.where(inside, self._units[series], 0.0)
        w = units.sum(axis=1)
        of_window = (units * self._relative[series] ** 2).sum(axis=1) / w**2 * memory(w, self.ar)
        variance = of_window + memory(m, self.ar) / precision
        last = np.where(some, self._version[series, np.maximum(first - 1, 0)], -1)
        return Shifts(
            n=self._spread(series, n, 0),
            begin=self._spread(series, self._version[series, first], -1),
            last=self._spread(series, last, -1),
            at=self._spread(series, self._version[series, at], -1),
            level=self._spread(series, level),
            new=self._spread(series, self._x[series, at]),
            shift=self._spread(series, middle - level),
            se=self._spread(series, scale * np.sqrt(variance)),
        )

    # What others ask of the state

    @property
    def tail_df(self) -> float:
        """Degrees of freedom of a Student t with tails like the law's."""
        return self.law.tail_df if self.law else float("inf")

    @property
    def law_n(self) -> float:
        """Values that the law was learned from."""
        return self.law.n if self.law else 0.0

    def sources(self) -> NDArray[Any]:
        """Say where the noise of each series comes from."""
        source = np.full(len(self.df), "scatter", dtype=object)
        source[(self._noise_df > 0) & self.repeated] = "repeats"
        source[self.df == 0] = "none"
        return source

    def values_needed(self, series: int) -> int:
        """Return how many more values a series needs before it can be tested; 0 if unknown."""
        if self.flat[series]:
            return 0
        has = int(self._n[series] - self._start[series])
        most = range(has, has + 100)
        enough = (n - min(_LATEST, n // 8) - 1 >= FEWEST_DF / EFFICIENCY for n in most)
        return max(next(n for n, fine in zip(most, enough, strict=True) if fine) - has + 1, 1)

    def critical(self, alpha: float) -> Floats:
        """Return the two-sided critical value of each series at alpha; NaN without a scale."""
        df = np.minimum(np.where(self.df > 0, self.df, np.nan), 1e9)
        return np.asarray(special.stdtrit(df, 1 - alpha / 2))

    def detectable(self, level: float, look: Look) -> Floats:
        """Return the shift that would be found in half of the cases, see `GateResult`."""
        series, at = look.series, look.at
        m, precision, _ = self._baseline(series, np.maximum(at + 1 - look.window[series], 0))
        df = np.minimum(np.maximum(self.df[series], 1.0), EXACT)
        # Scales that are larger by these factors, for which the estimate came out as it is.
        factor = np.sqrt(df / 2 / special.gammaincinv(df / 2, SHARES[0][:, None]))
        least = np.full(len(series), np.inf)
        for size in SIZES:
            if size > _WITHIN:
                break
            fits = np.flatnonzero((size == 1) == self.repeated[series])
            if not len(fits):
                continue
            low, high = np.zeros(len(fits)), np.full(len(fits), np.log(_FARTHEST))
            known = factor[:, fits], size, m[fits], precision[fits]
            beyond = _WINDOWS * self._p_of_shift(np.exp(high), *known) > level
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                found = _WINDOWS * self._p_of_shift(np.exp(middle), *known) <= level
                low, high = np.where(found, low, middle), np.where(found, middle, high)
            least[fits] = np.minimum(least[fits], np.where(beyond, np.inf, np.exp(high)))
        least[np.isinf(least) | np.isnan(look.p[series])] = np.nan
        scale = self._scale[series] * self._relative[series, at]
        return self._spread(series, self._margin + least * scale)

    def _p_of_shift(
        self, shift: Floats, factor: Floats, size: int, m: Floats, precision: Floats
    ) -> Floats:
        """Return the probability of this many values that are a shift in standard deviations.

        It is averaged over the scale, larger by ``factor`` of shape (shares, k).
        """
        assert self.law is not None
        w = np.full(len(shift), float(size))
        inflation, score = self._inflation(w, w, m, precision), shift / factor
        if size == 1:
            far = score / np.sqrt(inflation)
            p = self.law.p_of_one(far, far)
        else:
            # Half of the scores near the clip are clipped.
            sums = size * np.minimum(score, self.law.clip - 0.5)
            p = self._p_of(w, inflation, sums, sums)
        return np.asarray(SHARES[1] @ p)

    def repeats_needed(self, window: Codes, which: Codes, level: float, most: int = 20) -> Codes:
        """Return how many more runs like the suspected ones would make alarms; 0 beyond most."""
        needed = np.zeros(len(which), dtype=np.int64)
        if not len(which):
            return needed
        at = self._n[which] - 1
        first = at + 1 - window[which]
        for r in range(most, 0, -1):
            needed[_WINDOWS * self._mixed(which, at, first, r) <= level] = r
        return needed
