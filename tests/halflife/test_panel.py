"""From a history to a panel: means, their noise, clocks, clusters, what is left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.halflife.panel import moved, panel_of
from errcomp.tables import History

PREDICTED = {
    "version": ["1", "1", "2", "2", "3", "1", "3"],
    "op": ["a", "a", "a", "a", "a", "b", "b"],
    "measured": [1.0, 1.2, 2.0, 2.4, 3.0, 5.0, 5.5],
    "predicted": [1.1, 1.1, 1.1, 1.1, 2.2, 5.0, 5.0],
}


def history(**changes):
    data = {**PREDICTED, **changes}
    return History({k: v for k, v in data.items() if v is not None}, source="h.csv")


def test_errors_are_means_over_repeats():
    datadata = panel_of(history())
    panel = datadata.panel
    assert panel.names == ("a", "b")
    assert panel.versions == ("1", "2", "3")
    assert panel.starts.tolist() == [0, 3, 5]
    assert panel.version.tolist() == [0, 1, 2, 0, 2]
    a = np.log(PREDICTED["predicted"]) - np.log(PREDICTED["measured"])
    assert panel.error == pytest.approx([a[:2].mean(), a[2:4].mean(), a[4], a[5], a[6]])
    assert not panel.frozen_at_first
    assert datadata.n_repeats.tolist() == [2, 2, 1, 1, 1]
    assert datadata.series.tolist() == [0, 1]
    assert panel.clusters.tolist() == [0, 1]
    assert np.isnan(panel.months).all()


def test_noise_of_a_row_is_that_of_a_mean():
    datadata = panel_of(history())
    sd = np.log(1.2) / np.sqrt(2)
    assert datadata.noise.series_sd[0] == pytest.approx(sd)
    assert datadata.panel.sd[:3] == pytest.approx([sd / np.sqrt(2), sd / np.sqrt(2), sd])
    # The other series has no repeats, and two degrees of freedom say nothing of it.
    assert np.isnan(datadata.panel.sd[3:]).all()
    assert datadata.panel.noise_df.tolist() == [2.0, 0.0]


def test_without_predictions_errors_start_from_zero():
    datadata = panel_of(history(predicted=None))
    panel = datadata.panel
    assert panel.frozen_at_first
    first = np.log([1.0, 1.2]).mean()
    assert panel.error == pytest.approx(
        [0, first - np.log([2.0, 2.4]).mean(), first - np.log(3), 0, np.log(5 / 5.5)]
    )
    # The noise of the first measurement stands at its row, although the error there is 0.
    assert panel.sd[0] == pytest.approx(np.log(1.2) / 2)
    assert np.isnan(datadata.log_predicted).all()


def test_the_panel_agrees_with_the_errors_of_the_table():
    table = history(predicted=None)
    error = table.error()
    panel = panel_of(table).panel
    cells = table.series * 3 + table.version
    means = [error[cells == c].mean() for c in np.unique(cells)]
    assert panel.error == pytest.approx(means)


def test_what_moved_adds_up_to_the_change_of_the_error():
    datadata = panel_of(history())
    split = moved(datadata)
    first = np.repeat(datadata.panel.error[datadata.panel.starts[:-1]], [3, 2])
    assert split.reference + split.predictor == pytest.approx(datadata.panel.error - first)
    assert split.predictor == pytest.approx([0, 0, np.log(2), 0, 0])
    frozen = panel_of(history(predicted=None))
    split = moved(frozen)
    assert split.predictor.tolist() == [0.0] * 5
    assert split.reference == pytest.approx(frozen.panel.error)


def test_series_of_one_version_are_left_out_and_counted():
    datadata = panel_of(history(op=["a"] * 5 + ["b", "c"], status=[""] * 4 + ["crash"] + [""] * 2))
    assert datadata.panel.names == ("a",)
    assert [(d.reason, d.n, d.rows) for d in datadata.dropped] == [
        ("the validation failed (status)", 1, (5,)),
        ("their series has only one version", 2, (6, 7)),
    ]
    assert datadata.series.tolist() == [0]
    assert (
        "no series was validated under 1 of the 3 versions; it still counts as a"
        in (datadata.notes[-1])
    )
    assert datadata.panel.version.tolist() == [0, 1]


def test_carried_over_results_are_left_out():
    datadata = panel_of(
        History({"version": ["1", "2", "3"], "measured": [26.441, 26.441, 27.5], "op": ["a"] * 3})
    )
    assert datadata.panel.version.tolist() == [0, 2]
    assert datadata.dropped[0].reason.startswith("carried over")


DATED = {"version": ["1.0", "1.1", "2.0"], "op": ["a"] * 3, "measured": [1.0, 2.0, 3.0]}


def test_months_since_the_first_version():
    table = History({**DATED, "released": ["2024-01-01", "2024-07-01", "2025-01-01"]})
    panel = panel_of(table).panel
    assert panel.months == pytest.approx(np.array([0, 182, 366]) * 12 / 365.25)
    assert panel.times("months") == pytest.approx(panel.months)
    assert panel.times("releases").tolist() == [0, 1, 2]
    by_validation = History({**DATED, "date": ["2024-01-01", "2024-07-01", "2025-01-01"]})
    assert panel_of(by_validation).panel.months == pytest.approx(panel.months)


@pytest.mark.parametrize(
    ("released", "note"),
    [
        (["2024-01-01", None, "2025-01-01"], "1 of 3 versions have no date, e.g. '1.1'"),
        (None, None),
    ],
)
def test_no_clock_without_dates(released, note):
    datadata = panel_of(History({**DATED, "released": released}))
    assert np.isnan(datadata.panel.months).all()
    assert [n for n in datadata.notes if "in months" in n] == (
        [f"no half-lives in months: {note}"] if note else []
    )


def test_no_clock_where_time_runs_backwards():
    table = History(
        {**DATED, "released": ["2024-01-01", "2025-07-01", "2025-01-01"]}, order=DATED["version"]
    )
    datadata = panel_of(table)
    assert np.isnan(datadata.panel.months).all()
    assert (
        "no half-lives in months: 2.0 comes before 1.1 by date, but after it in the order of "
        "versions" in datadata.notes
    )


def test_clusters_are_values_of_a_key():
    model = ["x"] * 5 + ["y"] * 2
    assert panel_of(history(model=model), cluster="model").panel.clusters.tolist() == [0, 1]
    assert panel_of(history(model=["x"] * 7), cluster="model").panel.clusters.tolist() == [0, 0]
    with pytest.raises(
        InputError, match=r"h\.csv: cannot cluster by version: series 'a' has several values"
    ):
        panel_of(history(), cluster="version")
    with pytest.raises(InputError, match="no column 'gpu'"):
        panel_of(history(), cluster="gpu")


def test_one_version_or_none_twice():
    with pytest.raises(
        InputError, match=r"h\.csv: all validations were made under one version, '1'\."
    ):
        panel_of(history(version=["1"] * 7))
    with pytest.raises(InputError, match=r"all validations were made under one version, '2'\."):
        panel_of(history().where({"version": "2"}))
    gap = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    message = (
        r"h\.csv: no series was validated under two versions: 7 series in 7 rows\. Series are "
        r"identified by 2 columns, including gap \(7 values\), op \(2 values\)\. Leave out columns"
    )
    with pytest.raises(InputError, match=message):
        panel_of(history(gap=gap))


def test_notes_on_products_and_stacks():
    datadata = panel_of(
        History(
            {
                "version": ["1", "1", "2", "7", "8"],
                "series": ["a", "a", "a", "b", "b"],
                "stack_os": ["x", "y", "x", "x", "x"],
                "measured": [1.0, 1.2, 2.0, 3.0, 4.0],
            }
        )
    )
    assert datadata.notes[1].startswith("the series form 2 groups that share no version. If these")
    assert datadata.notes[2].startswith(
        "in 1 case a series was validated under one version with several"
    )
    assert datadata.noise.source == "none"
    # A stack that moves with the version is no second stack under it.
    moving = History({"version": ["1", "2"], "stack_os": ["x", "y"], "measured": [1.0, 1.1]})
    assert not any("stack" in note for note in panel_of(moving).notes)


# Real tables


def series_of(table, name):
    return panel_of(table.where({"series": name})).panel.error


@pytest.mark.shared
def test_mlperf_inference(shared_data):
    path = shared_data / "longitudinal/mlperf_inference/embedded_candidate.csv"
    columns = {"version": "round", "measured": "value", "series": "series_id", "released": "date"}
    table = History(pl.read_csv(path, infer_schema_length=None), columns=columns, source="mlperf")
    assert (table.n, table.n_series, table.order_by) == (677, 195, "released")
    assert " ".join(table.versions) == "v0.7 v1.0 v1.1 v2.0 v2.1 v3.0 v3.1 v4.0 v4.1"
    with pytest.raises(
        InputError, match="cannot cluster by system_name: series '1201' has several values"
    ):
        panel_of(table, cluster="system_name")
    datadata = panel_of(table, cluster="submitter")
    assert (datadata.panel.n_series, len(datadata.panel.error), datadata.dropped) == (195, 677, ())
    assert datadata.panel.clusters.max() < 194
    assert datadata.panel.months[-1] == pytest.approx(46.2, abs=0.1)
    assert datadata.noise.source == "none"
    # First and later rounds of series 421, as they stand in the file.
    later = np.array([6407.51, 6470.04])
    assert series_of(table, "421")[1:3] == pytest.approx(np.log(6239.17 / later))


@pytest.mark.shared
def test_mlperf_training(shared_data):
    path = shared_data / "longitudinal/mlperf_training/mlperf_training_longitudinal.csv"
    frame = pl.read_csv(path, infer_schema_length=None)
    columns = {
        "version": "round",
        "measured": "throughput",
        "series": "series_id",
        "released": "date",
        "measured_spread": "throughput_cv",
        "n_repeats": "n_runs",
    }
    table = History(frame, columns=columns)
    (blank,) = table.dropped
    assert (blank.n, blank.reason, blank.rows) == (26, "no measurement", (34, 35, 36))
    datadata = panel_of(table)
    assert [d.n for d in datadata.dropped] == [26, 51, 51]
    assert datadata.noise.source == "measured_spread"
    # Repeat noise of 0.16 % in the median of submissions, as the makers of the table found.
    assert 0.001 < datadata.noise.sd < 0.004
    assert any("repeats of one series and version differ in system_id" in n for n in datadata.notes)
    assert np.isfinite(datadata.panel.sd).all()


@pytest.mark.shared
def test_a_simulator_over_its_own_commits(shared_data):
    path = shared_data / "tools/llmservingsim/validation_summary_history.csv"
    frame = pl.read_csv(path).drop("diff_pct_as_stated")
    columns = {
        "version": "commit",
        "released": "commit_date",
        "measured": "vllm_ms",
        "predicted": "sim_ms",
    }
    message = (
        "da26736bebe5, 5daddb21a545 share one release date, 2026-08-21; not a version number: 301"
    )
    with pytest.raises(InputError, match=message):
        History(frame, columns=columns)
    order = frame["commit"].unique(maintain_order=True).to_list()
    datadata = panel_of(History(frame, columns=columns, order=order))
    assert datadata.panel.n_series == 45
    # The predictor moved, and the reference was never measured again.
    split = moved(datadata)
    assert np.abs(split.reference).max() == 0
    assert 0.03 < np.abs(split.predictor).max() < 0.031
    assert [d.n for d in datadata.dropped] == [33, 75]
    assert datadata.notes[1].startswith(
        "122 predictions are compared with a measurement of an earlier"
    )


@pytest.mark.shared
def test_onnx_runtime(shared_data):
    path = shared_data / "longitudinal/ort_cpu_preview/e2e.csv"
    frame = pl.read_csv(path)
    columns = {"released": "build_date", "measured": "e2e_median_us", "repeat": "round"}
    with pytest.raises(
        InputError, match="no series was validated under two versions: 168 series in"
    ):
        panel_of(History(frame, columns=columns))
    part = frame.select("version", "build_date", "model", "round", "e2e_median_us")
    datadata = panel_of(History(part, columns=columns))
    assert (datadata.panel.names, len(datadata.panel.versions)) == (("cnn", "tfm"), 21)
    assert (datadata.noise.df, datadata.dropped) == (126.0, ())
    # 6 to 8 % after effects of rounds are taken out, as measured there; they are left in here.
    assert 0.06 < datadata.noise.sd < 0.12
    assert datadata.panel.sd == pytest.approx(np.repeat(datadata.noise.series_sd, 21) / 2)


@pytest.mark.shared
def test_db_benchmark(shared_data):
    path = shared_data / "longitudinal/h2o_db_benchmark/h2o_times.csv.gz"
    frame = pl.read_csv(path, infer_schema_length=None).drop_nulls("t1").drop("git", "t2")
    table = History(frame, columns={"measured": "t1", "repeat": "batch"}, unit="s")
    # Twelve products, each with versions of its own: select one.
    pandas = table.where({"solution": "pandas"}).with_own_versions()
    assert (len(pandas.versions), pandas.versions[0], pandas.versions[-1]) == (
        22,
        "0.23.4",
        "1.2.5",
    )
    datadata = panel_of(pandas)
    assert datadata.noise.source == "repeats on several dates"
    # Re-runs of one version scatter between dates: the machine changed.
    assert datadata.noise.date_share > 0.4
    assert datadata.panel.n_series == 224
    assert any("groups that share no version" in note for note in panel_of(table).notes)


@pytest.mark.shared
def test_megatron(shared_data):
    path = shared_data / "longitudinal/megatron_bridge/nemo_release_perf.csv"
    frame = pl.read_csv(path, infer_schema=False)
    keys = ["model", "task", "system", "gpus", "precision", "gbs", "seqlen"]
    table = History(
        frame.select("release", *keys, pl.col("tokens_s_gpu").alias("measured")),
        columns={"version": "release"},
        unit="tokens/s",
    )
    assert table.order_by == "number"
    assert table.versions[2:5] == ("26.02", "26.02.01", "26.04")
    datadata = panel_of(table)
    # 48 of 111 configurations have two releases, as its makers counted; four values stayed.
    assert (table.n_series, datadata.panel.n_series) == (111, 48)
    assert datadata.dropped[0].n == 4
