"""Public tables of measurements: what docs/measurements.md says about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.measurements import check
from errcomp.measurements.results import MeasurementCheck

DATA = Path(__file__).parents[3] / "shared" / "data"
PAGE = (Path(__file__).parents[2] / "docs" / "measurements.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.exists(), reason="the data beside the checkout are missing"),
]


def says(text: str) -> None:
    """Check that the page has a text, whatever its lines."""
    assert " ".join(text.split()) in " ".join(PAGE.split())


def unexplained(found: MeasurementCheck) -> list[float]:
    return [row.ratio for row in found.hidden_keys if row.explained_by is None]


def test_serving() -> None:
    """Copies under other files and dates, and the concurrency in a text."""
    found = check(
        DATA / "measurements" / "silicon_sample.half.csv",
        measured=["silicon_ttft_ms", "silicon_tpot_ms"],
        by="mode",
    )
    says(f"{found.n:,} rows of TTFT and TPOT). {found.copies.n:,} rows are copies")
    assert sum(len(one.rows) for one in found.copies.sets if one.kind == "equal") == 818
    first = found.explained[0]
    assert first.column == "silicon_data_source:silicon_concurrency"
    says(f"explains {100 * first.share:.0f} % of the spread")
    ratios = unexplained(found)
    says(f"{len(ratios)} configurations differ by more than noise")
    says(f"one of them by a factor of {max(ratios):.1f}")
    agg, disagg = (100 * row.floor.mape for row in found.floors)
    assert [row.of["mode"] for row in found.floors] == ["agg", "disagg"]
    says(f"{agg:.1f} % for aggregated and {disagg:.1f} % for disaggregated")


@pytest.mark.slow
def test_data_frames() -> None:
    """The environment of this machine changed between March and May 2020, as its source says."""
    found = check(DATA / "longitudinal" / "h2o_db_benchmark" / "h2o_times.csv.gz", measured="t1")
    says(f"({found.n:,} first runs on one machine). The floor is {100 * found.floor.mape:.1f} %")
    step = found.drift[0]
    assert (step.column, step.kind) == ("date", "step")
    says(f"rose by {100 * step.change:.0f} % on {step.at}")
    later = [f"{100 * row.change:.0f} %" for row in found.drift[1:] if row.column == "date"]
    says(f"Two smaller steps follow, by {' and '.join(later)}")


def test_submitted_results() -> None:
    found = check(
        DATA / "longitudinal" / "mlperf_inference" / "mlperf_inference_longitudinal.csv",
        measured="value",
    )
    says(f"({found.n:,} results of systems that were submitted in more than one round). ")
    says(f"{found.copies.n:,} rows repeat a value")
    says(f"from {found.floor.groups} systems with the same software in two rounds, is")
    says(f"in two rounds, is {100 * found.floor.mape:.1f} %")
    targets = [one for one in found.copies.sets if "benchmark" in one.differs]
    assert len(targets) > len(found.copies.sets) / 2
    assert found.impossible == ()  # the metric says which unit a row has


def test_collectives() -> None:
    """In-place and out-of-place runs of nccl-tests are no repeats of each other."""
    logs = DATA / "tools" / "nccl-tests"
    found = check(logs)
    says(f"({found.n} times of collectives)")
    floor = found.floor
    says(f"floor is {100 * floor.mape:.1f} %, from {floor.groups} configurations with {floor.n}")
    assert found.copies.n == 0
    keys = [name for name in found.key_columns if name not in ("placement", "tool", "level")]
    placed = check(logs, keys=keys)
    assert placed.explained[0].column == "placement"
    explained = [row for row in placed.hidden_keys if row.explained_by == "placement"]
    says(f"differ beyond noise in {len(explained)} of {placed.configurations} configurations")
