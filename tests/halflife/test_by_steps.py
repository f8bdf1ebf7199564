"""Tests of half-lives from the rate and the sizes of steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.halflife.drift import fit_variogram
from errcomp.halflife.estimators.by_steps import (
    _crossing,
    _inside,
    _repeated,
    steps_half_life,
)
from errcomp.halflife.fitting import half_life
from errcomp.halflife.panel import Panel
from errcomp.halflife.steps import find_steps_of
from errcomp.halflife.steps.rates import Rates
from errcomp.tables import History


def panel_of(true, noise=0.01, seed=0, *, frozen=True, clusters=None):
    n, m = true.shape
    error = true + noise * np.random.default_rng(seed).standard_normal((n, m))
    if frozen:
        error = error - error[:, :1]
    return Panel(
        versions=tuple(map(str, range(m))),
        months=2.0 * np.arange(m),
        names=tuple(map(str, range(n))),
        clusters=np.arange(n) if clusters is None else clusters,
        starts=m * np.arange(n + 1),
        version=np.tile(np.arange(m), n),
        error=error.ravel(),
        sd=np.full(n * m, noise),
        noise_df=np.full(n, np.inf),
        frozen_at_first=frozen,
    )


def stepping(n=60, m=24, rate=0.1, size=0.3, seed=1):
    rng = np.random.default_rng(seed)
    moved = np.where(rng.random((n, m)) < rate, rng.normal(0, size, (n, m)), 0.0)
    moved[:, 0] = 0
    return moved.cumsum(axis=1)


def found(panel, threshold=0.1, clock="releases", **options):
    steps, fit = find_steps_of(panel), fit_variogram(panel, clock)
    return steps_half_life(panel, threshold, clock, steps, fit, **options)


@pytest.fixture
def few_draws(monkeypatch):
    """For tests that do not ask how wide the interval is."""
    monkeypatch.setattr("errcomp.halflife.estimators.by_steps._DRAWS", 20)


def test_the_half_life_of_steps_that_all_exceed_the_threshold():
    # Then it is that of the first step: ln 2 over the rate.
    rng = np.random.default_rng(3)
    moved = np.where(rng.random((200, 30)) < 0.05, rng.choice([-0.5, 0.5], (200, 30)), 0.0)
    moved[:, 0] = 0
    result = found(panel_of(moved.cumsum(axis=1)))
    assert result.method == "steps"
    assert result.half_life == pytest.approx(math.log(2) / 0.05, abs=2)
    assert result.low < result.half_life < result.high
    assert result.half_life == int(result.half_life)
    # Left out are those in which the noise, or many steps, hide a step of the threshold.
    assert 150 < result.n_series == 200 - result.details["left_out"]


def test_months_are_those_of_the_versions(few_draws):
    panel = panel_of(stepping())
    releases, months = found(panel), found(panel, clock="months")
    assert months.unit == "months"
    assert months.half_life == pytest.approx(2 * releases.half_life, abs=2)
    assert months.half_life != int(months.half_life)


def test_the_share_inside_is_that_of_simulated_walks():
    rng = np.random.default_rng(0)
    sizes = rng.normal(0, 0.8, 50)
    inside = _inside(sizes, np.full((1, 50), 1 / 50), np.array([4.0]), np.array([0.3, -0.2]), 64)[0]
    walks = np.tile([0.3, -0.2], 20_000)
    left = np.ones(len(walks), bool)
    shares = [1.0]
    # 200 times a mean of 0.02 steps each.
    for _ in range(200):
        for _ in range(2):
            here = rng.random(len(walks)) < 0.01
            walks = walks + np.where(here, rng.choice(sizes, len(walks)), 0.0)
            left &= np.abs(walks) < 1
        shares.append(left.mean())
    assert np.abs(inside - shares).max() < 0.01


def test_series_differ_in_their_rates(few_draws):
    # Half of the series step often and half never: fewer leave than at the mean rate.
    rng = np.random.default_rng(4)
    moved = np.where(rng.random((100, 24)) < 0.1, 0.5, 0.0)
    moved[:, 0] = 0
    alike = found(panel_of(moved.cumsum(axis=1)))
    some = np.where(rng.random((100, 24)) < 0.2, 0.5, 0.0)
    some[::2], some[:, 0] = 0, 0
    differ = found(panel_of(some.cumsum(axis=1)))
    assert differ.half_life > 1.3 * alike.half_life


def test_steps_at_the_same_releases_say_less():
    rng = np.random.default_rng(5)
    often = np.where(rng.random((1, 24)) < 0.25, 0.4, 0.02)
    together = np.where(rng.random((80, 24)) < often, rng.normal(0, 0.4, (80, 24)), 0.0)
    alone = np.where(rng.random((80, 24)) < often.mean(), rng.normal(0, 0.4, (80, 24)), 0.0)
    widths = []
    for moved in (together, alone):
        moved[:, 0] = 0
        result = found(panel_of(moved.cumsum(axis=1)))
        widths.append(math.log(result.high / result.low))
    assert widths[0] > 1.5 * widths[1]


def test_how_much_steps_repeat_each_other():
    def repeated(at, cluster, sizes):
        n = len(at)
        rates = Rates(
            series=np.arange(10), sizes=np.asarray(sizes, float), at=np.asarray(at),
            cluster=np.asarray(cluster), series_of=np.zeros(n, int), spans=np.full(10, 20.0),
            cluster_of=np.arange(10), exposure=np.ones((10, 20)),
        )  # fmt: skip
        return _repeated(rates, rates.sizes)

    # Twenty steps at twenty releases, and ten at each of two.
    each, ten = np.arange(20), np.arange(20) % 10
    assert repeated(each, ten, np.ones(20)) == 1.0
    # Each of two releases has 10 - 1 too many, the others 1 too few: 18 * 1 + 2 * 81, over 20.
    assert repeated(each // 10, ten, np.ones(20)) == pytest.approx(180 / 20 * 20 / 19)
    # Steps of a cluster at a release are one: here all.
    assert repeated(each // 10, each // 10, np.ones(20)) == pytest.approx(
        180 / 200 * 20 / 19, abs=0.1
    )
    # Small steps everywhere, and the large ones at one release.
    sizes = np.where(each < 4, 1.0, 0.01)
    assert repeated(np.where(each < 4, 0, each), ten, sizes) > 3


def test_series_of_a_cluster_say_as_much_as_one():
    true = stepping(n=20)
    panel = panel_of(np.repeat(true, 3, axis=0))
    clusters = np.repeat(np.arange(20), 3)
    one = panel_of(true)
    apart, together, once = (
        found(given)
        for given in (panel, panel_of(np.repeat(true, 3, axis=0), clusters=clusters), one)
    )
    widths = [math.log(result.high / result.low) for result in (apart, together, once)]
    assert widths[1] > 1.2 * widths[0]
    assert 0.5 * widths[2] < widths[1] < 2 * widths[2]


def test_only_steps_from_within_the_threshold_count():
    true = np.zeros((40, 24))
    # Out at 6 and back at 12: the way back is no step from within.
    true[:20, 6:12] = 0.5
    panel = panel_of(true)
    steps = find_steps_of(panel)
    every = Rates.of(panel, "releases", steps, 0.1)
    inside = Rates.of(panel, "releases", steps, 0.1, inside=True)
    assert (np.abs(every.sizes) > 0.4).sum() == 40
    assert (np.abs(inside.sizes) > 0.4).sum() == 20
    # All ways back, and a false step outside.
    assert len(every.sizes) - len(inside.sizes) in (20, 21)
    # Six of 23 intervals are spent outside; a step in the first or the last is never found.
    assert inside.spans[:20] == pytest.approx(21 / 23 * 17, abs=0.01)
    assert np.median(inside.spans[20:]) == pytest.approx(21)
    assert np.median(every.spans[:20]) == pytest.approx(21 - 2)
    assert inside.exposure.sum() == pytest.approx(inside.spans.sum())
    assert every.exposure.sum() == pytest.approx(every.spans.sum())
    large = inside.series_of[np.abs(inside.sizes) > 0.4]
    assert large.tolist() == list(range(20))


def test_an_endless_half_life():
    true = np.zeros((200, 24))
    for i in range(10):
        true[i, 2 + 2 * i :] = 0.5
    result = found(panel_of(true))
    assert result.half_life == math.inf
    assert result.high == math.inf
    assert 24 < result.low <= 4 * 23
    assert result.censored_share == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("true", "noise", "reason"),
    [
        (
            np.zeros((30, 24)),
            0.01,
            "too few steps begin within the limit: 8 at 4 releases are needed, the history has",
        ),
        (stepping(), 0.3, "noise hides steps as large as the threshold"),
        (
            stepping(n=30, m=3),
            0.01,
            "could be searched for steps: at least 4 values are needed (2 before and 2 after a "
            "step), the series has 3.",
        ),
        (
            0.03 * np.random.default_rng(0).standard_normal((40, 24)).cumsum(axis=1),
            0.002,
            "many small changes, not a few steps",
        ),
    ],
)
def test_where_it_is_refused(true, noise, reason):
    result = found(panel_of(true, noise))
    assert result.half_life is result.low is result.high is None
    assert any(part in result.refused for part in reason.split("|"))


def test_all_series_beyond_the_threshold_at_first():
    panel = panel_of(stepping() + 1.0, frozen=False)
    assert found(panel).refused == "no series was within its threshold at its first version."


def test_few_clusters_with_a_step():
    true = np.zeros((40, 24))
    for i in range(20):
        true[i, 5 + 3 * (i % 5) :] = 0.3
    result = found(panel_of(true, clusters=np.arange(40) // 20))
    assert result.refused == ("too few series, or clusters of series, have a step: 1 (at least 3).")


def test_errors_at_the_first_version_count():
    panel = panel_of(stepping(), frozen=False)
    rates = Rates.of(panel, "releases", find_steps_of(panel), 0.2, inside=True)
    one, sizes = np.ones((1, rates.n_clusters)), rates.sizes / 0.2
    times = [
        _crossing(rates, sizes, np.array([start, -start]), 100.0, 64, one)[0]
        for start in (0.0, 0.5, 0.95)
    ]
    assert times == sorted(times, reverse=True)
    assert times[2] < 0.95 * times[0]


def test_the_same_seed_gives_the_same_interval(monkeypatch):
    monkeypatch.setattr("errcomp.halflife.estimators.by_steps._DRAWS", 40)
    panel = panel_of(stepping(n=30))
    known = panel, 0.1, "releases", find_steps_of(panel), fit_variogram(panel, "releases")
    first, again, other = (steps_half_life(*known, seed=seed) for seed in (1, 1, 2))
    assert (first.low, first.high) == (again.low, again.high)
    assert first.half_life == other.half_life
    narrow = steps_half_life(*known, level=0.5)
    assert first.low <= narrow.low <= narrow.high <= first.high
    with pytest.raises(InputError, match="level"):
        steps_half_life(*known, level=1.5)


def test_the_grid_hardly_matters():
    panel = panel_of(stepping())
    rates = Rates.of(panel, "releases", find_steps_of(panel), 0.1, inside=True)
    one = np.ones((1, rates.n_clusters))
    fine, coarse = (
        _crossing(rates, rates.sizes / 0.1, np.zeros(1), 100.0, points, one)[0]
        for points in (64, 16)
    )
    assert coarse == pytest.approx(fine, rel=0.03)


def test_half_lives_list_it(few_draws):
    panel = panel_of(stepping(n=30))
    rows = {"version": [], "op": [], "measured": []}
    for i, errors in enumerate(panel.error.reshape(30, 24)):
        rows["version"] += [f"1.{k}" for k in range(24)]
        rows["op"] += [f"op{i}"] * 24
        rows["measured"] += np.exp(-errors).tolist()
    result = half_life(History(rows), error=0.05)
    estimate = result.groups[0].estimate("steps", "releases")
    assert estimate is not None
    assert estimate.half_life is not None
    report = result.view()
    assert "Median survival by steps: " in report.verdicts[0].text
    table = report.tables[0]
    [column] = [one for one in table.columns if one.header == "Median survival by steps"]
    assert column.value(table.rows[0]) is estimate
