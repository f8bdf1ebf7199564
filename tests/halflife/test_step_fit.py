"""Tests of what is said of steps, series by series from the definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special

from errcomp.halflife.panel import Panel
from errcomp.halflife.steps import find_steps, find_steps_of, steps_in
from errcomp.halflife.steps.null import autocorrelations
from errcomp.halflife.steps.scan import Batch, Cuts, by_length, levels_of, winsorised
from errcomp.halflife.steps.search import search

# Batches


def test_batch_takes_series_and_stretches():
    starts = np.array([0, 3, 8, 10])
    x = np.arange(10.0)
    sd = np.array([2.0] * 3 + [1.0, 1.0, 2.0, 2.0, 2.0] + [3.0, 3.0])
    batch = Batch.of(x, sd, starts, np.array([0.0, 4.0, np.inf]))
    assert batch.sizes.tolist() == [3, 5, 2]
    # Weights are 1 in the mean, the variance at weight 1 is the harmonic mean.
    assert batch.weight[:3].tolist() == [1, 1, 1]
    assert batch.weight[3:8] == pytest.approx(np.array([4, 4, 1, 1, 1]) * 5 / 11)
    assert batch.given == pytest.approx([0, 20 / 11, 9])
    some = batch.take(np.array([2, 1]))
    assert some.x.tolist() == [8, 9, 3, 4, 5, 6, 7]
    assert (some.starts.tolist(), some.df.tolist()) == ([0, 2, 7], [np.inf, 4])
    values, weight = batch.stretches(np.array([0, 1]), np.array([0, 3]), 2)
    assert values.tolist() == [[0, 1], [6, 7]]
    assert weight.shape == (2, 2)
    # One row of weights does where all are alike.
    assert batch.stretches(np.array([0, 2]), np.array([1, 0]), 2)[1].tolist() == [[1, 1]]


def test_levels_of_series_with_and_without_cuts():
    x = np.array([1.0, 3.0, 5.0, 5.0, 8.0, 2.0, 4.0, 0.0, 1.0, 9.0, 11.0])
    batch = Batch.of(x, np.ones(11), np.array([0, 5, 7, 11]), np.zeros(3))
    cuts = Cuts.joined(
        [
            Cuts(np.array([2]), np.array([2]), np.ones(1), np.ones(1)),
            Cuts(np.zeros(2, int), np.array([4, 2]), np.zeros(2), np.zeros(2)),
        ]
    )
    assert (cuts.series.tolist(), cuts.at.tolist()) == ([0, 0, 2], [2, 4, 2])
    levels = levels_of(batch, cuts)
    assert levels.edges.tolist() == [0, 2, 4, 5, 7, 9, 11]
    assert levels.mean.tolist() == [2, 5, 8, 3, 0.5, 10]
    assert levels.squares.tolist() == [2, 0, 0, 2, 0.5, 2]
    assert levels.segments.tolist() == [3, 1, 2]
    assert levels.left.tolist() == [0, 1, 4]
    assert levels.total.tolist() == [2, 2, 2.5]


def test_by_length():
    positions = {length: which.tolist() for length, which in by_length(np.array([4, 2, 4, 9]))}
    assert positions == {2: [1], 4: [0, 2], 9: [3]}
    assert list(by_length(np.zeros(0, int))) == []


# Steps from their definition


def quantile(part, freedom, share):
    size, error, chance = (np.asarray(column, dtype=float) for column in part)

    def beyond(x):
        return chance @ special.stdtr(freedom, (x - size) / error) / chance.sum() - share

    ends = size + error * special.stdtrit(freedom, share)
    return optimize.brentq(beyond, ends.min() - 1e-9, ends.max() + 1e-9, xtol=1e-13)


@pytest.fixture
def noise(monkeypatch):
    """Return a function that sets the autocorrelation of every series."""

    def set_to(rho):
        def known(batch, clusters):
            chance = np.isclose(autocorrelations(), rho)
            return batch._replace(correlated=np.tile(chance * 1.0, (len(batch.given), 1)))

        monkeypatch.setattr("errcomp.halflife.steps.learned", known)

    return set_to


def covariance(contrast, rho):
    """Variance of a sum of weighted values of variance 1."""
    apart = np.abs(np.subtract.outer(np.arange(len(contrast)), np.arange(len(contrast))))
    return contrast @ (rho**apart * 1.0) @ contrast


def of_mean(a, b, n):
    """Weights of the mean of the values a to b of n."""
    return ((np.arange(n) >= a) & (np.arange(n) < b)) / (b - a)


def by_definition(x, weight, given, df, steps, m, rho=0.0):
    """Places and sizes of steps, one by one."""
    n, edges = len(x), [0, *(step.at for step in steps), len(x)]

    def squares(values, a, b):
        mean = np.average(values[a:b], weights=weight[a:b])
        return float((weight[a:b] * (values[a:b] - mean) ** 2).sum())

    expected = sum(
        (b - a) * (1 - covariance(of_mean(a, b, n), rho)) for a, b in itertools.pairwise(edges)
    )
    factor = (n - len(steps) - 1) / expected
    for i, step in enumerate(steps):
        a, b = edges[i], edges[i + 2]
        robust = x.copy()
        spread = 1 / np.sqrt(weight[None, a:b])
        robust[a:b] = winsorised(x[None, a:b], spread, np.array([[2, 2]]))[0]
        rest = sum(
            squares(x, *edges[k : k + 2]) for k in range(len(steps) + 1) if k not in (i, i + 1)
        )
        places = range(a + m, b - m + 1)
        left = [squares(robust, a, k) + squares(robust, k, b) for k in places]
        freedom = df + n - len(steps) - 1
        if math.isinf(df):
            log = -0.5 * np.array(left) / given
        else:
            log = -0.5 * freedom * np.log(df * given + factor * (rest + np.array(left)))
        log *= (1 - rho) / (1 + rho)
        chances = np.exp(log - log.max())
        chances /= chances.sum()
        order = np.argsort(-chances)
        inside = order[: int((np.cumsum(chances[order]) < 0.95).sum()) + 1]
        part = []
        for k in places:
            gap = np.average(x[k:b], weights=weight[k:b]) - np.average(x[a:k], weights=weight[a:k])
            own = squares(x, a, k) + squares(x, k, b)
            variance = given if math.isinf(df) else (df * given + factor * (rest + own)) / freedom
            swing = covariance(of_mean(k, b, n) - of_mean(a, k, n), rho)
            swing /= 1 / (k - a) + 1 / (b - k)
            error = math.sqrt(variance * swing * (1 / weight[a:k].sum() + 1 / weight[k:b].sum()))
            part.append((gap, error))
        size, error = np.array(part).T
        ends = [quantile((size, error, chances), freedom, share) for share in (0.025, 0.975)]
        yield step, places[int(np.argmin(left))], places[inside.min()], places[inside.max()], ends


def searched(rows, sds, df, m):
    """Search series of one length together; their noise is unknown without degrees of freedom."""
    s, n = np.shape(rows)
    sd = np.ravel(sds) if df else np.ones(s * n)
    names = list(map(str, range(n)))
    version = np.tile(np.arange(n), s)
    starts = np.arange(s + 1) * n
    return steps_in(np.ravel(rows), sd, starts, np.full(s, df), names, version, 0.05, m)


@pytest.mark.parametrize(
    ("df", "rho"),
    [
        (0.0, 0.0),
        (6.0, 0.3),
        (np.inf, 0.0),
        # Each df and each rho is in one of the cases above.
        pytest.param(0.0, 0.3, marks=pytest.mark.slow),
        pytest.param(6.0, 0.0, marks=pytest.mark.slow),
        pytest.param(np.inf, 0.3, marks=pytest.mark.slow),
    ],
)
def test_places_and_sizes_by_definition(noise, df, rho):
    noise(rho)
    rng = np.random.default_rng(2)
    count = 0
    for n, m in ((9, 2), (24, 2), (24, 3), (40, 2)):
        rows, sds = np.empty((2, 8, n))
        for i in range(8):
            sds[i] = 0.1 * np.exp(rng.uniform(-0.5, 0.5, n)) if df else np.full(n, 0.1)
            jumps = np.cumsum(rng.choice([-0.4, 0, 0.4], n) * (rng.random(n) < 0.2))
            rows[i] = jumps + sds[i] * rng.standard_normal(n)
        for x, sd, found in zip(rows, sds, searched(rows, sds, df, m), strict=True):
            steps = found.steps
            given = 1 / np.mean(sd**-2.0)
            for step, at, low, high, ends in by_definition(
                x, given / sd**2, given, df, steps, m, rho
            ):
                count += 1
                assert step.at_low == low
                assert step.at_high == high
                # Neighbours that moved later may have left a cut a little off its best place.
                assert low <= at <= high
                assert len(steps) > 1 or step.at == at
                width = ends[1] - ends[0]
                # Places of less than 1 in 10,000 are left out; correlation makes more of them.
                width *= 1 + 2 * (rho > 0)
                assert step.size_low == pytest.approx(ends[0], abs=2e-3 * width)
                assert step.size_high == pytest.approx(ends[1], abs=2e-3 * width)
    assert count > 20


def test_a_cut_moves_again_once_its_neighbour_has(noise):
    noise(0.0)
    # The search cuts at 2 and 5; with the second at 8 the best place of the first is 5, no more 2.
    x = np.array([-0.1, -0.1, 0.1, 0.1, 0.1, 1.5, 0.7, 0.8, 1.4, 1.4, 2.1, 1.7, 2.0, 2.1])
    *_, cuts = search(Batch.of(x, np.ones(14), np.array([0, 14]), np.zeros(1)), 0.05, 2)
    assert cuts.at.tolist() == [2, 5]
    assert [step.at for step in find_steps(x).steps] == [5, 8]


@pytest.mark.slow
def test_parts_are_tested_at_their_share_of_alpha(noise):
    noise(0.0)
    rng = np.random.default_rng(6)
    between = 0
    for _ in range(200):
        x = rng.standard_normal(20) + 8 * (np.arange(20) >= 10)
        *_, cuts = search(Batch.of(x, np.ones(20), np.array([0, 20]), np.zeros(1)), 0.05, 2)
        if cuts.at.tolist() == [10]:
            p = [find_steps(part).p for part in (x[:10], x[10:])]
            assert min(p) > 0.025
            between += min(p) < 0.05
    assert between > 3


# Many series


def ragged(rng, count):
    """Series of many lengths with steps, outliers, ties, none at all; noise known of some."""
    rows, sds, dfs = [], [], []
    for i in range(count):
        n = int(rng.integers(1, 41))
        sd = 0.1 * np.exp(rng.uniform(-1, 1, n)) if i % 3 else np.full(n, 0.1)
        x = np.cumsum(rng.choice([-0.8, 0, 0.5], n) * (rng.random(n) < 0.2))
        kind = i % 5
        x += {0: 0.0, 1: sd}.get(kind, 0.1) * rng.standard_normal(n)
        if kind == 2:
            x[rng.integers(n)] += 5.0
        if kind == 3:
            x = np.round(x, 1)
        if i % 7 == 0:
            sd[rng.integers(n)] = np.nan
        rows.append(x)
        sds.append(sd)
        dfs.append([0.0, 4.0, np.inf][rng.integers(3)])
    return rows, sds, dfs


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "min_segment"), [(0.05, 2), (0.3, 3)])
def test_all_at_once_agree_with_each_alone(noise, alpha, min_segment):
    noise(0.0)
    rows, sds, dfs = ragged(np.random.default_rng(3), 120)
    sizes = [len(row) for row in rows]
    panel = Panel(
        versions=tuple(map(str, range(40))),
        months=np.arange(40.0),
        names=tuple(map(str, range(120))),
        clusters=np.arange(120),
        starts=np.append(0, np.cumsum(sizes)),
        version=np.concatenate([np.arange(n) for n in sizes]),
        error=np.concatenate(rows),
        sd=np.concatenate(sds),
        noise_df=np.array(dfs),
        frozen_at_first=False,
    )
    together = find_steps_of(panel, alpha=alpha, min_segment=min_segment)
    assert len(together) == 120
    several = 0
    for row, sd, df, joint in zip(rows, sds, dfs, together, strict=True):
        known = df > 0 and bool(np.isfinite(sd).all())
        noise = {"sd": sd, "df": df} if known else {}
        alone = find_steps(row, alpha=alpha, min_segment=min_segment, **noise)
        assert (joint.refused, joint.noise_ratio is None) == (
            alone.refused,
            alone.noise_ratio is None,
        )
        assert joint.notes == alone.notes
        assert [s.versions for s in joint.steps] == [s.versions for s in alone.steps]
        for name in ("p", "sd", "noise_ratio", "smallest_middle", "smallest_end"):
            figure, other = getattr(joint, name), getattr(alone, name)
            assert figure == other or figure == pytest.approx(other, rel=1e-9, abs=1e-12)
        for ours, theirs in zip(joint.steps, alone.steps, strict=True):
            document, other = ours.to_dict(), theirs.to_dict()
            plain = [key for key, value in document.items() if not isinstance(value, float)]
            assert [document.pop(key) for key in plain] == [other.pop(key) for key in plain]
            assert document == pytest.approx(other, rel=1e-9, abs=1e-12)
        several += len(joint.steps) > 1
    assert several > 10
