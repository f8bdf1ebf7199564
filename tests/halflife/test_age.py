"""Drift by age of the workload: by hand, and the figures of MLPerf Inference."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.halflife.drift.age import drift_by_age
from errcomp.halflife.panel import Panel


def panel_of(rows, *, version=None, clusters=None, versions=None):
    """One list of errors per series, seen at the versions given (from the first on by default)."""
    version = [range(len(row)) for row in rows] if version is None else version
    count = versions or 1 + max(max(v) for v in version)
    n = sum(map(len, rows))
    return Panel(
        versions=tuple(f"v{i}" for i in range(count)),
        months=np.full(count, np.nan),
        names=tuple(f"s{i}" for i in range(len(rows))),
        clusters=np.arange(len(rows)) if clusters is None else np.asarray(clusters),
        starts=np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        version=np.concatenate([np.asarray(v) for v in version]),
        error=np.concatenate([np.asarray(row, float) for row in rows]),
        sd=np.full(n, np.nan),
        noise_df=np.zeros(len(rows)),
        frozen_at_first=True,
    )


def test_medians_by_age_by_hand():
    # Steps of 0.1 and 0.3 at age 0, of 0.02 and 0.04 at age 1.
    drifts = drift_by_age(panel_of([[0, 0.1, 0.12], [0, -0.3, -0.26]]))
    assert [(drift.age, drift.n, drift.n_clusters) for drift in drifts] == [(0, 2, 2), (1, 2, 2)]
    assert [drift.median for drift in drifts] == pytest.approx([0.2, 0.03])
    assert drifts[0].low is None
    assert json.loads(json.dumps(drifts[0].to_dict()))["high"] is None


def test_a_step_over_several_releases_is_left_out_and_counted():
    rows = [[0, 0.3, 0.4], [0, 0.1], [0, 9]]
    drifts = drift_by_age(panel_of(rows, version=[[2, 5, 6], [2, 3], [2, 4]]))
    assert [(drift.age, drift.n, drift.n_longer) for drift in drifts] == [(0, 1, 2), (3, 1, 0)]
    assert [drift.median for drift in drifts] == pytest.approx([0.1, 0.1])
    with pytest.raises(
        InputError, match=r"all 1 differences between validations span several releases\."
    ):
        drift_by_age(panel_of([[0, 1]], version=[[0, 2]]))


def test_age_counts_from_the_first_version_of_the_workload():
    # The second series starts later, but its workload is that of the first.
    rows, version = [[0, 0.1], [0, 0.2]], [[0, 1], [3, 4]]
    own = drift_by_age(panel_of(rows, version=version))
    assert [(drift.age, drift.n) for drift in own] == [(0, 2)]
    for same in (
        drift_by_age(panel_of(rows, version=version), workloads=["bert", "bert"]),
        drift_by_age(panel_of(rows, version=version), workloads=np.array([None, None])),
        drift_by_age(panel_of(rows, version=version, clusters=[0, 0])),
    ):
        assert [drift.age for drift in same] == [0, 3]
    known = drift_by_age(panel_of(rows, version=version), first=[-2, 3])
    assert [(drift.age, drift.median) for drift in known] == [(0, pytest.approx(0.2)), (2, 0.1)]


def test_interval_is_the_one_of_the_binomial_where_steps_are_independent():
    # 100 clusters of one step: order statistics about 50 ± 1.96·5, by hand.
    drift = np.arange(1, 101) / 1000
    (by_age,) = drift_by_age(panel_of([[0, size] for size in drift]))
    assert by_age.median == pytest.approx(0.0505)
    assert 0.039 <= by_age.low <= 0.042
    assert 0.059 <= by_age.high <= 0.062
    wide, narrow = (
        drift_by_age(panel_of([[0, x] for x in drift]), level=p)[0] for p in (0.99, 0.5)
    )
    assert wide.low < by_age.low < narrow.low < narrow.high < by_age.high < wide.high


def test_alike_steps_of_a_cluster_widen_the_interval():
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(12), 10)
    alike = np.exp(rng.standard_normal(12))[of] * (1 + 0.01 * rng.random(120))
    rows = [[0, x] for x in alike]
    alone, together = (
        drift_by_age(panel_of(rows, clusters=c), workloads=["w"] * 120)[0]
        for c in (np.arange(120), of)
    )
    assert together.n_clusters == 12
    assert together.high - together.low > 1.8 * (alone.high - alone.low)


def test_no_interval_with_few_clusters_or_none_inside():
    rows = [[0, x] for x in range(1, 41)]
    for clusters in (np.arange(40) % 4, np.r_[np.zeros(36), 1, 2, 3, 4].astype(int)):
        (drift,) = drift_by_age(panel_of(rows, clusters=clusters), workloads=["w"] * 40)
        assert drift.low is drift.high is None
    # Six clusters of which three move by little and three by much: nothing lies between for sure.
    rows = [[0, x] for x in [0.01, 0.01, 0.01, 1, 1, 1]]
    (drift,) = drift_by_age(panel_of(rows), workloads=["w"] * 6)
    assert drift.low is None


def test_bad_input():
    panel = panel_of([[0, 1], [0, 1]])
    with pytest.raises(InputError, match="workloads must be 2 names"):
        drift_by_age(panel, workloads=["a"])
    with pytest.raises(InputError, match="first must hold 2 positions"):
        drift_by_age(panel, first=[0.0, 0.0])
    with pytest.raises(InputError, match="either workloads= or first=, not both"):
        drift_by_age(panel, first=[0, 0], workloads=["a", "b"])
    with pytest.raises(InputError, match=r"got 1 for 's1', whose first row is at 0 \(position 1\)"):
        drift_by_age(panel, first=[0, 1])
    with pytest.raises(InputError, match="no series has two versions"):
        drift_by_age(panel_of([[0], [0]]))
    with pytest.raises(InputError, match="level must be between 0 and 1"):
        drift_by_age(panel, level=95)


# The rounds of MLPerf Inference, and the one in which each workload came in. The results of v0.5
# and v5.0 are not in the table, but they count: ssd and resnet50 were one round old at v0.7.
ROUNDS = (
    *("v0.5", "v0.7", "v1.0", "v1.1", "v2.0", "v2.1", "v3.0"),
    *("v3.1", "v4.0", "v4.1", "v5.0", "v5.1", "v6.0"),
)
FIRST = {
    "v0.5": "resnet50 resnet ssd-mobilenet ssd-small ssd-resnet34",
    "v0.7": "bert dlrm rnnt 3d-unet",
    "v2.0": "3d-unet/kits19",
    "v2.1": "retinanet",
    "v3.1": "gptj dlrm-v2",
    "v4.0": "stable-diffusion-xl llama2-70b",
    "v5.0": "rgat llama3.1-405b",
    "v5.1": "llama3.1-8b deepseek-r1 whisper",
}


@pytest.fixture(scope="module")
def mlperf(shared_data):
    path = shared_data / "longitudinal" / "mlperf_inference" / "mlperf_inference_longitudinal.csv"
    born = {name: ROUNDS.index(at) for at, names in FIRST.items() for name in names.split()}
    series = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["scenario"].lower() == "offline" and row["carried_over"] == "0":
                values = series.setdefault((row["series_id"], row["bench_def"]), {})
                values.setdefault(ROUNDS.index(row["round"]), []).append(float(row["value"]))
    rows = {key: sorted(values.items()) for key, values in series.items() if len(values) > 1}
    names = [re.sub(r"-99(\.9)?(?=/|$)", "", bench) for _, bench in rows]
    panel = panel_of(
        [[-np.log(np.median(value)) for _, value in row] for row in rows.values()],
        version=[[at for at, _ in row] for row in rows.values()],
        versions=len(ROUNDS),
    )
    return panel, [born.get(name, born[name.split("/")[0]]) for name in names]


@pytest.mark.shared
def test_mlperf_by_age(mlperf):
    panel, first = mlperf
    by_age = {drift.age: drift for drift in drift_by_age(panel, first=first)}
    percent = {age: round(100 * drift.median, 1) for age, drift in by_age.items()}
    assert round(percent[0]) == 11
    assert (percent[1], percent[2], percent[3]) == (2.6, 1.4, 0.9)
    assert percent[max(percent)] == 0.6
    assert by_age[0].low > by_age[1].high > by_age[1].low > by_age[2].high
    assert [by_age[age].n for age in range(4)] == [110, 199, 221, 175]


@pytest.mark.shared
def test_mlperf_by_age_since_the_table_starts_is_another_figure(mlperf):
    panel, first = mlperf
    # The table does not know that resnet50 was there at v0.5, nor how old bert was on a system
    # that came later.
    since_table = drift_by_age(panel, first=np.maximum(first, panel.version.min()))
    since_series = drift_by_age(panel)
    assert round(100 * since_table[0].median) == 10
    assert round(100 * since_series[0].median, 1) == 2.2
