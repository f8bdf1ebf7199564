"""Tests of software against environment by hand, and on the record of a machine that changed."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.halflife.steps.environment import attribute_steps, attribute_steps_of
from errcomp.tables import History
from errcomp.tables.table import Behind


def values(levels, seed=0, sd=0.01):
    return np.asarray(levels) + sd * np.random.default_rng(seed).standard_normal(len(levels))


def days(n):
    return np.datetime64("2026-01-01") + 7 * np.arange(n)


def only(causes):
    (cause,) = causes
    return cause


# One series


def test_rows_of_several_measurements_count_as_often():
    version, level = ["1", "1", "2", "2", "2", "2", "3", "3"], values([0] * 4 + [0.5] * 4)
    when = [str(day) for day in days(8)]
    columns = {"series": ["a"] * 16, "version": np.repeat(version, 2), "date": np.repeat(when, 2)}
    # Of each date two measurements that are alike, and five others.
    measured = np.exp((level[:, None] + [0.0, 0.2]).ravel())
    n = np.tile([2, 5], 8)
    known = History({**columns, "measured": measured})
    known.behind = Behind(n, np.zeros(16), np.zeros(16, dtype=bool))
    each = {name: np.repeat(column, n) for name, column in columns.items()}
    single = History({**each, "measured": np.repeat(measured, n), "repeat": [*range(7)] * 8})
    found, expected = only(attribute_steps_of(known)), only(attribute_steps_of(single))
    assert found.step.size == pytest.approx(expected.step.size)
    assert found.step.before == pytest.approx(expected.step.before)
    assert (found.verdict, found.reason) == (expected.verdict, expected.reason)


def test_same_version_on_both_sides_is_the_environment():
    version = ["1", "1", "2", "2", "2", "2", "3", "3"]
    cause = only(attribute_steps(["a"] * 8, version, days(8), values([0] * 4 + [0.5] * 4)))
    assert cause.verdict == "environment"
    assert (cause.since, cause.until) == ("2026-01-22", "2026-01-29")
    assert cause.versions == ("2", "2")
    assert cause.moved_low < cause.moved < cause.moved_high
    assert cause.moved == pytest.approx(0.5, abs=0.03)
    assert cause.n_versions == 1
    assert "versions validated before and after the step changed" in cause.reason


def test_old_versions_that_moved_after_it_are_the_environment():
    version = ["1", "1", "2", "2", "3", "1", "3", "2"]
    cause = only(attribute_steps(["a"] * 8, version, days(8), values([0] * 4 + [0.5] * 4)))
    assert (cause.verdict, cause.n_versions) == ("environment", 2)


def test_old_versions_that_did_not_move_are_the_software():
    version = ["1", "2", "1", "2", "3", "3", "3", "3", "1", "2", "2"]
    level = [0.5 if v == "3" else 0.0 for v in version]
    causes = attribute_steps(["a"] * 11, version, days(11), values(level))
    assert [cause.step.at for cause in causes] == [4, 8]
    # Only the whole series has a version on both sides of each.
    assert [cause.verdict for cause in causes] == ["software", "software"]
    assert "much later" in causes[0].reason


def test_versions_that_stay_within_a_mixed_segment_are_the_software():
    # One of the old versions runs again among the new one, as it did before.
    version = ["1", "2", "1", "2", "1", "2", "3", "3", "1", "3", "3", "3", "3", "3"]
    level = [0.5 if v == "3" else 0.0 for v in version]
    causes = attribute_steps(["a"] * 14, version, days(14), values(level))
    assert {cause.verdict for cause in causes} == {"software"}


def test_no_reruns_cannot_be_told():
    cause = only(attribute_steps(["a"] * 8, list("12345678"), days(8), values([0] * 4 + [0.5] * 4)))
    assert cause.verdict == "cannot be told"
    assert cause.reason == "no version was validated both before and after the step"
    assert (cause.moved, cause.moved_low, cause.moved_high, cause.n_versions) == (None,) * 3 + (0,)


def test_calm_reruns_at_other_dates_speak_for_the_software():
    version = list("11223344")
    cause = only(attribute_steps(["a"] * 8, version, days(8), values([0] * 4 + [0.5] * 4)))
    assert cause.verdict == "software"
    assert cause.reason == "4 repeated validations of a version on other dates show no change"


def test_reruns_that_moved_elsewhere_in_the_series_do_not():
    version, level = list("1122334455"), [0.0] * 4 + [0.5] * 3 + [1.1] * 3
    first, second = attribute_steps(["a"] * 10, version, days(10), values(level))
    assert second.verdict == "environment"
    assert first.verdict == "cannot be told"


def test_a_step_that_may_lie_within_a_version_cannot_be_told():
    # Between the levels, one run of version 3: the step is before or after it.
    version = list("1122334455")
    level = [0.0, 0.1, -0.1, 0.05, 0.6, 0.95, 1.1, 0.9, 1.0, 1.05]
    cause = only(attribute_steps(["a"] * 10, version, days(10), level))
    assert (cause.step.at_low, cause.step.at_high) == (4, 5)
    assert cause.verdict == "cannot be told"


def test_too_uncertain_a_shift_cannot_be_told(monkeypatch):
    monkeypatch.setattr("errcomp.halflife.steps.learned", lambda batch, clusters: batch)
    version = list("1122234567")
    level = [0.2, 0.4, -0.4, 0.2, 0.6, 1.2, 0.8, 1.3, 1.0, 0.8]
    cause = only(attribute_steps(["a"] * 10, version, days(10), level))
    assert cause.versions == ("2", "2")
    assert cause.verdict == "cannot be told"
    assert "too uncertain" in cause.reason


def test_repeats_of_one_date_are_averaged_and_order_does_not_matter():
    version = ["1", "1", "2", "2", "2", "2", "3", "3"]
    x = values([0] * 4 + [0.5] * 4)
    plain = only(attribute_steps(["a"] * 8, version, days(8), x))
    twice = only(
        attribute_steps(
            ["a"] * 16,
            [v for v in version for _ in range(2)][::-1],
            np.repeat(days(8), 2)[::-1],
            (np.repeat(x, 2) + np.tile([-0.1, 0.1], 8))[::-1],
        )
    )
    assert json.loads(json.dumps(twice.to_dict()))["versions"] == ["2", "2"]
    assert twice.step.at == plain.step.at == 4
    assert twice.moved == pytest.approx(plain.moved)


# Others of the machine


def others(version, level, names="bcd"):
    """Series with validations on the dates of `days(8)`."""
    return [
        (name, v, d, x) for name in names for v, d, x in zip(version, days(8), level, strict=True)
    ]


def with_others(rows, **more):
    x = values([0] * 4 + [0.5] * 4)
    rows = [*zip(["a"] * 8, list("12345678"), days(8), x, strict=True), *rows]
    series, version, date, value = zip(*rows, strict=True)
    causes = attribute_steps(series, version, np.array(date), value, **more)
    return next(cause for cause in causes if cause.series == "a")


def test_others_that_moved_under_one_version_are_the_environment():
    rows = others(["9"] * 8, values([0] * 4 + [0.2] * 4, 1))
    cause = with_others(rows)
    assert (cause.verdict, cause.n_elsewhere, cause.n_elsewhere_moved) == ("environment", 3, 3)
    assert cause.reason == "3 of 3 other series changed although their version did not"
    # On another machine, or with too few of them, they say nothing.
    elsewhere = with_others(rows, machine=["x"] * 8 + ["y"] * 24)
    assert (elsewhere.verdict, elsewhere.n_elsewhere) == ("cannot be told", 0)
    assert with_others(rows[:16]).verdict == "cannot be told"


def test_others_that_stayed_under_one_version_speak_for_the_software():
    cause = with_others(others(["9"] * 8, values([0] * 8, 1)))
    assert (cause.verdict, cause.n_elsewhere, cause.n_elsewhere_moved) == ("software", 3, 0)
    assert "3 of these 3 series were validated both before and after the step" in cause.reason


def test_others_with_new_versions_say_nothing():
    cause = with_others(others(list("abcdefgh"), values([0] * 4 + [0.2] * 4, 1)))
    assert (cause.verdict, cause.n_elsewhere) == ("cannot be told", 0)


def test_series_too_short_for_steps_are_no_witnesses():
    short = [("b", "9", day, 0.0) for day in days(8)[3:6]]
    assert with_others(short).n_elsewhere == 0


# Tables and bad input


def test_history_and_arrays_agree():
    version = ["1.0", "1.0", "1.1", "1.1", "1.1", "1.1", "1.2", "1.2"]
    x = values([0] * 4 + [0.5] * 4)
    data = {
        "op": ["Gelu"] * 8,
        "node": ["n1"] * 8,
        "version": version,
        "date": [str(day) for day in days(8)],
        "measured": np.exp(x),
    }
    cause = only(attribute_steps_of(History(data), machine="node"))
    arrays = only(attribute_steps(["a"] * 8, version, days(8), x))
    assert cause.verdict == "environment"
    # The error falls as the measurement rises.
    assert cause.moved == pytest.approx(-arrays.moved)
    assert (cause.since, cause.until) == (arrays.since, arrays.until)
    with pytest.raises(InputError, match="nowhere"):
        attribute_steps_of(History(data), machine="nowhere")


def test_dates_as_text_and_times_and_numbers():
    version, x = list("11222233"), values([0] * 4 + [0.5] * 4)
    for date, since in (
        ([str(day) for day in days(8)], "2026-01-22"),
        ([day.item() for day in days(8)], "2026-01-22"),
        (days(8).astype("M8[s]") + np.timedelta64(90, "m"), "2026-01-22T01:30:00"),
        (np.arange(8), "3.0"),
    ):
        assert only(attribute_steps(["a"] * 8, version, date, x)).since == since


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"value": [0, 0, np.nan, 1]}, "value must be finite, got nan in row 2"),
        ({"value": ["a"] * 4}, "value must be numbers"),
        ({"value": [[0.0] * 4]}, "value must have 1 dimension, got 2"),
        ({"series": ["a"] * 3}, "series must have 4 entries, one per value"),
        ({"version": ["a"] * 3}, "version must have 4 entries, one per value"),
        ({"date": days(3)}, "date must have 4 entries, one per value"),
        ({"date": np.array(["2026-01-01", "NaT"] * 2, dtype="M8[D]")}, "missing in rows 1, 3"),
        ({"date": [0, 1, np.inf, 2]}, "date must be finite, got inf in row 2"),
        ({"date": ["soon"] * 4}, "date must contain dates or numbers:"),
        ({"machine": ["x", "x", "y", "y"]}, "series 'a' was validated on several machines"),
        ({"machine": ["x"]}, "machine must have 4 entries, one per value"),
    ],
)
def test_bad_input(given, message):
    plain = {"series": ["a"] * 4, "version": ["1"] * 4, "date": days(4), "value": [0.0] * 4}
    with pytest.raises(InputError, match=message):
        attribute_steps(**{**plain, **given})


def test_nothing_to_attribute():
    assert attribute_steps(["a"] * 4, ["1"] * 4, days(4), [0.0, 0.1, 0.0, 0.1]) == []
    assert attribute_steps([], [], np.array([], dtype="M8[D]"), []) == []


# A machine that changed: pandas and dask on the H2O db-benchmark


@pytest.fixture(scope="module")
def h2o(shared_data):
    path = shared_data / "longitudinal" / "h2o_db_benchmark" / "h2o_times.csv.gz"
    data = pl.read_csv(path, infer_schema_length=None).filter(pl.col("t2") > 0)
    return data.select(
        "solution",
        "version",
        "date",
        "node",
        pl.concat_str("solution", "node", "task", "data", "question", separator="/").alias(
            "series"
        ),
        pl.col("t2").alias("measured"),
        # A day may have several batches.
        pl.col("batch").alias("repeat"),
    )


@pytest.mark.shared
@pytest.mark.parametrize(
    ("solution", "since", "until", "least", "undecided"),
    [
        ("pandas", "2020-03-22", "2020-05-19", 32, 12),
        ("dask", "2020-06-09", "2020-06-21", 47, 0),
    ],
)
def test_a_silent_change_of_the_machine_is_no_release(
    h2o, solution, since, until, least, undecided
):
    history = History(h2o.filter(pl.col("solution") == solution))
    causes = [
        cause
        for cause in attribute_steps_of(history, machine="node")
        if "mr-dl11" in cause.series and cause.since < until and cause.until > since
    ]
    verdicts = Counter(cause.verdict for cause in causes)
    assert verdicts["software"] == 0
    assert verdicts["environment"] >= least
    assert verdicts["cannot be told"] <= undecided


@pytest.mark.shared
def test_the_query_in_which_it_was_seen(h2o):
    name = "pandas/mr-dl11/groupby/G1_1e7_1e2_0_0/sum v1 by id1"
    causes = attribute_steps_of(History(h2o.filter(pl.col("series") == name)))
    (cause,) = [cause for cause in causes if cause.since <= "2020-05" <= cause.until]
    assert (cause.verdict, cause.since, cause.until) == ("environment", "2020-03-22", "2020-05-19")
    assert cause.versions == ("1.0.3", "1.0.3")
    # Twice as long.
    assert cause.step.change[0] == pytest.approx(-0.53, abs=0.03)
