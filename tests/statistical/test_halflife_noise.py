"""Do noise floors cover? t intervals from moderated variances, and from histories with dates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from errcomp.halflife.noise import moderated_variances
from errcomp.halflife.panel import panel_of
from errcomp.tables import History

SPREADS = {
    "equal": lambda rng, n: np.ones(n),
    "inverse chi square": lambda rng, n: 4 / rng.chisquare(4, n),
    "log-normal": lambda rng, n: np.exp(rng.standard_normal(n)),
    "two groups": lambda rng, n: np.where(rng.random(n) < 1 / 3, 9.0, 1.0),
}
SIZES = [(1, 1), (5, 2), (2, 6), (6, 2), (12, 1), (30, 2), (200, 5)]


def covered(error, variance, df, level=0.95):
    return np.abs(error) <= special.stdtrit(df, (1 + level) / 2) * np.sqrt(variance)


@pytest.mark.slow
@pytest.mark.parametrize("spread", list(SPREADS))
@pytest.mark.parametrize(("series", "df"), SIZES)
def test_moderated_variances_cover(spread, series, df):
    rng = np.random.default_rng([series, df, list(SPREADS).index(spread)])
    hits, unseen = [], []
    for _ in range(max(30, 1500 // series)):
        variance = SPREADS[spread](rng, series + 1)
        s2 = variance * rng.chisquare(df, series + 1) / df
        s2[-1] = np.nan
        degrees = np.append(np.full(series, float(df)), 0.0)
        moderated = moderated_variances(s2, degrees)
        error = np.sqrt(variance) * rng.standard_normal(series + 1)
        hits.append(covered(error[:-1], moderated.variance[:-1], moderated.df[:-1]).mean())
        if moderated.df[-1] > 0:
            unseen.append(covered(error[-1], moderated.variance[-1], moderated.df[-1]))
    # Series of one replicate share the prior: replicates are independent, series are not quite.
    margin = 3 * np.std(hits, ddof=1) / np.sqrt(len(hits))
    assert 0.93 - margin < np.mean(hits) < 0.97 + margin
    if series * df < 12:
        assert not unseen
    else:
        # A series without repeats: too wide where few others tell what is usual, never too short.
        assert np.mean(unseen) > 0.93 - 3 * np.sqrt(0.95 * 0.05 / len(unseen))


def history(rng, series, versions, dates, each, sd_date, sd):
    """The software stays as it is: every error is noise."""
    axes = np.meshgrid(range(series), range(versions), range(dates), range(each), indexing="ij")
    of, version, date, repeat = (x.ravel() for x in axes)
    scale = np.sqrt(SPREADS["inverse chi square"](rng, series))
    shift = sd_date * rng.standard_normal((series, versions, dates))[of, version, date]
    noise = scale[of] * (shift + sd * rng.standard_normal(len(of)))
    first = np.datetime64("2025-01-01") + 60 * version + date
    return History(
        {
            "series": of,
            "version": version,
            "date": first,
            "repeat": repeat,
            "measured": np.exp(noise),
            "predicted": np.ones(len(of)),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dates", "each", "sd_date", "sd"),
    [(1, 4, 0, 0.03), (3, 1, 0.02, 0.03), (3, 3, 0.05, 0.02), (4, 2, 0.02, 0.05), (3, 3, 0, 0.05)],
)
def test_errors_of_a_panel_lie_within_their_noise(dates, each, sd_date, sd):
    rng = np.random.default_rng([dates, each])
    panel = panel_of(history(rng, 1500, 3, dates, each, sd_date, sd)).panel
    df = np.repeat(panel.noise_df, np.diff(panel.starts))
    share = covered(panel.error, panel.sd**2, df).mean()
    assert share == pytest.approx(0.95, abs=0.02)


@pytest.mark.slow
def test_noise_of_one_date_misses_what_changes_between_dates():
    """The trap that the notes name: repeats within minutes, versions on different dates."""
    rng = np.random.default_rng(7)
    made = panel_of(history(rng, 1500, 3, 1, 4, 0.05, 0.02))
    df = np.repeat(made.panel.noise_df, np.diff(made.panel.starts))
    assert covered(made.panel.error, made.panel.sd**2, df).mean() < 0.5
    assert any("noise between dates is unknown" in note for note in made.notes)
