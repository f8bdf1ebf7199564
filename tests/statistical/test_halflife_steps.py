"""Do steps keep what they promise? False alarms at every length, power, coverage, attribution.

Tolerances are 3.5 to 4 binomial standard errors. Larger runs of the same simulations:
``python benchmarks/step_rates.py rates``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from errcomp import datasets
from errcomp.halflife.panel import Panel
from errcomp.halflife.panel import panel_of as panel_of_history
from errcomp.halflife.steps import find_steps, find_steps_of
from errcomp.halflife.steps import scan as scan
from errcomp.halflife.steps.environment import attribute_steps
from errcomp.halflife.steps.scan import Batch
from errcomp.halflife.steps.search import search

pytestmark = pytest.mark.slow


def p_of(x, *, df=0.0, min_segment=2, rng=None):
    r, n = x.shape
    given = rng.chisquare(df, r) / df if 0 < df < np.inf else np.ones(r)
    sd = np.repeat(np.sqrt(given), n)
    batch = Batch.of(x.ravel(), sd, np.arange(r + 1) * n, np.full(r, float(df)))
    return search(batch, 1e-12, min_segment)[0]


def near(rate, wanted, n, slack=0.0, errors=4.0):
    return abs(rate - wanted) <= slack + errors * math.sqrt(wanted * (1 - wanted) / n)


def panel_of(x):
    s, n = x.shape
    return Panel(
        tuple(map(str, range(n))),
        np.arange(float(n)),
        tuple(map(str, range(s))),
        np.arange(s),
        np.arange(s + 1) * n,
        np.tile(np.arange(n), s),
        x.ravel(),
        np.full(s * n, np.nan),
        np.zeros(s),
        frozen_at_first=False,
    )


# False alarms


def test_false_alarms_at_every_length():
    rng = np.random.default_rng(1)
    alarms = {}
    for n in range(6, 201):
        count = 4000 if n <= 40 else 600
        p = p_of(rng.standard_normal((count, n)))
        alarms[n] = (int((p <= 0.05).sum()), count)
        assert near(alarms[n][0] / count, 0.05, count, errors=4.3), n
    # Ten lengths together: within 4 to 6 % beyond chance.
    for start in range(6, 200, 10):
        part = [alarms[n] for n in range(start, min(start + 10, 201))]
        raised, count = (sum(column) for column in zip(*part, strict=True))
        assert near(raised / count, 0.05, count, errors=3.7), start
    short = [alarms[n] for n in range(6, 41)]
    assert sum(a for a, _ in short) / sum(c for _, c in short) == pytest.approx(0.05, abs=0.0025)


@pytest.mark.parametrize("n", [45, 72, 114, 180])
def test_false_alarms_between_the_tabulated_lengths(n):
    # Beyond 4 standard errors of 6,000 the rate is not within 4 to 6 %.
    x = np.random.default_rng(n).standard_normal((6000, n))
    assert 0.039 < (p_of(x) <= 0.05).mean() < 0.061


@pytest.mark.parametrize("df", [3, 10, 100, np.inf])
def test_false_alarms_with_known_noise(df):
    rng = np.random.default_rng(2)
    for n in (4, 6, 9, 17, 30):
        p = p_of(rng.standard_normal((8000, n)), df=df, rng=rng)
        assert near((p <= 0.05).mean(), 0.05, 8000), n
        assert near((p <= 0.01).mean(), 0.01, 8000), n


@pytest.mark.parametrize("min_segment", [3, 4])
def test_false_alarms_with_longer_segments(min_segment):
    rng = np.random.default_rng(3)
    for n in (2 * min_segment, 13, 22, 48):
        p = p_of(rng.standard_normal((6000, n)), min_segment=min_segment)
        assert near((p <= 0.05).mean(), 0.05, 6000), n


def test_p_values_are_uniform():
    p = p_of(np.random.default_rng(4).standard_normal((20_000, 15)))
    for alpha in (0.001, 0.01, 0.1, 0.3, 0.7):
        assert near((p <= alpha).mean(), alpha, 20_000), alpha


def test_unequal_noise_keeps_the_rate():
    rng = np.random.default_rng(5)
    for n in (8, 20):
        sd = np.exp(rng.uniform(-1, 1, (6000, n)))
        x = sd * rng.standard_normal((6000, n))
        batch = Batch.of(x.ravel(), sd.ravel(), np.arange(6001) * n, np.zeros(6000))
        p = search(batch, 1e-12, 2)[0]
        assert near((p <= 0.05).mean(), 0.05, 6000, slack=0.005), n


def test_false_alarms_under_other_noise_are_as_stated():
    rng = np.random.default_rng(6)
    stated = {
        12: (0.050, 0.052, 0.078, 0.171),
        50: (0.077, 0.069, 0.102, 0.292),
    }
    for n, rates in stated.items():
        size = (4000, n)
        chain = rng.standard_normal(size)
        for i in range(1, n):
            chain[:, i] = 0.3 * chain[:, i - 1] + math.sqrt(1 - 0.09) * chain[:, i]
        noises = (
            rng.standard_t(3, size),
            rng.laplace(size=size),
            rng.lognormal(0, 0.5, size),
            chain,
        )
        for x, rate in zip(noises, rates, strict=True):
            assert near((p_of(x) <= 0.05).mean(), rate, 4000), (n, rate)


# Correlated neighbours, bad runs, and repeats that miss part of the noise


def chained(rng, size, rho):
    x = rng.standard_normal(size)
    for i in range(1, size[1]):
        x[:, i] = rho * x[:, i - 1] + math.sqrt(1 - rho**2) * x[:, i]
    return x


BAD_RUNS = {
    "off": lambda rng, x: x + 6 * rng.choice([-1, 1], x.shape) * (rng.random(x.shape) < 0.05),
    "wide": lambda rng, x: np.where(rng.random(x.shape) < 0.05, 6 * x, x),
    "slow": lambda rng, x: x + 6 * (rng.random(x.shape) < 0.05),
}


def share_with_steps(x, group=None):
    """Return the share of series in which a step is found, searched in groups."""
    group = len(x) if group is None else group
    parts = (find_steps_of(panel_of(x[i : i + group])) for i in range(0, len(x), group))
    return float(np.mean([one.p <= 0.05 for part in parts for one in part]))


@pytest.mark.parametrize("n", [6, 9, 12, 20, 35, 50, 100, 200])
def test_a_group_keeps_its_rate_under_correlation(n):
    count = 3000 if n < 60 else 1500
    for rho in (0.0, 0.15, 0.3, 0.5):
        rng = np.random.default_rng([n, round(100 * rho)])
        rate = np.mean([share_with_steps(chained(rng, (count // 5, n), rho)) for _ in range(5)])
        # Within a fifth of 5 %, beyond chance.
        assert abs(rate - 0.05) < 0.01 + 3 * math.sqrt(0.05 * 0.95 / count), (rho, rate)


@pytest.mark.parametrize("n", [6, 12, 20, 50, 100, 200])
def test_bad_runs_do_not_raise_the_rate_of_a_group(n):
    count = 3000 if n < 60 else 1500
    for name, law in BAD_RUNS.items():
        for rho in (0.0, 0.3):
            rng = np.random.default_rng([n, len(name), round(100 * rho)])
            x = law(rng, chained(rng, (count, n), rho))
            rate = np.mean([share_with_steps(part) for part in np.split(x, 5)])
            assert rate < 0.06 + 3 * math.sqrt(0.06 * 0.94 / count), (name, rho, rate)


def test_a_series_alone_keeps_its_rate_up_to_an_autocorrelation_of_0_3():
    for n in (6, 12, 20, 50):
        for rho, most in ((0.0, 0.05), (0.3, 0.06), (0.5, 0.18)):
            rng = np.random.default_rng([n, round(100 * rho), 1])
            rate = share_with_steps(chained(rng, (600, n), rho), group=1)
            assert rate < most + 3 * math.sqrt(most * (1 - most) / 600), (n, rho, rate)


def test_a_group_finds_nearly_as_many_steps_as_if_noise_were_known_to_be_independent():
    rng = np.random.default_rng(16)
    for n, size, least in ((12, 3, 0.78), (20, 3, 0.92), (12, 5, 0.98), (50, 2, 0.70)):
        at = rng.integers(2, n - 1, 2000)
        x = rng.standard_normal((2000, n)) + size * (np.arange(n) >= at[:, None])
        assert share_with_steps(x, group=200) > least, (n, size)
        independent = (p_of(x) <= 0.05).mean()
        assert share_with_steps(x, group=200) > independent - 0.1, (n, size)
    # Alone, a short series cannot tell a step from a slow swing.
    at = rng.integers(2, 11, 600)
    x = rng.standard_normal((600, 12)) + 3 * (np.arange(12) >= at[:, None])
    assert 0.5 < share_with_steps(x, group=1) < 0.75


def test_places_and_sizes_hold_under_correlation():
    for n, rho, size in ((20, 0.3, 3.0), (20, 0.5, 5.0), (50, 0.3, 5.0), (50, 0.5, 3.0)):
        rng = np.random.default_rng([n, round(10 * rho)])
        at = rng.integers(2, n - 1, 1500)
        x = chained(rng, (1500, n), rho) + size * (np.arange(n) >= at[:, None])
        found = [
            (result.steps[0], k)
            for result, k in zip(find_steps_of(panel_of(x)), at, strict=True)
            if len(result.steps) == 1
        ]
        sizes = [step.size_low <= size <= step.size_high for step, _ in found]
        places = [step.at_low <= k <= step.at_high for step, k in found]
        assert len(found) > 700
        # Only steps that were found are counted, which are the larger ones.
        assert np.mean(sizes) > 0.90, (n, rho)
        assert np.mean(places) > 0.93, (n, rho)


def test_repeats_that_miss_part_of_the_noise_do_not_raise_the_rate_of_a_group():
    rng = np.random.default_rng(17)
    for n in (8, 20, 35):
        # What repeats miss differs between series: none in some, thrice their noise in others.
        scale = np.exp(rng.uniform(0, math.log(3), 1500))[:, None]
        x = scale * rng.standard_normal((1500, n))
        panel = replace(panel_of(x), sd=np.ones(x.size), noise_df=np.full(1500, 40.0))
        rate = np.mean([one.p <= 0.05 for one in find_steps_of(panel)])
        assert 0.02 < rate < 0.07, (n, rate)
        # A few series are taken at their word, with a note.
        few = [find_steps(row, sd=1.0, df=40.0) for row in x[:200]]
        assert np.mean([one.p <= 0.05 for one in few]) > 0.07


def test_shuffled_releases_have_no_steps():
    """The built-in history: order says nothing of a shuffled series, so steps are false."""
    panel = panel_of_history(datasets.load("ort-releases")).panel
    rng = np.random.default_rng(18)
    found = []
    for _ in range(12):
        # Each series in an order of its own, so that 12 times 290 series count.
        order = np.lexsort((rng.random(len(panel.error)), panel.series))
        shuffled = replace(panel, error=panel.error[order], sd=panel.sd[order])
        found += [one.p <= 0.05 for one in find_steps_of(shuffled)]
    assert 0.02 < np.mean(found) < 0.06


def test_one_bad_run_raises_no_more_alarms():
    rng = np.random.default_rng(7)
    for n in (8, 12, 20, 50):
        x = rng.standard_normal((3000, n))
        x[np.arange(3000), rng.integers(1, n - 1, 3000)] += 10
        assert (p_of(x) <= 0.05).mean() < 0.07, n


# The scan against what it must be


def exact_splits(n, c):
    """P(any split exceeds c), noise known: standardised splits are a normal Markov chain."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    z, w = c * nodes, c * weights
    density = stats.norm.pdf(z)
    for k in range(2, n):
        # From split k - 1 to split k.
        rho = math.sqrt((k - 1) * (n - k) / (k * (n - k + 1)))
        density = stats.norm.pdf(z[:, None], rho * z, math.sqrt(1 - rho**2)) @ (w * density)
    return 1 - float(w @ density)


@pytest.mark.parametrize(("n", "c"), [(3, 2.2), (10, 2.7), (30, 2.9)])
def test_splits_with_known_noise_have_their_exact_distribution(n, c):
    x = np.random.default_rng(8).standard_normal((20_000, n))
    _, best, _ = scan.gains(x, np.ones((1, n)), 1)
    exact = exact_splits(n, c)
    assert 0.01 < exact < 0.1
    assert near((best > c**2).mean(), exact, 20_000)


def test_splits_of_three_values_have_their_closed_form():
    # Two contrasts at 60 degrees to each other in a plane: both are directions on a circle.
    x = np.random.default_rng(9).standard_normal((40_000, 3))
    squares, best, _ = scan.gains(x, np.ones((1, 3)), 1)
    angle = 0.05 * math.pi / 4
    evidence = scan.local_evidence(best, squares, 3, np.zeros(40_000), np.zeros(40_000))
    critical = -math.log(2 * stats.t.sf(1 / math.tan(angle), 1))
    assert near((evidence > critical).mean(), 0.05, 40_000)


# Power


def steps_in(rng, count, n, size, *, length=None):
    last = n - 2 if length is None else n - length - 2
    at = rng.integers(2, last + 1, count)[:, None]
    place = np.arange(n)
    inside = place >= at if length is None else (place >= at) & (place < at + length)
    return rng.standard_normal((count, n)) + size * inside, at[:, 0]


def test_power_for_a_step():
    rng = np.random.default_rng(10)
    for n, size, least in ((8, 3, 0.55), (12, 3, 0.80), (12, 5, 0.98), (20, 3, 0.94), (20, 2, 0.7)):
        x, _ = steps_in(rng, 4000, n, size)
        assert (p_of(x) <= 0.05).mean() >= least, (n, size)
    x, _ = steps_in(rng, 4000, 12, 3)
    assert (p_of(x, df=20, rng=rng) <= 0.05).mean() >= 0.93


def test_power_for_up_and_down():
    rng = np.random.default_rng(11)
    for n, length, size, least in (
        (12, 2, 3, 0.28),
        (12, 2, 5, 0.8),
        (12, 3, 3, 0.5),
        (20, 2, 5, 0.88),
        (20, 4, 3, 0.78),
        (40, 2, 10, 0.99),
    ):
        x, _ = steps_in(rng, 3000, n, size, length=length)
        assert (p_of(x) <= 0.05).mean() >= least, (n, length, size)


# What is said of a step that was found


@pytest.mark.parametrize(("n", "size"), [(12, 3.0), (12, 6.0), (24, 3.0), (60, 4.0)])
def test_coverage_of_places_and_sizes(n, size):
    rng = np.random.default_rng([12, n])
    x, at = steps_in(rng, 700, n, size)
    results = find_steps_of(panel_of(x))
    hits = [i for i, result in enumerate(results) if result.steps]
    nearest = [min(results[i].steps, key=lambda step, i=i: abs(step.at - at[i])) for i in hits]
    place = np.mean([s.at_low <= at[i] <= s.at_high for i, s in zip(hits, nearest, strict=True)])
    # Places are discrete: more than the nominal 95 % where the step is large is unavoidable.
    assert place > 0.95 - 3.5 * math.sqrt(0.95 * 0.05 / len(hits))
    covered = np.mean([s.size_low <= size <= s.size_high for s in nearest])
    assert near(covered, 0.945, len(hits), slack=0.01, errors=3.5)
    more = np.mean([len(results[i].steps) > 1 for i in hits])
    assert more < 0.055 + 3.5 * math.sqrt(0.05 * 0.95 / len(hits))


def test_smallest_step_is_found_in_four_of_five():
    rng = np.random.default_rng(13)
    for n in (10, 20, 60):
        x = rng.standard_normal((2500, n))
        x[:20] /= x[:20].std(axis=1, ddof=1, keepdims=True)
        found = find_steps_of(panel_of(x))[:20]
        for name, at in (("smallest_middle", n // 2), ("smallest_end", n - 2)):
            size = np.mean([getattr(result, name) for result in found])
            stepped = x + size * ((np.arange(n) >= at) & (np.arange(2500) >= 500)[:, None])
            power = np.mean([one.p <= 0.05 for one in find_steps_of(panel_of(stepped))[500:]])
            assert 0.74 < power < 0.93, (n, at)


# Software or environment


@pytest.mark.parametrize("truth", ["software", "environment", "none"])
def test_attribution_of_steps(truth):
    # Two or three validations of each of eight versions; old ones run again at the end.
    rng = np.random.default_rng(14)
    series, version, date, value = [], [], [], []
    for i in range(150):
        runs = np.repeat(np.arange(8), rng.integers(2, 4, 8))
        day = np.arange(len(runs)) * 7.0
        rerun = rng.integers(0, 4, 4)
        runs, day = np.append(runs, rerun), np.append(day, day[-1] + 1 + np.arange(4))
        moved = {"software": runs >= 4, "environment": day >= 60, "none": day < 0}[truth]
        series += [i] * len(runs)
        version += runs.tolist()
        date += day.tolist()
        value += (0.02 * rng.standard_normal(len(runs)) + 0.12 * moved).tolist()
    attributions = attribute_steps(series, version, date, value, machine=series)
    if truth == "none":
        assert len(
            {attribution.series for attribution in attributions}
        ) < 0.05 * 150 + 3.5 * math.sqrt(0.05 * 0.95 * 150)
        return
    wrong = {"software": "environment", "environment": "software"}[truth]
    verdicts = [attribution.verdict for attribution in attributions]
    # Old versions that run again after a step of the software are steps, too: back and forth.
    assert verdicts.count(truth) > 0.6 * len(attributions)
    assert verdicts.count(wrong) <= 0.05 * len(attributions)
