"""How often each check fires: on clean pairs (false alarms) and on pairs with its problem (power).

Tolerances are three standard errors of the binomial share of the simulations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.caveats import CHECKS, _report, check, check_table, quantile_caveat
from errcomp.caveats._case import Case
from errcomp.caveats._statistics import out_of_sample_factor
from errcomp.caveats.comparisons import in_vs_out_of_distribution
from errcomp.caveats.sample import _one_way, affine, units
from errcomp.caveats.shape import aggregation_matters, tail
from errcomp.tables import Pairs

pytestmark = pytest.mark.slow
Rng = np.random.Generator
RATE = 0.05


def allowed(rate: float, runs: int) -> float:
    """Largest share that a true rate of at most this gives, up to three standard errors."""
    return rate + 3 * float(np.sqrt(rate * (1 - rate) / runs))


def table(rng: Rng, n: int, error: np.ndarray, **columns: Any) -> Pairs:
    """Pairs with these signed relative errors and keys that have nothing to do with them."""
    measured = columns.pop("measured", rng.lognormal(0, 1, n))
    keys = {
        "device": rng.choice(["A", "B", "C", "D"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "model": rng.choice(list("uvwxyz"), n),
        "variant": rng.choice(["base", "fusion"], n, p=[0.8, 0.2]),
        "mode": rng.choice(["inference", "training"], n),
        "in_training": rng.random(n) < 0.5,
        "batch": rng.integers(1, 9, n),
        "seq_len": np.arange(n),
    }
    return Pairs({"predicted": measured * (1 + error), "measured": measured, **keys, **columns})


def gaussian(rng: Rng, n: int) -> Pairs:
    return table(rng, n, 0.1 * rng.standard_normal(n))


def skewed(rng: Rng, n: int) -> Pairs:
    """Errors of either sign whose size is log-normal: heavy, but the same for all groups."""
    return table(rng, n, rng.choice([-1, 1], n) * 0.05 * rng.lognormal(0, 0.8, n))


def rates(make: Callable[[Rng, int], Pairs], n: int, runs: int) -> tuple[dict[str, float], float]:
    """Share of runs in which each check fires on its own, and in which anything is reported."""
    alone: Counter[str] = Counter()
    anything = 0
    for seed in range(runs):
        case = Case(make(np.random.default_rng([n, seed]), n), seed=seed)
        found = [one.function(case) for one in CHECKS if one.scope == "pairs"]
        applied = [f for f in found if f is not None]
        alone.update(f.caveat.code for f in applied if f.caveat and (f.p or 0) <= RATE)
        anything += bool(_report(applied, 1 - RATE))
    return {code: count / runs for code, count in alone.items()}, anything / runs


@pytest.mark.parametrize(("n", "runs"), [(12, 300), (40, 300), (146, 100), (700, 80)])
def test_clean_pairs_get_a_false_caveat_in_at_most_5_percent(n: int, runs: int) -> None:
    alone, anything = rates(gaussian, n, runs)
    assert anything <= allowed(RATE, runs)
    for code, rate in alone.items():
        assert rate <= allowed(RATE, runs), code


#: Errors without any problem, of other shapes than normal.
USUAL: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "uniform": lambda rng, n: rng.uniform(-0.2, 0.2, n),
    "log-normal": lambda rng, n: np.expm1(0.2 * rng.standard_normal(n)),
    "logistic": lambda rng, n: 0.06 * rng.logistic(size=n),
    "Laplace": lambda rng, n: 0.08 * rng.laplace(size=n),
    "t": lambda rng, n: 0.08 * rng.standard_t(5, n),
}


@pytest.mark.parametrize("shape", USUAL)
def test_errors_of_a_usual_shape_get_a_tested_caveat_in_at_most_5_percent(shape: str) -> None:
    runs, sizes, tested = 30, (12, 60, 1000), 0
    checks = [one for one in CHECKS if one.scope == "pairs"]
    for n in sizes:
        for seed in range(runs):
            rng = np.random.default_rng([41, n, seed])
            case = Case(table(rng, n, USUAL[shape](rng, n)), seed=seed)
            found = [f for one in checks if (f := one.function(case)) is not None]
            # A fact has a threshold, and no rate at which clean pairs reach it.
            tested += any("p_value" in one.evidence for one in _report(found, 1 - RATE))
    assert tested / (runs * len(sizes)) <= allowed(RATE, runs * len(sizes))


@pytest.mark.parametrize("shape", [*USUAL, "normal"])
@pytest.mark.parametrize(("n", "runs"), [(15, 100), (150, 40), (2000, 100)])
def test_a_shape_that_is_usual_is_no_tail(shape: str, n: int, runs: int) -> None:
    draw = {**USUAL, "normal": SIZES["normal"]}[shape]
    alone: Counter[str] = Counter()
    for seed in range(runs):
        rng = np.random.default_rng([42, n, seed])
        measured = rng.lognormal(0, 1, n)
        error = np.abs(draw(rng, n)) / 10
        case = Case(Pairs({"predicted": measured * (1 + error), "measured": measured}), seed=seed)
        for check_of in (tail, aggregation_matters):
            found = check_of(case)
            alone[check_of.__name__] += found is not None and (found.p or 0) <= RATE
    for name, count in alone.items():
        assert count / runs <= allowed(RATE, runs), name


@pytest.mark.parametrize(("n", "least"), [(60, 0.35), (400, 0.7), (1500, 0.8)])
@pytest.mark.parametrize(("share", "times"), [(0.1, 5), (0.03, 10)])
def test_a_few_per_cent_of_larger_errors_are_a_tail(
    n: int, least: float, share: float, times: float
) -> None:
    runs, hits = 30, 0
    for seed in range(runs):
        rng = np.random.default_rng([43, n, seed])
        error = 0.02 * np.abs(rng.standard_normal(n)) * np.where(rng.random(n) < share, times, 1)
        found = tail(Case(Pairs({"predicted": 1 + error, "measured": np.ones(n)}), seed=seed))
        hits += found is not None and (found.p or 0) <= RATE
    assert hits / runs >= least - 2 * float(np.sqrt(least * (1 - least) / runs))


#: Errors of pairs in the same unit, or in two: of usual shapes and of a heavy one.
SCATTER: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "Laplace": lambda rng, n: rng.laplace(0, 0.7, n),
    "t": lambda rng, n: 0.58 * rng.standard_t(3, n),
}


def scaled(rng: Rng, n: int, factor: float, scatter: float, law: str) -> Case:
    measured = rng.lognormal(0, 1, n)
    ratio = factor * np.exp(scatter * SCATTER[law](rng, n))
    return Case(Pairs({"predicted": measured * ratio, "measured": measured}))


@pytest.mark.parametrize("law", SCATTER)
@pytest.mark.parametrize("n", [5, 50])
@pytest.mark.parametrize("factor", [1 / 3, 3.0])
def test_a_biased_predictor_is_not_said_to_have_another_unit(
    law: str, n: int, factor: float
) -> None:
    runs, named = 60, 0
    for seed in range(runs):
        for scatter in (0.1, 0.3):
            case = scaled(np.random.default_rng([44, n, seed]), n, factor, scatter, law)
            named += units(case) is not None or affine(case) is not None
    assert named / (2 * runs) <= 0.01


@pytest.mark.parametrize("law", SCATTER)
@pytest.mark.parametrize("scatter", [0.05, 0.2, 0.6])
@pytest.mark.parametrize(
    ("factor", "unit"),
    [(1e3, "µs beside ms"), (1e-3, "µs beside ms"), (1.41e9, "GHz"), (1 / 1.41e6, "GHz")],
)
def test_pairs_in_two_units_are_found_and_named(
    factor: float, unit: str, scatter: float, law: str
) -> None:
    runs, named = 20, 0
    for seed in range(runs):
        n = (8, 40)[seed % 2]
        found = units(scaled(np.random.default_rng([45, n, seed]), n, factor, scatter, law))
        if found is not None and found.caveat is not None:
            named += any(unit in one for one in found.caveat.evidence["units"])
    assert named >= runs - 1


def test_a_line_is_found_where_each_pair_has_an_overhead_and_only_there() -> None:
    runs, true, false, off = 50, 0, 0, []
    for seed in range(runs):
        rng = np.random.default_rng([46, seed])
        seconds, noise = rng.lognormal(0, 1.2, 40), np.exp(0.1 * rng.standard_normal(40))
        columns = {"predicted": 1.41e9 * seconds, "measured": (1.5 + seconds) * noise}
        found = affine(Case(Pairs(columns)))
        if found is not None and found.caveat is not None:
            true += 1
            # What is quoted is the error on new pairs.
            new = rng.lognormal(0, 1.2, 2000)
            truth = (1.5 + new) * np.exp(0.1 * rng.standard_normal(2000))
            e = found.caveat.evidence
            after = np.abs((e["intercept"] + e["slope"] * 1.41e9 * new) / truth - 1).mean()
            off.append(e["mape_after"] / after)
        factor = {"predicted": 1.41e9 * seconds * noise**3, "measured": seconds}
        false += affine(Case(Pairs(factor))) is not None
    assert true / runs >= 0.9
    assert false == 0
    assert np.mean(off) == pytest.approx(1, abs=4 * np.std(off) / np.sqrt(len(off)))


@pytest.mark.parametrize(("n", "runs"), [(20, 200), (100, 80)])
def test_heavy_errors_do_not_set_off_the_checks_of_groups(n: int, runs: int) -> None:
    alone, _ = rates(skewed, n, runs)
    shape = {"tail", "aggregation-matters", "under-over-asymmetry"}  # what heavy errors do have
    for code, rate in alone.items():
        assert code in shape or rate <= allowed(RATE, runs), code


def with_variants(rng: Rng) -> Pairs:
    n = 40
    fused = np.arange(n) % 2 == 1
    error = rng.standard_normal(n) * np.where(fused, 0.25, 0.05)
    return table(
        rng, n, error, variant=np.where(fused, "fusion", "base"), seq_len=np.arange(n) // 2,
        device=["A"] * n, model=["m"] * n, mode=["inference"] * n, batch=[1] * n,
    )  # fmt: skip


def with_unmatched_variants(rng: Rng) -> Pairs:
    n = 60
    distributed = np.arange(n) < 12
    error = rng.standard_normal(n) * np.where(distributed, 0.3, 0.05)
    return table(rng, n, error, devices=np.where(distributed, 4, 1), variant=["base"] * n)


def with_training_set(rng: Rng) -> Pairs:
    n = 60
    inside = np.arange(n) % 2 == 0
    return table(rng, n, rng.standard_normal(n) * np.where(inside, 0.05, 0.15), in_training=inside)


def with_unbalanced_groups(rng: Rng) -> Pairs:
    device = np.repeat(["A", "B", "C"], [60, 8, 8])
    error = rng.standard_normal(76) * np.where(device == "A", 0.03, 0.15)
    return table(rng, 76, error, device=device)


def with_clusters(rng: Rng) -> Pairs:
    model = np.repeat(list("abcdefgh"), 8)
    error = rng.choice([-1, 1], 64) * np.repeat(0.1 * rng.lognormal(0, 0.8, 8), 8)
    return table(rng, 64, error * rng.lognormal(0, 0.3, 64), model=model)


def with_tail(rng: Rng) -> Pairs:
    error = 0.05 * rng.standard_normal(60)
    error[:2] = [0.8, 1.2]
    return table(rng, 60, error)


def with_one_sign(rng: Rng) -> Pairs:
    return table(rng, 25, 0.1 + 0.06 * rng.standard_normal(25))


def with_averages_apart(rng: Rng) -> Pairs:
    return table(rng, 50, rng.choice([-1, 1], 50) * 0.03 * rng.lognormal(0, 1.8, 50))


def with_small_quantities(rng: Rng) -> Pairs:
    measured = rng.lognormal(0, 2, 40)
    error = 0.05 * rng.standard_normal(40) / np.sqrt(measured)
    return table(rng, 40, error, measured=measured)


def with_groups_that_cancel(rng: Rng) -> Pairs:
    model = np.repeat(list("uvwxyz"), 10)
    error = np.repeat([0.2, -0.2, 0.15, -0.15, 0.1, -0.1], 10) + 0.08 * rng.standard_normal(60)
    return table(rng, 60, error, model=model, measured=rng.lognormal(0, 0.3, 60))


def with_duplicates(rng: Rng) -> Pairs:
    pairs = gaussian(rng, 30)
    return pairs.take(np.array([*range(30), 3, 3, 7]))


def with_failures(rng: Rng) -> Pairs:
    measured = rng.lognormal(0, 1, 40)
    status = ["out of memory"] * 3 + ["ok"] * 37
    return Pairs({"predicted": measured, "measured": measured, "status": status})


def with_asymmetry(rng: Rng) -> Pairs:
    return table(rng, 30, -0.4 + 0.1 * rng.random(30))


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("pooled-variants", with_variants),
        ("pooled-variants", with_unmatched_variants),
        ("in-vs-out-of-distribution", with_training_set),
        ("unbalanced-groups", with_unbalanced_groups),
        ("clustered", with_clusters),
        ("tail", with_tail),
        ("one-sided", with_one_sign),
        ("aggregation-matters", with_averages_apart),
        ("small-quantities", with_small_quantities),
        ("cancelling-errors", with_groups_that_cancel),
        ("duplicated-configurations", with_duplicates),
        ("failures", with_failures),
        ("under-over-asymmetry", with_asymmetry),
        ("few-configurations", lambda rng: gaussian(rng, 9)),
    ],
)
def test_each_check_finds_its_problem(code: str, make: Callable[[Rng], Pairs]) -> None:
    runs = 60
    hits = sum(
        code in {c.code for c in check(make(np.random.default_rng(seed)))} for seed in range(runs)
    )
    assert hits / runs >= 0.9


#: Errors of groups that do not differ, with lighter and heavier tails.
SIZES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "log-normal": lambda rng, n: rng.lognormal(0, 1, n),
    "t": lambda rng, n: rng.standard_t(2.5, n),
}


@pytest.mark.parametrize("n", [600, 3000])
@pytest.mark.parametrize("tail", SIZES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_clusters_of_unequal_size_do_not_make_heavy_tails_look_alike(
    n: int, tail: str, share: float
) -> None:
    runs, groups, false = 400, 12, 0
    weights = [share, *[(1 - share) / (groups - 1)] * (groups - 1)]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        size = SIZES[tail](rng, n)
        codes = np.unique(rng.choice(groups, n, p=weights), return_inverse=True)[1]
        case = Case(Pairs({"predicted": 1 + 0.05 * np.abs(size), "measured": np.ones(n)}))
        false += _one_way(case, codes, case.moments(codes))[3] <= RATE
    assert false / runs <= allowed(RATE, runs)


def two_tools(rng: Rng, first: np.ndarray, second: np.ndarray, **keys: Any) -> Pairs:
    error = np.concatenate([first, second])
    return Pairs(
        {
            "predicted": 1 + error,
            "measured": np.ones(len(error)),
            "tool": ["first"] * len(first) + ["second"] * len(second),
            **keys,
        }
    )


def test_simpsons_paradox_is_rare_without_it_and_found_with_it() -> None:
    runs, false, true = 300, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        device = np.concatenate([np.repeat(["A", "B"], n) for n in ([30, 10], [10, 30])]).tolist()
        noise = np.abs(rng.standard_normal(80))
        # Without: the first tool is better by a fifth, and the groups are equally hard.
        clean = two_tools(rng, 0.08 * noise[:40], 0.1 * noise[40:], device=device)
        false += "simpsons-paradox" in {c.code for c in check_table(clean)}
        # With: it is better by a third, and was run mostly where it is hard.
        hard = np.where(np.asarray(device) == "A", 0.3, 0.03)
        mixed = two_tools(rng, (hard * noise)[:40] / 1.5, (hard * noise)[40:], device=device)
        true += "simpsons-paradox" in {c.code for c in check_table(mixed)}
    assert false / runs <= allowed(RATE, runs)
    assert true / runs >= 0.6


def biased_but_alike(rng: Rng, n: int) -> Pairs:
    return table(rng, n, 0.04 + 0.1 * rng.standard_normal(n))


@pytest.mark.parametrize("make", [gaussian, skewed, biased_but_alike])
@pytest.mark.parametrize("n", [40, 146, 700])
def test_groups_that_err_alike_are_not_said_to_cancel(make: Callable[..., Pairs], n: int) -> None:
    runs = 200
    cancel = next(c for c in CHECKS if c.code == "cancelling-errors" and c.scope == "pairs")
    fired = 0
    for seed in range(runs):
        found = cancel.function(Case(make(np.random.default_rng([n, seed]), n)))
        fired += found is not None and found.caveat is not None and (found.p or 0) <= RATE
    assert fired / runs <= allowed(RATE, runs)


def test_a_ranking_by_total_is_rarely_doubted_without_a_better_tool() -> None:
    runs, false, true = 200, 0, 0
    batch = [*range(30), *range(30)]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        equal = two_tools(rng, *(0.1 * rng.standard_normal((2, 30))), batch=batch)
        false += "cancelling-errors" in {c.code for c in check_table(equal)}
        biased = 0.06 + 0.02 * rng.standard_normal(30)
        spread = 0.15 * rng.standard_normal(30)
        other = two_tools(rng, biased, spread - spread.mean(), batch=batch)
        true += "cancelling-errors" in {c.code for c in check_table(other)}
    assert false / runs <= allowed(RATE, runs)
    assert true / runs >= 0.8


def test_the_ranking_check_is_rarely_wrong_and_finds_a_reversal() -> None:
    runs, false, true = 200, 0, 0
    batch = [*range(30), *range(30)]
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        equal = 0.1 * rng.standard_normal((2, 30))
        false += "under-over-asymmetry" in {
            c.code for c in check_table(two_tools(rng, *equal, batch=batch))
        }
        low = -0.5 + 0.05 * rng.standard_normal(30)
        high = 0.6 + 0.05 * rng.standard_normal(30)
        true += "under-over-asymmetry" in {
            c.code for c in check_table(two_tools(rng, low, high, batch=batch))
        }
    assert false / runs <= allowed(RATE, runs)
    assert true / runs >= 0.95


@pytest.mark.parametrize(("inside", "outside"), [(20, 20), (10, 40), (60, 30)])
def test_the_interval_between_in_and_out_covers(inside: int, outside: int) -> None:
    # Log-normal errors, sigma 0.6: Welch's interval reaches at least 90 % of its nominal 95 %.
    runs, covered = 600, 0
    spread = np.exp(0.18)  # mean of a log-normal with sigma 0.6
    for seed in range(runs):
        rng = np.random.default_rng([inside, seed])
        errors = np.concatenate([rng.lognormal(0, 0.6, inside), 2 * rng.lognormal(0, 0.6, outside)])
        n = inside + outside
        pairs = Pairs(
            {
                "predicted": 1 + 0.05 * errors,
                "measured": np.ones(n),
                "in_training": [True] * inside + [False] * outside,
            }
        )
        found = in_vs_out_of_distribution(Case(pairs))
        if found is None or found.caveat is None:  # figures too close to mention: not quoted
            continue
        evidence = found.caveat.evidence
        covered += evidence["difference_low"] <= 0.05 * spread <= evidence["difference_high"]
    assert covered / runs >= 0.90


def test_the_tolerance_statement_of_the_tail_holds() -> None:
    # 19 times in 20, the share of the population below the largest of n is 0.05 ** (1 / n) or more.
    n, runs = 30, 4000
    largest = np.random.default_rng(0).random((runs, n)).max(axis=1)
    holds = (largest >= 0.05 ** (1 / n)).mean()
    assert abs(holds - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / runs)


def test_the_distribution_free_bound_of_a_quantile_holds() -> None:
    runs, held = 1000, 0
    for seed in range(runs):
        found = quantile_caveat(np.random.default_rng(seed).random(50), 0.9 + 0.09)
        assert found is not None
        held += found.evidence["low"] <= 0.99
    assert held / runs >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)


def test_the_effective_number_is_that_of_the_variance_of_the_mean() -> None:
    # Groups of unequal size with a common effect: the variance of the mean over many samples.
    sizes = np.array([12, 9, 8, 6, 6, 5, 5, 4, 3, 2])
    codes = np.repeat(np.arange(10), sizes)
    means, effects = [], []
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        errors = 10 + rng.standard_normal(10)[codes] + rng.standard_normal(60)
        means.append(errors.mean())
        case = Case(Pairs({"predicted": 1 + errors, "measured": np.ones(60)}))
        if seed < 300:
            case.permutations = np.arange(60, dtype=np.int16)[None, :]  # no test is needed here
            effects.append(_one_way(case, codes, case.moments(codes))[2])
    expected = np.var(means) / (2 / 60)
    # What is expected is itself a variance of 1,500 means.
    assert np.mean(effects) == pytest.approx(expected, rel=4 * np.sqrt(2 / 1500))


def test_the_gain_of_a_factor_is_that_on_new_pairs() -> None:
    quoted, real, inside = [], [], []
    for seed in range(800):
        rng = np.random.default_rng(seed)
        ratio, new = rng.lognormal(0.2, 0.3, (2, 9))
        quoted.append(out_of_sample_factor(ratio, np.ones(9))[1])
        real.append(np.abs(new / np.median(ratio) - 1).mean())
        inside.append(np.abs(ratio / np.median(ratio) - 1).mean())
    error = np.std(np.asarray(quoted) - np.asarray(real)) / np.sqrt(800)
    # One pair fewer in each fit: never better than the truth by more than chance.
    assert np.mean(quoted) >= np.mean(real) - 3 * error
    assert np.mean(quoted) == pytest.approx(np.mean(real), rel=0.06)
    assert np.mean(inside) < np.mean(real) - 3 * error
