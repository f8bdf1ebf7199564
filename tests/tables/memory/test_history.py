"""The table of validations: what goes in, what is refused, how series and versions are found."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.tables import History

GOOD: dict[str, Any] = {
    "version": ["1.10", "1.9", "1.10", "1.9"],
    "op": ["Conv", "Conv", "Gelu", "Gelu"],
    "device": ["cpu"] * 4,
    "measured": [10.1, 10.0, 2.0, 4.0],
}


def table(**changes: Any) -> History:
    data = {**GOOD, **changes}
    return History({k: v for k, v in data.items() if v is not None}, source="h.csv")


def test_columns_become_arrays() -> None:
    history = History(GOOD, unit="ms", source="h.csv")
    assert (history.n, history.n_series, history.unit) == (4, 2, "ms")
    assert history.versions == ("1.9", "1.10")
    assert (history.order_by, history.version.tolist()) == ("number", [1, 0, 1, 0])
    assert history.series_columns == ("device", "op")
    assert history.series_names == ("cpu/Conv", "cpu/Gelu")
    assert history.series.tolist() == [0, 0, 1, 1]
    assert history.predicted is None
    assert history.keys == ("version", "series", "op", "device")
    assert history.column("version").tolist() == GOOD["version"]
    assert history.column("series").tolist() == ["cpu/Conv"] * 2 + ["cpu/Gelu"] * 2
    assert np.isnat(history.date).all()
    assert np.isnan(history.spread).all()
    assert (history.dropped, history.notes) == ((), ())
    assert repr(history) == (
        "History(n=4, series=2, versions=2, keys=('version', 'series', 'op', 'device'), "
        "unit='ms', source='h.csv')"
    )


def test_error_is_the_log_ratio_of_prediction_and_measurement() -> None:
    history = table(predicted=[10.0, 11.0, 3.0, 3.0])
    assert history.error() == pytest.approx(
        [np.log(10 / 10.1), np.log(1.1), np.log(1.5), np.log(0.75)]
    )


def test_without_predictions_the_first_measurement_is_the_prediction() -> None:
    assert table().error() == pytest.approx([np.log(10 / 10.1), 0, np.log(2), 0])
    # Repeats at the first version: their geometric mean. The second series starts later.
    history = History(
        {
            "version": ["1", "1", "2", "2", "3"],
            "op": ["a", "a", "a", "b", "b"],
            "measured": [8.0, 2.0, 1.0, 5.0, 10.0],
        }
    )
    assert history.error() == pytest.approx([-np.log(2), np.log(2), np.log(4), 0.0, -np.log(2)])


def test_series_column_with_level_and_predictor() -> None:
    history = table(
        series=["s"] * 4, level=["kernel", "kernel", "model", "model"], predictor=["p"] * 4
    )
    assert history.series_names == ("s/kernel/p", "s/model/p")
    assert history.condition_columns == ("op", "device")
    assert table(series=[7, 7, 8, 8]).series_names == ("7", "8")


def test_names_of_series_are_never_ambiguous() -> None:
    history = History(
        {"version": ["1"] * 2, "a": ["x/y", "x"], "b": ["z", "y/z"], "measured": [1.0, 2.0]}
    )
    assert history.series_names == ("'x/y'/'z'", "'x'/'y/z'")
    history = History({"version": ["1", "2"], "a": [None, " "], "measured": [1.0, 2.0]})
    assert history.series_names == ("-",)
    assert History({"version": ["1", "2"], "measured": [1.0, 2.0]}).series_names == ("all",)


def test_stack_and_repeats_do_not_name_a_series() -> None:
    history = table(
        stack_cuda=["12.1", "12.0", "12.1", "12.0"], repeat=[1] * 4, predictor_version=["a"] * 4
    )
    assert history.series_names == ("cpu/Conv", "cpu/Gelu")
    assert history.stack.tolist() == [0, 1, 0, 1]


def test_predictor_versions_under_one_version_are_series() -> None:
    history = History(
        {
            "version": ["1", "1", "2", "2"],
            "predictor_version": ["a", "b", "a", "b"],
            "predicted": [1.0, 2.0, 1.0, 2.0],
            "measured": [1.0, 1.0, 1.1, 1.1],
        }
    )
    assert history.series_names == ("a", "b")
    assert "each counts as a separate series" in history.notes[0]


@pytest.mark.parametrize(
    "stamps",
    [
        ["2026-11-20T01:30:00+02:00", "2026-11-19", "2026-11-18T12:00:00", None],
        ["2026-11-20T01:30:00+02:00", "2026-11-19T00:00Z", "", "2026-11-18T07:00:00-05:00"],
    ],
    ids=["mixed", "aware"],
)
def test_text_dates_become_utc(stamps: list[str | None]) -> None:
    if stamps[1] == "2026-11-19":
        with pytest.raises(InputError, match="date mixes times with and without a time zone: "):
            table(date=stamps)
        return
    assert table(date=stamps).date.astype(str).tolist() == [
        "2026-11-19T23:30:00",
        "2026-11-19T00:00:00",
        "NaT",
        "2026-11-18T12:00:00",
    ]


def test_naive_stamps_are_utc_wherever_this_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    stamp = datetime(2026, 7, 1, 12)
    found = table(date=pl.Series([stamp] * 4, dtype=pl.Object)).date
    assert found.astype(str).tolist() == ["2026-07-01T12:00:00"] * 4


EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([date(2026, 7, 1), None] * 2),
        pl.Series([datetime(2026, 7, 1), None] * 2),
        pl.Series([datetime(2026, 7, 1, 2, tzinfo=EAST), None] * 2),
        pl.Series([date(2026, 7, 1), None] * 2, dtype=pl.Object),
        pl.Series(["20260701", " "] * 2),
    ],
    ids=["date", "naive", "aware", "objects", "basic"],
)
def test_typed_dates(column: pl.Series) -> None:
    assert table(date=column).date.astype(str).tolist() == ["2026-07-01T00:00:00", "NaT"] * 2


@pytest.mark.parametrize(
    ("library", "make"),
    [
        ("polars", "DataFrame"),
        pytest.param("pandas", "DataFrame", marks=pytest.mark.extras),
        pytest.param("pyarrow", "table", marks=pytest.mark.extras),
    ],
)
def test_every_kind_of_frame_reads_alike(library: str, make: str) -> None:
    frame = getattr(pytest.importorskip(library), make)
    data = {
        **GOOD,
        "batch": [1, 1, 2, 2],
        "date": [datetime(2026, 7, 1, 2, tzinfo=EAST), None, None, None],
        "released": ["2026-02-01", "2026-01-01"] * 2,
        "n_repeats": [3, None, 1, 2],
        "measured_spread": [0.01, None, 0.02, 0.0],
    }
    history = History(frame(data))
    assert history.series_names == ("1/cpu/Conv", "2/cpu/Gelu")
    assert history.versions == ("1.9", "1.10")
    assert str(history.date[0]) == "2026-07-01T00:00:00"
    assert np.isnat(history.date[1:]).all()
    assert history.runs == pytest.approx([3, np.nan, 1, 2], nan_ok=True)
    assert history.spread == pytest.approx([0.01, np.nan, 0.02, 0.0], nan_ok=True)
    assert history.order_by == "released"


def test_dates_of_versions() -> None:
    history = History(
        {
            "version": ["b", "a", "a", "c"],
            "released": ["2025-02-01", None, None, "2025-03-01"],
            "date": ["2025-06-01", "2025-01-03", "2025-01-02", "2025-06-02"],
            "measured": [1.0, 2.0, 3.0, 4.0],
        }
    )
    assert (history.versions, history.order_by) == (("a", "b", "c"), "date")
    assert history.version_dates.astype("M8[D]").astype(str).tolist() == [
        "2025-01-02",
        "2025-02-01",
        "2025-03-01",
    ]
    # Known of one row is known of its version.
    history = table(released=["2025-02-01", "2025-01-01", None, None])
    assert not np.isnat(history.released).any()


def test_an_order_can_be_given() -> None:
    history = History(GOOD, order=["1.10", "1.9"])
    assert (history.versions, history.order_by) == (("1.10", "1.9"), "order")
    assert history.version.tolist() == [0, 1, 0, 1]


BRANCH = {
    "version": ["c", "a", "b", "a"],
    "op": ["Conv", "Conv", "Conv", "Gelu"],
    "measured": [3.0, 1.0, 2.0, 1.0],
    "day": ["2026-01-02", "2026-01-01", "2026-01-01", "2026-01-01"],
    "position": [1, 10, 9, 10],
}


@pytest.mark.parametrize(
    ("by", "versions", "said"),
    [
        (["day", "position"], ("b", "a", "c"), "columns"),
        ("position", ("c", "b", "a"), "columns"),
        ("rows", ("c", "a", "b"), "rows"),
    ],
)
@pytest.mark.parametrize("text", [False, True])
def test_columns_or_rows_may_order_the_versions(
    by: str | list[str], versions: tuple[str, ...], said: str, text: bool
) -> None:
    position = ["1", "10", "9", "10"] if text else BRANCH["position"]
    history = History({**BRANCH, "position": position}, order_by=by, series=["op"])
    assert (history.versions, history.order_by) == (versions, said)
    assert [history.versions[v] for v in history.version] == BRANCH["version"]


def test_versions_of_a_component_order_by_their_numbers() -> None:
    data = {
        "version": ["main", "main", "dev", "dev"],
        "stack_cuda": ["12.10", "12.9", "12.9", "9.2"],
        "op": ["Conv"] * 4,
        "measured": [1.0, 2.0, 3.0, 4.0],
        "rank": [1, 1, 2, 2],
    }
    history = History(data, order_by=["rank", "stack_cuda"])
    assert history.versions == (
        "main (cuda 12.9)",
        "main (cuda 12.10)",
        "dev (cuda 9.2)",
        "dev (cuda 12.9)",
    )
    assert history.order_by == "columns"
    assert history.version.tolist() == [1, 0, 3, 2]
    numbers = History({**BRANCH, "version": ["1.10", "1.9", "1.9.1", "1.9"]}, order_by="version")
    assert numbers.versions == ("1.9", "1.9.1", "1.10")
    with pytest.raises(
        InputError,
        match=r"h\.csv: cannot order by stack_cuda: 'new' is not a version number\. Order by a col",
    ):
        History(
            {**data, "stack_cuda": ["12.10", "new", "12.9", "9.2"]},
            order_by=["stack_cuda", "rank"],
            source="h.csv",
        )
    two = {**data, "stack_os": ["a1", "a2", "a1", "a2"], "stack_cuda": ["1", "1", "2", "2"]}
    history = History(two, order_by=["stack_cuda", "rank"])
    assert set(history.versions) == {"main (cuda 1)", "dev (cuda 2)"}


def test_columns_that_order_versions_do_not_name_series() -> None:
    history = History(BRANCH, order_by=("day", "position"))
    assert history.series_names == ("Conv", "Gelu")
    assert history.condition_columns == ()


def test_a_failed_validation_needs_no_place_in_the_order() -> None:
    data = {**BRANCH, "status": ["ok", "ok", "ok", "crash"], "position": [1, 10, 9, None]}
    assert History(data, order_by="position", series=["op"]).versions == ("c", "b", "a")


@pytest.mark.parametrize(
    ("by", "changed", "message"),
    [
        ("place", {}, "no column 'place' to order versions by"),
        ("day", {}, "a and b have the same day. Add a column that orders them: --order-by"),
        (
            "position",
            {"position": [1, 10, 9, 11]},
            "version 'a' has several values of position (an",
        ),
        ("position", {"position": [1, 10, 9, 11]}, "(another one in row 4)"),
        ("position", {"position": [1, None, 9, None]}, "position is missing in rows 2, 4."),
        ("day", {"day": ["soon", "b", "c", "b"]}, "day"),
    ],
)
def test_columns_that_do_not_order_the_versions_are_refused(
    by: str, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as error:
        History({**BRANCH, **changed}, order_by=by, series=["op"])
    assert message in str(error.value)


def test_two_orders_are_refused() -> None:
    with pytest.raises(InputError, match="give either 'order' or 'order_by', not both"):
        History(BRANCH, order=["a", "b", "c"], order_by="day")


def test_failed_validations_are_counted() -> None:
    history = table(
        version=[None, "1.9", "1.10", "1.9"],
        measured=["-", "10", "2", "4"],
        date=["never", "2025-01-01", "2025-01-02", "2025-01-03"],
        status=["crash", "ok", "", None],
    )
    assert history.rows.tolist() == [2, 3, 4]
    assert [d.to_dict() for d in history.dropped] == [
        {"reason": "the validation failed (status)", "n": 1, "rows": [1]}
    ]
    assert history.versions == ("1.9", "1.10")
    assert history.column("version").tolist() == ["1.9", "1.10", "1.9"]
    # A version that only failed is not compared.
    assert table(status=["", "crash", "", "crash"]).versions == ("1.10",)


@pytest.mark.parametrize(
    "measured", [[10.0, None, 2.0, 4.0], ["10", " ", "2", "4"], [10, None, 2, 4]]
)
def test_validations_without_a_figure_are_counted(measured: list[Any]) -> None:
    history = table(measured=measured, predicted=[1.0, None, 1.0, 1.0])
    assert history.measured.tolist() == [10, 2, 4]
    assert history.rows.tolist() == [1, 3, 4]
    assert [d.to_dict() for d in history.dropped] == [
        {"reason": "no measurement", "n": 1, "rows": [2]}
    ]
    assert history.versions == ("1.9", "1.10")


def test_a_version_without_any_figure_is_not_compared() -> None:
    history = table(measured=[1.0, None, 2.0, None])
    assert (history.versions, history.n) == (("1.10",), 2)
    # What it says otherwise is not looked at, as of failures.
    odd = table(
        version=["1.9", None, "1.10", "1.9"],
        measured=[1.0, None, 2.0, 3.0],
        date=["2025-01-01", "never", "2025-01-02", "2025-01-03"],
    )
    assert odd.n == 3


def test_several_validations_without_a_figure_are_no_duplicates() -> None:
    history = History({"version": ["1", "1", "1", "2"], "measured": [None, None, 1.0, 2.0]})
    assert (history.n, history.dropped[0].n) == (2, 2)
    with pytest.raises(InputError, match="duplicate validations: rows 3, 4 agree"):
        History({"version": ["1", "1", "1", "1"], "measured": [None, None, 1.0, 1.0]})


@pytest.mark.extras
@pytest.mark.parametrize("column", [[1.0, None, 2.0], [1.0, float("nan"), 2.0]])
def test_what_pandas_calls_missing_is_no_figure(column: list[Any]) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"version": ["1", "1", "2"], "op": ["a", "b", "a"], "measured": column})
    for measured in (frame["measured"], frame["measured"].astype(object)):
        history = History(frame.assign(measured=measured))
        assert [(d.n, d.reason) for d in history.dropped] == [(1, "no measurement")]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("file", "options", "missing"),
    [
        (
            "h2o_db_benchmark/h2o_times.csv.gz",
            {"columns": {"measured": "t1"}, "series": ["solution", "task", "data", "question"]},
            "t1",
        ),
        (
            "mlperf_training/mlperf_training_longitudinal.csv",
            {
                "columns": {"version": "round", "released": "date", "measured": "throughput"},
                "series": ["series_id"],
            },
            "throughput",
        ),
    ],
)
def test_public_tables_are_read_as_they_are(
    shared_data: Path, file: str, options: dict[str, Any], missing: str
) -> None:
    data = pl.read_csv(shared_data / "longitudinal" / file, infer_schema_length=None)
    if "node" in data.columns:
        data = data.filter(pl.col("solution") == "clickhouse")
    n = data[missing].null_count()
    assert n > 0
    history = History(data, **options)
    assert [(d.n, d.reason) for d in history.dropped] == [(n, "no measurement")]
    assert history.n == data.height - n


def test_empty_reserved_columns_are_as_if_absent() -> None:
    nothing = [None] * 4
    history = table(
        predicted=nothing,
        series=nothing,
        date=nothing,
        stack_cuda=nothing,
        unit=nothing,
        predictor_version=nothing,
    )
    assert history.predicted is None
    assert history.series_names == ("cpu/Conv", "cpu/Gelu")


def test_units_may_differ_between_series_only() -> None:
    history = table(unit=["ms", "ms", "us", "us"])
    assert history.unit is None
    assert history.notes == ("series have different units: 'ms', 'us'",)
    assert table(unit=["ms"] * 4).unit == "ms"
    assert History({**GOOD, "unit": ["ms"] * 4}, unit="ms").unit == "ms"
    with pytest.raises(InputError, match=r"mixed units: 'us' and 'ms' in series 'cpu/Conv' \(the"):
        History({**GOOD, "unit": ["ms"] * 4}, unit="us")


def test_selections_keep_the_versions_of_the_table() -> None:
    history = table(predicted=[1.0] * 4, version=["1.10", "1.9", "1.11", "1.9"])
    part = history.where({"op": "Conv"})
    assert (part.versions, part.version.tolist()) == (("1.9", "1.10", "1.11"), [1, 0])
    assert (part.series_names, part.series.tolist()) == (("cpu/Conv",), [0, 0])
    assert part.predicted is not None
    assert part.predicted.tolist() == [1.0, 1.0]
    assert part.column("op").tolist() == ["Conv", "Conv"]
    assert part.native is history.native
    own = part.with_own_versions()
    assert (own.versions, own.version.tolist()) == (("1.9", "1.10"), [1, 0])
    assert len(own.version_dates) == 2
    # The table selected from stays as it was.
    assert (history.n, history.n_series, len(history.versions)) == (4, 2, 3)


def test_values_of_series() -> None:
    history = table(batch=[1, 1, 2, 2])
    assert history.per_series("op").tolist() == ["Conv", "Gelu"]
    assert history.per_series("version").tolist() == [None, None]
    part = table(series=["s"] * 4)
    assert part.per_series("op").tolist() == [None]
    assert part.per_series("device").tolist() == ["cpu"]


def test_repeats_are_rows_that_differ_in_a_value_or_a_number() -> None:
    same = {"version": ["1", "1", "2"], "measured": [5.0, 5.0, 6.0]}
    assert History({**same, "repeat": [1, 2, 1]}).n == 3
    assert History({**same, "date": ["2025-01-01", "2025-01-02", "2025-01-03"]}).n == 3
    assert History({**same, "stack_os": ["a", "b", "a"]}).n == 3
    assert History({**same, "series": ["s"] * 3, "host": ["a", "b", "a"]}).n == 3
    assert History({**same, "measured": [5.0, 5.1, 6.0]}).n == 3
    message = (
        r"duplicate validations: lines 2, 3 agree in series, version, date, repeat and values\. "
        "Remove the copies; if they are repetitions"
    )
    with pytest.raises(InputError, match=message):
        History(same, line_offset=2)
    with pytest.raises(InputError, match="duplicate validations: rows 1, 2 agree"):
        History({**same, "predicted": [1.0, 1.0, 1.0]})
    assert History({**same, "predicted": [1.0, 1.1, 1.0]}).n == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": None}, r"h\.csv: missing column version\. Columns found: op, device, measu"),
        ({"measured": None}, "missing column measured. Columns found"),
        ({"measured": [1.0, 0.0, 1.0, -2.0]}, "measured must be positive and finite, got 0.0 in r"),
        (
            {"measured": [1.0, -1.0, 1.0, 1.0]},
            r"got -1\.0 in row 2\. Errors are computed as ratios: fix the value, or",
        ),
        ({"measured": [1.0, 1.0, float("inf"), 1.0]}, "positive and finite, got inf in row 3"),
        ({"measured": ["1", "x", "1", "1"]}, "measured must be a number, got 'x' in row 2"),
        ({"measured": [1.0, float("nan"), 1.0, 1.0]}, "positive and finite, got nan in row 2"),
        ({"measured": ["1", "n/a", "1", "1"]}, "measured must be a number, got 'n/a' in row 2"),
        ({"measured": [None] * 4}, r"no usable validations \(4 dropped: no measurement\)"),
        (
            {"measured": [None, "1", " ", "1"], "status": ["ok", "crash", "ok", "crash"]},
            r"no usable validations \(2 dropped: the validation failed \(status\); 2 dropped: "
            r"no measurement; rows 2, 4 with status 'crash'",
        ),
        ({"predicted": [1.0, 0.0, 1.0, 1.0]}, "predicted must be positive and finite, got 0.0 in"),
        ({"predicted": [1.0, None, 1.0, 1.0]}, "predicted is missing in row 2"),
        ({"version": ["1.9", "", None, "1.9"]}, "version is missing in rows 2, 3. Fill it in"),
        (
            {"version": [1.9, 1.1, 1.1, 1.9]},
            "version must be text, got the number 1.9: as numbers, 1.1 and 1",
        ),
        ({"version": ["x", "y", "x", "y"]}, "h.csv: the versions cannot be ordered: no"),
        ({"series": ["a", None, "a", " "]}, "series is missing in rows 2, 4. Fill it in, or drop"),
        ({"unit": ["ms", "us", "ms", "ms"]}, "mixed units: 'ms' and 'us' in series 'cpu/Conv' "),
        ({"unit": ["ms", "", "ms", "ms"]}, "mixed units: 'ms' and no unit in series 'cpu/Conv'"),
        (
            {"date": ["2025-01-01", "soon", "2025-01-01", "soon"]},
            r"date must be a date or a timestamp",
        ),
        (
            {"date": [1, 2, 3, 4]},
            r"date must be a date or a timestamp .*, got '1' in rows 1, 2, 3",
        ),
        ({"date": [["a"]] * 4}, r"date must be a date .*, got .* in rows 1, 2, 3 \(and 1 more\)"),
        (
            {"released": ["2025-01-01", "2025-01-02", "2025-01-03", "2025-01-02"]},
            "version '1.10' has two release dates: 2025-01-01T00:00:00 and 2025-01-03T00:00:00 .the"
            " second in row 3.. Fix one",
        ),
        ({"measured_spread": [0.1, -0.1, 0.1, 0.1]}, "measured_spread must be a relative standard"),
        ({"n_repeats": [1, 2, 2.5, 2]}, r"n_repeats must be a whole number ≥ 1, got 2\.5 in row 3"),
        ({"n_repeats": [0, 2, 2, 2]}, "n_repeats must be a whole number ≥ 1, got 0.0 in row 1"),
        (
            {"op": [["a"]] * 4},
            "the values of op are lists or similar, but the column identifies what was vali",
        ),
        ({"status": ["crash"] * 4}, r"no usable validations \(4 dropped: the validation fail"),
    ],
)
def test_bad_tables_say_where(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        table(**changes)


@pytest.mark.extras
def test_lists_in_frames_of_objects_are_refused_too() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**GOOD, "op": [["a"], ["b"], ["a"], ["b"]]})
    with pytest.raises(InputError, match="the values of op are lists or similar"):
        History(frame)


def test_an_empty_table() -> None:
    with pytest.raises(InputError, match="no usable validations .the table is empty"):
        History({"version": [], "measured": []})


def test_columns_are_renamed() -> None:
    history = History(
        {"round": ["v1", "v2"], "tput": [1.0, 2.0]},
        columns={"version": "round", "measured": "tput"},
    )
    assert (history.versions, history.measured.tolist()) == (("v1", "v2"), [1.0, 2.0])


def test_columns_may_be_named_that_name_the_series() -> None:
    data = {
        "version": ["1", "1", "2", "2"],
        "op": ["Gelu", "Conv"] * 2,
        "p90": [1.5, 2.5, 1.6, 2.6],
        "measured": [1.0, 2.0, 1.1, 2.1],
    }
    assert History(data).n_series == 4
    history = History(data, series=["op"])
    assert history.series_names == ("Conv", "Gelu") or history.series_names == ("Gelu", "Conv")
    assert history.per_series("p90").tolist() == [None, None]
    assert History(data, series="op").n_series == 2
    with pytest.raises(
        InputError, match="no column 'kind' that can name a series. Columns: op, p90"
    ):
        History(data, series=["kind"])
    with pytest.raises(InputError, match="no column 'measured' that can name a series"):
        History(data, series=["op", "measured"])
