"""The numbers in code are those of docs/intervals.md, and warnings follow from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from errcomp.metrics.intervals import _coverage, estimate
from errcomp.metrics.intervals._coverage import COVERAGE, IN_CLUSTERS, WILSON, Sample, small_sample
from errcomp.metrics.intervals._smooth import SMOOTH

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "intervals.md"


def tables() -> dict[str, tuple[tuple[int, ...], dict[str, tuple[float, ...]]]]:
    """Head of each table of numbers: its columns, and its rows by name."""
    found, head = {}, None
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if not line.startswith("|"):
            head = None
        elif cells[0].endswith("="):
            head = cells[0]
            found[head] = (tuple(int(c) for c in cells[1:]), {})
        elif head and not set(cells[0]) <= {"-", ":"}:
            numbers = tuple(0.0 if c == "–" else float(c) for c in cells[1:])
            found[head][1][cells[0]] = numbers
    return found


TABLES = tables()


@pytest.mark.parametrize("name", list(SMOOTH))
def test_means(name):
    columns, rows = TABLES[f"{name}: n ="]
    assert columns == _coverage.SIZES[: len(columns)]
    assert rows == {method: COVERAGE[method][name] for method in COVERAGE}


@pytest.mark.parametrize("name", list(SMOOTH))
def test_clusters(name):
    columns, rows = TABLES[f"{name}: clusters ="]
    assert columns == _coverage.CLUSTER_SIZES
    assert tuple(np.min(list(rows.values()), axis=0)) == IN_CLUSTERS[name]


def test_counts():
    columns, rows = TABLES["shares: n ="]
    assert columns == _coverage.SIZES[: len(columns)]
    assert rows["wilson, lowest"] == WILSON
    assert min(rows["clopper-pearson, lowest"]) >= 0.95
    _, rows = TABLES["shares and quantiles: clusters ="]

    def lowest(start):
        return tuple(np.min([v for k, v in rows.items() if k.startswith(start)], axis=0))

    assert lowest("wilson") == IN_CLUSTERS["share"]
    assert lowest("quantile, 0.5") == IN_CLUSTERS["median_ape"]
    assert lowest("quantile, 0.9") == IN_CLUSTERS["p90_ape"]


def test_what_the_package_promises_for_mape():
    """95 % reaches 93 % from 50 pairs on and 90 % from 10 on; two standard errors of noise."""
    row = dict(zip(_coverage.SIZES, COVERAGE["log-t"]["mape"], strict=False))
    assert all(row[n] >= 0.92 for n in (50, 100, 200))
    assert all(row[n] >= 0.90 for n in (3, 5, 8, 10, 15, 20))
    assert max(COVERAGE["log-t"]["mape"]) <= 0.98
    _, laws = TABLES["law: n ="]
    assert all(0.91 <= laws[law][7] <= 0.99 for law in laws if not law.endswith("before"))


class TestCaveat:
    row = (0.86, 0.88, 0.85, 0.91, 0.90, 0.92, 0.91, 0.93, 0.94, 0.95)

    def test_below_the_size_that_suffices(self):
        (caveat,) = small_sample("MAPE", self.row, Sample(17, clustered=False))
        assert caveat.code == "few-configurations"
        assert caveat.message == (
            "The interval is from 17 pairs. In simulations, nominal 95 % intervals of MAPE contain "
            "the true value in as few as 91 % of samples of 15 pairs or more; with 50 pairs or "
            "more, in about 93 %."
        )
        assert caveat.evidence == {
            "n": 17,
            "simulated_n": 15,
            "coverage": 0.91,
            "nominal_from": 50,
        }

    def test_from_that_size_on(self):
        assert small_sample("MAPE", self.row, Sample(50, clustered=False)) == ()
        assert small_sample("MAPE", (), Sample(3, clustered=False)) == ()

    def test_a_dip_at_a_larger_size_counts(self):
        row = (0.95, 0.95, 0.95, 0.95, 0.95, 0.95, 0.90, 0.95, 0.95, 0.95)
        (caveat,) = small_sample("WAPE", row, Sample(10, clustered=False))
        assert caveat.evidence["coverage"] == 0.90
        assert caveat.evidence["nominal_from"] == 50

    def test_no_size_suffices(self):
        row = (0.80, 0.80, 0.80, 0.80, 0.80, 0.85, 0.85, 0.85)
        (caveat,) = small_sample("RMSE", row, Sample(3, clustered=True))
        assert caveat.code == "few-clusters"
        assert caveat.message.endswith(
            "no tested number of clusters, up to 40, reaches 93 % coverage."
        )

    def test_estimates_carry_it(self):
        rng = np.random.default_rng(0)
        measured = np.exp(rng.normal(size=12))
        data = {"predicted": measured * np.exp(0.3 * rng.normal(size=12)), "measured": measured}
        (caveat,) = estimate("mape", **data, method="bca").caveats
        assert caveat.evidence["coverage"] == min(COVERAGE["bca"]["mape"][4:])
        assert "samples of 10 pairs or more" in caveat.message
        assert estimate("within_10", **data).caveats[0].evidence["coverage"] == min(WILSON[4:])
        assert estimate("within_10", **data, method="clopper-pearson").caveats == ()
        assert estimate("median_ape", **data).caveats == ()
