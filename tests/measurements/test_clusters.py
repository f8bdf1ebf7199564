"""Whether values of equal keys form clusters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import chdtrc

from errcomp.measurements import check
from errcomp.measurements.finding import clusters
from errcomp.measurements.finding.clusters import clusters_of
from errcomp.measurements.results import MeasurementCheck

Floats = NDArray[np.float64]


def usual(some: Floats) -> bool:
    """Say whether values are noise of variance 1."""
    return bool(chdtrc(len(some) - 1, ((some - some.mean()) ** 2).sum()) >= 0.005)


def found(draw: str, n: int, tables: int = 200) -> float:
    """Share of samples whose values form two clusters."""
    rng = np.random.default_rng(n)
    laws = {
        "normal": lambda: 5 * rng.normal(size=n),
        "t3": lambda: 5 * rng.standard_t(3, size=n),
        "two": lambda: rng.normal(size=n) + 12 * (np.arange(n) % 2),
        "one": lambda: rng.normal(size=n),
        "outlier": lambda: rng.normal(size=n) + 30 * (np.arange(n) == 0),
    }
    return float(np.mean([len(clusters_of(laws[draw](), usual)) == 2 for _ in range(tables)]))


@pytest.mark.parametrize("n", [4, 6, 12])
def test_values_that_spread_form_no_clusters(n: int) -> None:
    assert found("normal", n) <= 0.09
    assert found("t3", n) <= 0.09
    assert found("one", n) == 0.0
    assert found("outlier", n) <= 0.02


@pytest.mark.parametrize("n", [4, 6, 12])
def test_two_settings_are_found(n: int) -> None:
    assert found("two", n) >= (0.85 if n == 4 else 0.95)


def test_three_settings_are_found_in_order() -> None:
    x = np.repeat([40.0, 0.0, 80.0], 4) + np.random.default_rng(0).normal(size=12)
    assert [c.tolist() for c in clusters_of(x, usual)] == [
        [4, 5, 6, 7],
        [0, 1, 2, 3],
        [8, 9, 10, 11],
    ]


def test_a_side_that_spreads_is_no_cluster() -> None:
    """Of values near 0 and values from 50 to 100, the latter are not one setting."""
    x = np.r_[np.zeros(6), np.linspace(50, 100, 6)]
    assert clusters_of(x, usual) == []
    assert len(clusters_of(np.r_[np.zeros(6), np.full(6, 50.0)], usual)) == 2


@pytest.mark.parametrize(("n", "k"), [(4, 2), (4, 3), (6, 3), (12, 2), (12, 5), (40, 4)])
def test_samples_are_cut_all_at_once_as_values_are(
    n: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "_SAMPLES", 60)
    ratios = []
    for x in np.sort(np.random.default_rng([n, k]).normal(size=(60, n)), axis=1):
        parts = [x]
        while len(parts) < k and clusters._cut_once(parts):
            pass
        ratios.append(clusters._ratio(parts, x))
    limit = clusters._limit.__wrapped__(n, k)
    assert limit == pytest.approx(float(np.quantile(ratios, 0.05)))


def test_three_values_are_too_few() -> None:
    assert clusters_of(np.array([0.0, 0.0, 50.0]), usual) == []


def two_settings() -> MeasurementCheck:
    """A check of 60 configurations of four rows; two of them ran half of the rows twice as slow."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 4)
    slow = np.isin(group, [7, 30]) & (np.arange(240) % 4 >= 2)
    slow |= (group == 11) & (np.arange(240) % 4 == 3)
    ms = 10 * (1 + slow) * np.exp(0.01 * rng.normal(size=240))
    return check({"batch": group, "ms": ms}, measured="ms")


def test_a_check_names_the_rows_of_each_cluster() -> None:
    by_batch = {row.of["batch"]: row for row in two_settings().hidden_keys}
    low, high = by_batch[7].clusters or ()
    assert (low.rows, high.rows) == ((29, 30), (31, 32))
    assert (low.value, high.value) == (pytest.approx(10, rel=0.03), pytest.approx(20, rel=0.03))
    assert by_batch[11].clusters == ()


def test_the_table_shows_clusters_first_and_counts_rows() -> None:
    view = two_settings().view()
    table = next(one for one in view.tables if one.title == "Equal keys, other values")
    assert [row.of["batch"] for row in table.rows][-1] == 11
    clusters = next(column for column in table.columns if column.header == "Clusters")
    assert [str(clusters.value(row))[:4] for row in table.rows] == ["2 × ", "2 × ", "none"]
    said = " ".join(map(str, table.notes))
    assert "In 2 of 3 such configurations with 4 rows or more, the values form clusters" in said
    assert "4 rows are outside the largest cluster" in said


def test_a_column_that_explains_leaves_no_clusters() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 4)
    slow = (group % 10 == 0) & (np.arange(240) % 2 == 0)
    table = {
        "batch": group,
        "note": [f"graphs={'off' if one else 'on'}" for one in slow],
        "ms": 10 * (1 + slow) * np.exp(0.01 * rng.normal(size=240)),
    }
    rows = check(table, measured="ms").hidden_keys
    assert len(rows) == 6
    assert {row.explained_by for row in rows} == {"note:graphs"}
    assert {row.clusters for row in rows} == {None}
