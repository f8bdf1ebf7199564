"""Do intervals of held-out figures cover in clusters, and do scores and weights find what is true?

Truths are closed forms or large samples of the same law; tolerances three binomial (or Monte
Carlo) standard errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from errcomp.calibration.design import LEVELS, QUANTILES
from errcomp.calibration.evaluation.held_out import HeldOut, difference, figure_of, mean_in_clusters
from errcomp.calibration.evaluation.judging import judge
from errcomp.calibration.evaluation.scoring import (
    _best_weights,
    abstention_curve,
    crps_from_quantiles,
    grid_weights,
    pinball,
    pit_from_quantiles,
    stack_weights,
)

Z, TAILS = stats.norm.ppf(QUANTILES), stats.norm.ppf((1 + np.array(LEVELS)) / 2)
SIGMA = 0.1
REPS = 300


def noise(share, reps=REPS):
    return 3 * float(np.sqrt(share * (1 - share) / reps))


def held_out(log_error, device, model, sd=SIGMA):
    """Predictions with these log errors, and the bands of a normal law of this spread."""
    n = len(log_error)
    predicted = np.exp(log_error)
    sd = np.broadcast_to(np.asarray(sd, dtype=float), n)[:, None]
    return HeldOut(
        run=np.arange(n).astype(str).astype(object),
        group=model,
        device=device,
        model=model,
        measured=np.ones(n),
        total=np.ones(n),
        predicted=predicted,
        low=predicted[:, None] * np.exp(-sd * TAILS),
        high=predicted[:, None] * np.exp(sd * TAILS),
        quantiles=predicted[:, None] * np.exp(sd * Z),
        calibrated=np.ones(n, dtype=bool),
    )


def crossed(rng, devices, models, share_device, share_model, *, per=3):
    """Log errors of runs on some of the cells, of spread SIGMA, alike within devices and models."""
    device = np.repeat(np.arange(devices), models * per)
    model = np.tile(np.repeat(np.arange(models), per), devices)
    # As in real tables not every model fits on every device, but every one is there.
    there = (rng.random(len(device)) < 0.6) | ((device + model) % max(devices, models) == 0)
    there |= (device == 0) | (model == 0)
    device, model = device[there], model[there]
    x = (
        np.sqrt(share_device) * rng.standard_normal(devices)[device]
        + np.sqrt(share_model) * rng.standard_normal(models)[model]
        + np.sqrt(1 - share_device - share_model) * rng.standard_normal(len(device))
    )
    return SIGMA * x, device.astype(object), model.astype(object)


def mean_ape_of(sigma):
    # E|exp(σZ) - 1| for normal Z.
    return float(np.exp(sigma**2 / 2) * (2 * special.ndtr(sigma) - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "share", "claim"), [(5, 0.0, 0.93), (5, 0.3, 0.92), (8, 0.3, 0.92), (5, 0.7, 0.87)]
)
def test_mean_ape_of_few_groups(models, share, claim):
    rng, hits, wide = np.random.default_rng([1, models, int(10 * share)]), 0, []
    truth = mean_ape_of(SIGMA)
    for _ in range(REPS):
        held = held_out(*crossed(rng, 4, models, 0.0, share))
        one = figure_of("mape", held, {"model": held.model}, 0)
        hits += one.low <= truth <= one.high
        wide.append(one.high / truth)
    assert claim - noise(claim) <= hits / REPS <= 0.99 + noise(0.99)
    # And it says something: nine in ten upper ends are within six times the truth.
    assert np.quantile(wide, 0.9) < 6


@pytest.mark.slow
@pytest.mark.parametrize(("device", "model"), [(0.0, 0.4), (0.4, 0.0), (0.3, 0.3)])
def test_the_wider_interval_covers_new_models_on_new_devices(device, model):
    rng = np.random.default_rng([2, int(10 * device), int(10 * model)])
    covered = np.zeros(3)
    inside = 0.9
    for _ in range(REPS):
        held = held_out(*crossed(rng, 8, 5, device, model))
        row = judge(
            held,
            split="leave-model-and-device-out",
            estimator="x",
            others={},
            refused=0,
            seed=0,
        )
        one, band = row.figures["mean_ape"], row.band(0.9)
        covered += [
            one.low <= mean_ape_of(SIGMA) <= one.high,
            band.coverage_low <= inside <= band.coverage_high,
            row.figures["bias"].low <= np.expm1(SIGMA**2 / 2) <= row.figures["bias"].high,
        ]
    assert (covered / REPS >= 0.92 - noise(0.92)).all()


@pytest.mark.slow
def test_one_clustering_alone_is_too_narrow_for_both():
    rng, hits = np.random.default_rng(3), 0
    for _ in range(REPS):
        held = held_out(*crossed(rng, 8, 5, 0.0, 0.4))
        one = figure_of("mape", held, {"device": held.device}, 0)
        hits += one.low <= mean_ape_of(SIGMA) <= one.high
    assert hits / REPS < 0.92


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_an_estimator_that_is_no_better_seldom_beats_the_other(share):
    rng, outcomes = np.random.default_rng([4, int(10 * share)]), []
    reps = 600
    for _ in range(reps):
        first, device, model = crossed(rng, 4, 6, 0.0, share)
        effect = SIGMA * np.sqrt(share) * rng.standard_normal(6)[model.astype(int)]
        second = effect + SIGMA * np.sqrt(1 - share) * rng.standard_normal(len(first))
        found = difference(
            held_out(first, device, model),
            held_out(second, device, model),
            split="leave-model-out",
            estimator="a",
            against="b",
        )
        outcomes.append(found.outcome)
    for wrong in ("better", "worse"):
        assert outcomes.count(wrong) / reps <= 0.04 + noise(0.04, reps)


@pytest.mark.slow
def test_an_estimator_with_half_the_error_is_found_to_be_better():
    rng, found = np.random.default_rng(5), 0
    for _ in range(100):
        error, device, model = crossed(rng, 4, 6, 0.0, 0.3)
        other = held_out(2 * error, device, model)
        one = difference(
            held_out(error, device, model),
            other,
            split="leave-model-out",
            estimator="a",
            against="b",
        )
        found += one.outcome == "better"
    assert found >= 90


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "share"), [(5, 0.0), (5, 0.5), (12, 0.5)])
def test_mean_of_differences_of_either_sign(groups, share):
    rng, hits = np.random.default_rng([6, groups, int(10 * share)]), 0
    for _ in range(2 * REPS):
        code = np.repeat(np.arange(groups), rng.integers(4, 20, size=groups))
        x = np.sqrt(share) * rng.standard_normal(groups)[code]
        x = 0.3 + x + np.sqrt(1 - share) * rng.standard_normal(len(code))
        one = mean_in_clusters(x, {"model": code.astype(object)}, figure="d")
        hits += one.low <= 0.3 <= one.high
    assert 0.92 - noise(0.92, 2 * REPS) <= hits / (2 * REPS) <= 0.98 + noise(0.98, 2 * REPS)


@pytest.mark.slow
def test_pit_of_the_true_law_is_uniform_and_of_others_not():
    rng = np.random.default_rng(7)
    n = 4000
    y, center = rng.standard_normal(n), rng.standard_normal(n)
    for spread, uniform in ((1.0, True), (0.6, False), (1.6, False)):
        quantiles = center[:, None] + spread * Z
        pit = pit_from_quantiles(quantiles, center + y, QUANTILES)
        counts = np.histogram(pit, bins=10, range=(0, 1))[0]
        assert (stats.chisquare(counts).pvalue > 1e-3) == uniform


@pytest.mark.slow
def test_the_true_law_has_the_smallest_crps():
    rng = np.random.default_rng(8)
    y = rng.standard_normal(20_000)

    def crps(shift, spread):
        quantiles = np.tile(shift + spread * Z, (len(y), 1))
        return crps_from_quantiles(quantiles, y, QUANTILES)

    truth = crps(0.0, 1.0)
    # E|Y - Y'| / 2 of the standard normal law.
    assert truth.mean() == pytest.approx(1 / np.sqrt(np.pi), rel=0.02)
    for shift, spread in ((0.2, 1.0), (0.0, 0.7), (0.0, 1.4)):
        worse = crps(shift, spread) - truth
        assert worse.mean() > 3 * worse.std() / np.sqrt(len(y))


@pytest.mark.slow
def test_abstention_gains_where_the_width_knows_the_error_and_not_where_it_does_not():
    rng = np.random.default_rng(9)
    n, reps = 90, 400
    gains = {"informative": [], "not": []}
    for _ in range(reps):
        sd = 0.05 * np.exp(0.8 * rng.standard_normal(n))
        error = np.abs(sd * rng.standard_normal(n))
        for name, width in (("informative", sd), ("not", rng.permutation(sd))):
            curve = abstention_curve(error, width)
            gains[name].append(1 - curve.at(0.8) / curve.at(1.0))
    mean = {name: np.mean(found) for name, found in gains.items()}
    error_of_mean = np.std(gains["not"]) / np.sqrt(reps)
    assert abs(mean["not"]) < 3 * error_of_mean
    # 80 % with the smallest spread: Φ(z₀.₈ - 0.8) / 0.8 of the mean error.
    expected = 1 - stats.norm.cdf(stats.norm.ppf(0.8) - 0.8) / 0.8
    assert mean["informative"] == pytest.approx(expected, abs=0.02)


# -- stacking: (spread between groups, spread between runs, spread that the member claims)

WORLDS = {
    "equal": [(0.03, 0.03, 0.06), (0.03, 0.03, 0.06)],
    "overconfident": [(0.03, 0.03, 0.06), (0.03, 0.03, 0.015)],
    "somewhat better": [(0.025, 0.025, 0.05), (0.035, 0.035, 0.06)],
    "twice as good": [(0.02, 0.02, 0.05), (0.06, 0.06, 0.09)],
    "useless": [(0.01, 0.01, 0.04), (0.2, 0.2, 0.3)],
    "four": [(0.02, 0.02, 0.05), (0.03, 0.03, 0.06), (0.06, 0.06, 0.09), (0.06, 0.06, 0.09)],
}


def world(rng, groups, members, per=11):
    """Quantiles of members for runs of groups not in their fits; the truth has heavy tails."""
    code = np.repeat(np.arange(groups), per)
    n = len(code)
    quantiles = [
        between * rng.standard_normal(groups)[code][:, None]
        + within * rng.standard_normal(n)[:, None]
        + claimed * Z
        for between, within, claimed in members
    ]
    return np.stack(quantiles), 0.03 * rng.standard_t(3, size=n), code


def expected_loss(weights, members):
    quantiles, y, _ = world(np.random.default_rng(99), 300, members, per=5)
    average = np.tensordot(weights, quantiles, axes=1)
    return float((pinball(average, y, QUANTILES) @ grid_weights(QUANTILES)).mean())


@pytest.mark.slow
@pytest.mark.parametrize("groups", [3, 8])
@pytest.mark.parametrize("name", WORLDS)
def test_the_stack_is_about_as_good_as_equal_weights_and_the_best_member(name, groups):
    members, rng = WORLDS[name], np.random.default_rng([10, groups, len(name)])
    alone = np.eye(len(members))
    equal = expected_loss(np.full(len(members), 1 / len(members)), members)
    best = min(expected_loss(one, members) for one in alone)
    found = [expected_loss(stack_weights(*world(rng, groups, members)), members) for _ in range(10)]
    loss, error = np.mean(found), np.std(found) / np.sqrt(len(found))
    assert loss - 3 * error <= 1.02 * equal
    assert loss - 3 * error <= 1.04 * best


@pytest.mark.slow
def test_shrinkage_helps_where_members_are_equal():
    rng, members = np.random.default_rng(11), WORLDS["equal"]
    gain = []
    for _ in range(25):
        quantiles, y, groups = world(rng, 4, members)
        apart = quantiles - y[:, None]
        plain = expected_loss(_best_weights(apart, list(QUANTILES)), members)
        gain.append(plain - expected_loss(stack_weights(quantiles, y, groups), members))
    assert np.mean(gain) > 0


@pytest.mark.slow
def test_the_better_member_is_found():
    rng = np.random.default_rng(12)
    weights = [stack_weights(*world(rng, 8, WORLDS["twice as good"]))[0] for _ in range(20)]
    assert np.mean(weights) > 0.85
    equal = [stack_weights(*world(rng, 8, WORLDS["equal"]))[0] for _ in range(20)]
    assert abs(np.mean(equal) - 0.5) < 3 * np.std(equal) / np.sqrt(20) + 1e-9
