"""The figures on the NeuSight artifact, against the errors its authors computed themselves."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from errcomp import metrics

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def rows(shared_data: Path) -> list[dict[str, str]]:
    path = shared_data / "neusight-artifact/scripts/asplos/summary/summary.csv"
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(row[name] or "nan") for row in rows])


@pytest.mark.parametrize(
    ("tool", "n"), [("neusight", 146), ("habitat", 80), ("micro", 80), ("roofline", 80)]
)
def test_ape_is_the_percentage_in_the_authors_summary(
    rows: list[dict[str, str]], tool: str, n: int
) -> None:
    p, m = column(rows, f"{tool}_all_e2e_latency"), column(rows, "label_all_e2e_latency")
    theirs = column(rows, f"{tool}_all_e2e_err")
    there = np.isfinite(p)
    assert there.sum() == n
    ours = metrics.ape(predicted=p[there], measured=m[there])
    np.testing.assert_allclose(100 * ours, theirs[there], rtol=1e-12)


def test_figures_per_device(rows: list[dict[str, str]]) -> None:
    kw = {
        "predicted": column(rows, "neusight_all_e2e_latency"),
        "measured": column(rows, "label_all_e2e_latency"),
    }
    groups = [f"{row['device']} {row['mode']}" for row in rows]
    result = metrics.macro("mape", **kw, groups=groups)
    value = dict(zip(result.groups, result.values.tolist(), strict=True))
    assert value["Tesla_V100-PCIE-32GB inf"] == pytest.approx(0.0587, abs=5e-5)
    assert value["Tesla_P4 inf"] == pytest.approx(0.2710, abs=5e-5)
    assert metrics.max_ape(**kw) == pytest.approx(0.6530, abs=5e-5)
