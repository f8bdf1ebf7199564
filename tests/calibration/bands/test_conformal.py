"""Conformal bands by hand: quantiles of scores in groups, bands, categories, files, bad input.

Coverage is simulated in tests/statistical.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from errcomp.calibration.bands import (
    groups_needed,
    hierarchical_quantile,
    intraclass_correlation,
    pooled_needed,
    pooled_quantile,
)
from errcomp.calibration.bands.conformal import GroupConformal, cv_plus, split_conformal
from errcomp.calibration.design import LEVELS
from errcomp.errors import InputError

Z = stats.norm.ppf(0.5 + np.array(LEVELS) / 2)


def calibration(groups, size, *, seed=0, share=0.5, scale=1.0):
    """Quantiles of a normal model and truths with a share of variance between groups."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), size)
    error = np.sqrt(share) * rng.standard_normal(groups)[group]
    error += np.sqrt(1 - share) * rng.standard_normal(len(group))
    median = rng.standard_normal(len(group))
    y = median + 0.1 * scale * error
    return median, median[:, None] - 0.1 * Z, median[:, None] + 0.1 * Z, y, group


def fitted(groups=8, size=6, **options):
    method = options.pop("method", "auto")
    return GroupConformal(method=method).fit(*calibration(groups, size, **options))


# Quantiles of scores


@pytest.mark.parametrize(
    ("level", "needed"), [(0.5, 1), (0.75, 3), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)]
)
def test_groups_needed_for_a_guarantee(level, needed):
    assert groups_needed(level) == needed
    scores = np.arange(1.0, needed + 1)
    assert hierarchical_quantile(scores, np.arange(needed), level) == needed
    if needed > 1:
        assert hierarchical_quantile(scores[1:], np.arange(needed - 1), level) == math.inf


def test_a_group_weighs_as_much_as_another():
    # Three groups: 9 rows of score 1, one of 2, one of 3. Rows would put the median at 1.
    scores, group = np.array([1.0] * 9 + [2.0, 3.0]), np.array([0] * 9 + [1, 2])
    assert hierarchical_quantile(scores, group, 0.5) == 2.0
    assert hierarchical_quantile(scores, np.arange(11), 0.5) == 1.0


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_single_rows_give_split_conformal_between_its_order_statistics(level):
    rng = np.random.default_rng(3)
    scores = np.sort(rng.random(30))
    found = pooled_quantile(scores, np.arange(30), level)
    place = 31 * level
    by_hand = np.interp(place, np.arange(1, 31), scores)
    assert found.value == pytest.approx(by_hand)
    assert (found.effective, found.beyond) == (30, False)


def test_equal_rows_of_a_group_count_once():
    found = pooled_quantile(np.repeat(np.arange(1.0, 10.0), 5), np.repeat(np.arange(9), 5), 0.9)
    assert found.correlation == pytest.approx(1)
    assert found.effective == pytest.approx(9)
    # Nine of them reach 9 / 10.
    assert found.value == pytest.approx(9.0)


def test_rows_that_are_not_alike_count_each():
    # Each group has the same scores: less alike than by chance.
    found = pooled_quantile(np.tile(np.arange(1.0, 10.0), 5), np.repeat(np.arange(5), 9), 0.9)
    assert (found.correlation, found.effective) == (0, 45)


def test_beyond_the_largest_score_follows_the_tail():
    found = pooled_quantile(np.arange(1.0, 5.0), np.arange(4), 0.95)
    ratio = stats.t.ppf(0.975, 3) / stats.t.ppf(0.9, 3)
    assert found.beyond
    assert found.value == pytest.approx(4 * ratio)
    at_the_edge = pooled_quantile(np.arange(1.0, 5.0), np.arange(4), 0.8)
    assert (at_the_edge.value, at_the_edge.beyond) == (4.0, False)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_intraclass_correlation_recovers_a_planted_one(share):
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(400), rng.integers(1, 11, 400))
    x = np.sqrt(share) * rng.standard_normal(400)[group]
    x += np.sqrt(1 - share) * rng.standard_normal(len(group))
    # A monotone change of the scores is none of their ranks.
    assert intraclass_correlation(np.exp(3 * x), group) == pytest.approx(share, abs=0.05)


def test_intraclass_correlation_where_nothing_can_be_seen():
    assert intraclass_correlation(np.arange(3.0), np.arange(3)) == 1
    assert intraclass_correlation(np.ones(6), np.repeat(np.arange(3), 2)) == 1


def test_pooled_needed():
    assert [pooled_needed(level) for level in (0.5, 0.9, 0.95, 0.99)] == [3, 3, 3, 19]


# Bands


def test_the_factor_is_the_quantile_of_how_much_bands_had_to_grow():
    y = np.arange(1.0, 10.0)  # below by 1 half-width, 2, ...
    median, low, high = np.zeros(9), np.full((9, 1), -7.0), np.full((9, 1), 1.0)
    found = GroupConformal([0.5], "group").fit(median, low, high, y, np.arange(9))
    assert found.factors_.tolist() == [5.0]
    lower, upper = found.apply([0.0], [[-7.0]], [[1.0]])
    assert (lower.tolist(), upper.tolist()) == ([[-35.0]], [[5.0]])
    mirrored = GroupConformal([0.5], "group").fit(median, low, high, -7 * y, np.arange(9))
    assert mirrored.factors_.tolist() == [5.0]


def test_calibrated_bands_of_the_calibration_runs_hold_their_level():
    data = calibration(30, 10, seed=1)
    for method in ("group", "pooled"):
        low, high = GroupConformal(method=method).fit(*data).apply(*data[:3])
        inside = ((low <= data[3][:, None]) & (data[3][:, None] <= high)).mean(axis=0)
        np.testing.assert_allclose(inside, LEVELS, atol=0.06)


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_a_band_wrong_by_a_factor_ends_the_same(wrong):
    median, low, high, y, group = calibration(8, 6)
    ends = []
    for c in (1.0, wrong):
        a, b = median[:, None] - c * (median[:, None] - low), None
        b = median[:, None] + c * (high - median[:, None])
        found = GroupConformal().fit(median, a, b, y, group)
        ends.append(found.apply(median, a, b))
    np.testing.assert_allclose(ends[0], ends[1])


def test_units_shift_and_order_of_rows_do_not_matter():
    median, low, high, y, group = calibration(8, 6)
    factors = GroupConformal().fit(median, low, high, y, group).factors_
    moved = GroupConformal().fit(*(1e3 * v + 5 for v in (median, low, high, y)), group)
    np.testing.assert_allclose(moved.factors_, factors)
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"gpu {g}" for g in group])
    mixed = GroupConformal().fit(*(v[order] for v in (median, low, high, y)), names[order])
    np.testing.assert_allclose(mixed.factors_, factors)


def test_bands_stay_nested_where_factors_fall():
    # Truths far outside the narrow band and just inside the wide one.
    n = 40
    median, y = np.zeros(n), np.linspace(1.0, 2.0, n)
    low, high = np.tile([-0.1, -10.0], (n, 1)), np.tile([0.1, 10.0], (n, 1))
    found = GroupConformal([0.5, 0.9]).fit(median, low, high, y, np.arange(n))
    assert found.factors_[1] < 0.3 < 10 < found.factors_[0]
    lower, upper = found.apply([0.0], [[-1.0, -1.1]], [[1.0, 1.1]])
    assert lower[0, 1] <= lower[0, 0] < 0 < upper[0, 0] <= upper[0, 1]
    assert upper[0, 0] == upper[0, 1] == pytest.approx(found.factors_[0])


def test_a_perfect_model_keeps_a_width():
    n = 40
    median = np.zeros(n)
    ends = np.full((n, 1), 1.0)
    found = GroupConformal([0.5]).fit(median, -ends, ends, median, np.arange(n))
    assert found.factors_.tolist() == [0.01]


def test_a_side_without_width_counts_as_a_twentieth_of_the_band():
    n = 9
    median, y = np.zeros(n), np.full(n, -0.2)
    found = GroupConformal([0.5]).fit(median, np.zeros((n, 1)), np.ones((n, 1)), y, np.arange(n))
    assert found.factors_[0] == pytest.approx(0.2 / 0.05)
    lower, upper = found.apply([1.0], [[1.0]], [[2.0]])
    assert (lower[0, 0], upper[0, 0]) == pytest.approx((1 - 0.2, 1 + 4))


def test_a_large_factor_widens_no_band_beyond_the_errors():
    """The bands of a fit without one group were far too narrow; those of the whole fit are not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(6), 10)
    y = rng.normal(0, 0.1, 60)
    own = np.where(groups < 5, 0.1, 1e-6)[:, None]
    found = GroupConformal([0.9]).fit(np.zeros(60), -own, own, y, groups)
    info = found.info_[0]
    assert info.factor > 1000
    assert 0.3 < info.most < 1.5
    own = np.array([[0.05], [1e-6], [2.0]])
    _, high = found.apply([0.0] * 3, -own, own)
    # The last one is five times its estimator's own.
    np.testing.assert_allclose(high[:, 0], [info.most, info.factor * 1e-6, 10.0])
    again = GroupConformal.from_meta(json.loads(json.dumps(found.to_meta())))
    np.testing.assert_array_equal(again.apply([0.0] * 3, -own, own)[1], high)


def test_a_guarantee_has_no_such_end():
    rng = np.random.default_rng(0)
    y, own = rng.normal(0, 1, 40), np.full((40, 1), 1e-3)
    found = GroupConformal([0.5]).fit(np.zeros(40), -own, own, y, np.arange(40))
    assert (found.info_[0].method, found.info_[0].most) == ("group", None)
    _, high = found.apply([0.0], [[-1.0]], [[1.0]])
    assert high[0, 0] == found.factors_[0] > 100


def test_files_of_earlier_versions_have_no_such_end():
    found = fitted()
    meta = json.loads(json.dumps(found.to_meta()))
    for info in meta["info"]:
        assert info.pop("most") > 0
    again = GroupConformal.from_meta(meta)
    assert [info.most for info in again.info_] == [None] * len(again.info_)


# Methods


@pytest.mark.parametrize(
    ("groups", "methods"),
    [
        (8, ["pooled"] * 4),
        (10, ["group", "pooled", "pooled", "pooled"]),
        (16, ["group", "group", "pooled", "pooled"]),
        (18, ["group", "group", "group", "pooled"]),
        (19, ["group"] * 4),
    ],
)
def test_auto_takes_the_guarantee_where_it_costs_little(groups, methods):
    found = fitted(groups, 4)
    assert [info.method for info in found.info_] == methods
    assert [info.groups_needed for info in found.info_] == [1, 4, 9, 19]
    assert all(
        info.guarantee.startswith("the band contains at least")
        for info in found.info_
        if info.method == "group"
    )
    assert all(info.guarantee.startswith("none") for info in found.info_ if info.method == "pooled")
    pooled = [note for note in found.notes if "approximate" in note]
    assert bool(pooled) == ("pooled" in methods)


def test_auto_is_one_of_the_two():
    data = calibration(17, 5)
    auto, group, pooled = (
        GroupConformal([0.5, 0.8, 0.9], method)
        .fit(*data[:1], *(v[:, :3] for v in data[1:3]), *data[3:])
        .factors_
        for method in ("auto", "group", "pooled")
    )
    assert auto.tolist() == [*group[:2], pooled[2]]


def test_what_a_factor_rests_on():
    found = fitted(4, 5, share=0.9, seed=1)
    info = found.info_[3]
    assert (info.level, info.n, info.groups, info.groups_needed) == (0.95, 20, 4, 19)
    assert 4 <= info.effective < 20
    assert 0 < info.correlation <= 1
    assert info.beyond
    assert found.factors_[3] == info.factor
    assert "9 for 90 %, 19 for 95 %. With few groups, guaranteed" in found.notes[0]
    assert "95 % reach beyond all errors of the held-out runs" in found.notes[1]
    exact = fitted(20, 5).info_[3]
    assert (exact.correlation, exact.effective, exact.beyond) == (None, None, False)


def test_too_few_groups_for_a_guarantee_names_the_smallest_number():
    with pytest.raises(
        InputError,
        match=r"8 groups are too few .* needed: 9 for the 90 % band, 19 for the 95 % band\.",
    ):
        fitted(8, 6, method="group")
    assert fitted(19, 2, method="group").factors_.shape == (4,)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("method", ["auto", "pooled"])
def test_too_few_groups_for_anything(groups, method):
    with pytest.raises(InputError, match=f"at least 3 groups, got {groups}"):
        fitted(groups, 30, method=method)


def test_a_level_too_far_out_is_refused_with_what_it_needs():
    data = calibration(4, 1)
    ends = [v[:, :1] for v in data[1:3]]
    with pytest.raises(
        InputError,
        match="99 % band needs the equivalent of 19 independent runs.*4 runs from 4 groups",
    ):
        GroupConformal([0.99]).fit(data[0], *ends, *data[3:])


# Categories


def mixed(groups=20, size=6):
    """Two categories, the second with errors three times as large."""
    median, low, high, y, group = calibration(groups, size, share=0.3)
    category = np.where(np.arange(len(y)) % 2 == 0, "inference", "training")
    y = np.where(category == "training", median + 3 * (y - median), y)
    return (median, low, high, y, group), category


def test_each_category_has_factors_of_its_own():
    data, category = mixed()
    found = GroupConformal().fit(*data, category=category)
    factors = {name: [i.factor for i in infos] for name, infos in found.categories_.items()}
    assert set(factors) == {"inference", "training"}
    ratio = np.array(factors["training"]) / np.array(factors["inference"])
    assert (ratio > 1.8).all()
    _, high = found.apply(
        [0.0] * 3,
        -np.tile(Z, (3, 1)),
        np.tile(Z, (3, 1)),
        category=["inference", "training", "unknown"],
    )
    for row, expected in zip(high, (*factors.values(), found.factors_), strict=True):
        np.testing.assert_allclose(row, np.maximum.accumulate(np.array(expected) * Z))


def test_where_a_category_has_too_little_all_share_factors_and_this_is_said():
    data, category = mixed(6, 8)
    category[data[4] > 3] = "inference"  # training is left in four groups
    found = GroupConformal(method="pooled").fit(*data, category=category)
    assert found.categories_ == {}
    (note,) = [
        note for note in found.notes if note.startswith("all categories share the same bands")
    ]
    assert note.endswith(
        "need at least 19 runs and at least 5 groups in each category, got training (16 runs in 4 "
        "groups)"
    )
    _, high = found.apply([0.0], [-Z], [Z], category=["training"])
    np.testing.assert_allclose(high[0], np.maximum.accumulate(found.factors_ * Z))


@pytest.mark.parametrize("method", ["auto", "group"])
def test_a_category_needs_the_groups_of_a_guarantee(method):
    data, category = mixed(20, 6)
    category[data[4] < 3] = ""
    found = GroupConformal(method=method).fit(*data, category=category)
    assert found.categories_ == {}
    short = "got (unknown) (18 runs in 3 groups), inference (51 runs in 17 groups)"
    needed = "need at least 19 runs and at least 19 groups in each category"
    assert f"{needed}, {short}" in found.notes[-1]


def test_category_must_be_given_where_it_was_fitted_and_only_there():
    data, category = mixed()
    with pytest.raises(InputError, match="fit was called with category"):
        GroupConformal().fit(*data, category=category).apply(*data[:3])
    with pytest.raises(InputError, match="fit was called without category"):
        GroupConformal().fit(*data).apply(*data[:3], category=category)


def test_fitting_again_forgets():
    data, category = mixed()
    found = GroupConformal().fit(*data, category=category).fit(*data)
    assert found.categories_ == {}
    assert found.apply(*data[:3])[0].shape == (120, 4)


# Files


def test_meta_goes_through_json_and_back():
    data, category = mixed()
    for found, options in (
        (GroupConformal().fit(*data), {}),
        (GroupConformal().fit(*data, category=category), {"category": category}),
    ):
        again = GroupConformal.from_meta(json.loads(json.dumps(found.to_meta())))
        assert again.info_ == found.info_
        assert again.categories_ == found.categories_
        assert again.notes == found.notes
        assert again.to_meta() == found.to_meta()
        before, after = (b.apply(*data[:3], **options) for b in (found, again))
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, "1", True, None])
def test_a_stored_factor_must_be_finite_and_positive(value):
    meta = fitted().to_meta()
    meta["info"][2]["factor"] = value
    with pytest.raises(InputError, match=r"info of level 0\.9, factor must be"):
        GroupConformal.from_meta(meta)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("levels", [0.5, 0.9], "list of 2 records"),
        ("levels", 0.5, "levels must be a list"),
        ("levels", [0.5, 0.9, 0.8, 0.95], "ascending"),
        ("levels", [0.4, 0.8, 0.9, 0.95], "of the levels"),
        ("method", "magic", "method must be one of"),
        ("info", [], "list of 4 records"),
        ("info", "abcd", "list of 4 records"),
        ("by_category", 1, "by_category must be true or false"),
        ("categories", [], "categories a mapping"),
        ("categories", {"x": [1, 2, 3, 4]}, r"category x of level 0\.5 must be a record"),
        ("notes", [1], "notes must be a list of texts"),
    ],
)
def test_a_changed_file_is_refused(key, value, message):
    meta = fitted().to_meta()
    meta[key] = value
    with pytest.raises(InputError, match=message):
        GroupConformal.from_meta(meta)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("method", "magic", "method must be group or pooled"),
        ("beyond", 0, "beyond must be true or false"),
        ("n", 0, "n must be a whole number"),
        ("groups", 2.5, "groups must be a whole number"),
        ("correlation", -1, "correlation must be a number from 0"),
        ("guarantee", 3, "guarantee must be a list of texts"),
    ],
)
def test_a_changed_record_is_refused(key, value, message):
    meta = fitted().to_meta()
    meta["info"][0][key] = value
    with pytest.raises(InputError, match=message):
        GroupConformal.from_meta(meta)


def test_a_file_with_other_keys_is_refused():
    with pytest.raises(
        InputError,
        match=r"exactly the keys by_category, .*levels, .*; missing: [^;]*info, method, notes\.",
    ):
        GroupConformal.from_meta({"levels": [0.5]})
    with pytest.raises(InputError, match="missing: by_category, .*, levels, method, notes"):
        GroupConformal.from_meta([1])


# Bad input


@pytest.mark.parametrize("levels", [[], [0.9, 0.5], [0.5, 0.5], [0.0], [1.0], ["0.5"], [True]])
def test_levels_must_ascend_between_0_and_1(levels):
    with pytest.raises(InputError, match="ascending order"):
        GroupConformal(levels)


def test_method_must_be_known():
    with pytest.raises(InputError, match="one of auto, group, pooled, got 'split'"):
        GroupConformal(method="split")


@pytest.mark.parametrize(
    "use", [lambda b: b.factors_, lambda b: b.to_meta(), lambda b: b.apply([0], [-Z], [Z])]
)
def test_not_fitted(use):
    with pytest.raises(InputError, match="Call fit first"):
        use(GroupConformal())


def broken(which, change):
    data = [np.array(v) for v in calibration(8, 6)]
    data[which] = change(data[which])
    return data


def put(row, value):
    def change(v):
        v = v.astype(object if value is None else float)
        v[row] = value
        return v

    return change


@pytest.mark.parametrize(
    ("which", "change", "message"),
    [
        (0, put(3, np.nan), "median must be finite, got nan in row 3"),
        (1, put(2, -np.inf), "lower must be finite, got -inf in row 2"),
        (2, lambda v: v[:, :3], r"upper must have .* shape \(48, 4\), got \(48, 3\)"),
        (1, lambda v: v[:-1], r"lower must have one row per median"),
        (0, lambda v: v[:, None], "median must have 1 dimension"),
        (0, lambda v: v[:0], "at least one row"),
        (0, lambda v: ["x"] * 48, "median must be numbers"),
        (0, put(5, 9.0), "median must lie within its bands, but it does not in row 5"),
        (3, put(1, np.inf), "y must be finite, got inf in row 1"),
        (3, lambda v: v[:-1], "one value per median, got 47 for 48"),
        (4, lambda v: v[:-1], "groups must be 48 names"),
        (4, put(7, None), "groups must be known, got None in row 7"),
        (4, put(7, np.nan), "groups must be known, got nan in row 7"),
    ],
)
def test_bad_calibration_data(which, change, message):
    with pytest.raises(InputError, match=message):
        GroupConformal().fit(*broken(which, change))


def test_a_band_without_width_is_refused_at_fit_and_at_use():
    median, low, high, y, group = calibration(8, 6)
    low[4], high[4] = median[4], median[4]
    with pytest.raises(InputError, match="must be wider than zero, got zero width in row 4"):
        GroupConformal().fit(median, low, high, y, group)
    with pytest.raises(InputError, match="must be wider than zero, got zero width in row 4"):
        fitted().apply(median, low, high)


def test_a_truth_that_no_factor_reaches_is_refused():
    n = 5
    y = np.array([1e300, 0, 0, 0, 0])
    ends = np.full((n, 1), 1e-300)
    with pytest.raises(
        InputError, match="no factor can make them contain the measured value in row 0"
    ):
        GroupConformal([0.5]).fit(np.zeros(n), -ends, ends, y, np.arange(n))


# Absolute residuals


def test_split_conformal_is_an_order_statistic():
    residuals = np.array([-9.0, 1, 2, -3, 4, 5, -6, 7, 8])
    assert split_conformal(residuals, 0.9) == 9
    assert split_conformal(residuals, 0.8) == 8
    assert split_conformal(residuals, 0.5) == 5


def test_split_conformal_by_group_weighs_groups_alike():
    residuals = np.array([0.1] * 20 + [1.0, 2.0, 3.0])
    groups = ["a"] * 20 + ["b", "c", "d"]
    assert split_conformal(residuals, 0.5) == 0.1
    assert split_conformal(residuals, 0.5, groups=groups) == 2.0


@pytest.mark.parametrize(("groups", "word"), [(None, "residuals"), (list("abcd") * 2, "groups")])
def test_split_conformal_says_how_many_it_needs(groups, word):
    residuals = np.arange(1.0, 9.0)
    most = {"residuals": "88.9", "groups": "80"}[word]
    with pytest.raises(
        InputError,
        match=rf"90 % band needs at least 9 {word}.*or ask for a band of at most {most} %",
    ):
        split_conformal(residuals, 0.9, groups=groups)


def test_cv_plus_of_one_model_is_split_conformal():
    rng = np.random.default_rng(2)
    residuals, centre = rng.standard_normal(20), np.array([3.0, -1.0])
    low, high = cv_plus(np.tile(centre[:, None], 20), residuals, 0.9)
    half = split_conformal(residuals, 0.9)
    np.testing.assert_allclose(low, centre - half)
    np.testing.assert_allclose(high, centre + half)


def test_jackknife_plus_by_the_published_order_statistics():
    rng = np.random.default_rng(4)
    n, alpha = 30, 0.2
    residuals, predictions = np.abs(rng.standard_normal(n)), rng.standard_normal((3, n))
    low, high = cv_plus(predictions, residuals, 1 - alpha)
    up = math.ceil((1 - alpha) * (n + 1))
    down = math.floor(alpha * (n + 1))
    np.testing.assert_allclose(high, np.sort(predictions + residuals)[:, up - 1])
    np.testing.assert_allclose(low, np.sort(predictions - residuals)[:, down - 1])


def test_cv_plus_by_group_and_bad_shapes():
    residuals = np.array([1.0] * 5 + [2.0, 3.0])
    groups = ["a"] * 5 + ["b", "c"]
    low, high = cv_plus(np.zeros((1, 7)), residuals, 0.5, groups=groups)
    assert (low.tolist(), high.tolist()) == ([-2.0], [2.0])
    with pytest.raises(InputError, match="one column per residual, got 6 columns and 7 residuals"):
        cv_plus(np.zeros((1, 6)), residuals, 0.5)
