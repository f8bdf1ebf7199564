"""The history store: the same in a file and on a server."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.halflife.store import Added, HistoryStore, StoredHistory
from errcomp.tables import History


def checked(**changed: Any) -> pl.DataFrame:
    """Two operators under three versions, with everything that a table may have."""
    columns: dict[str, Any] = {
        "version": ["1.9", "1.10", "1.11"] * 2,
        "op": ["Conv"] * 3 + ["Gelu"] * 3,
        "batch": [8, 8, 8, 16, 16, 16],
        "measured": [10.0, 10.1, 0.1 + 0.2, 4.0, 2.0, 1e-300],
        "predicted": [10.5] * 3 + [4.25] * 3,
        "predictor": "roofline",
        "predictor_version": "0.3",
        "date": [f"2026-0{month}-01T10:00:00+02:00" for month in (1, 2, 3)] * 2,
        "released": ["2025-12-01", "2026-01-15", "2026-02-20"] * 2,
        "level": "kernel",
        "measured_spread": [0.01, 0.02, None] * 2,
        "n_repeats": [25, 25, None] * 2,
        "stack_cuda": "12.10",
        "unit": "ms",
    }
    return pl.DataFrame(columns | changed)


def more(**changed: Any) -> pl.DataFrame:
    """A later version of both operators."""
    return (
        checked()[[0, 3]]
        .with_columns(
            version=pl.lit("1.12"),
            released=pl.lit("2026-05-05"),
            date=pl.lit("2026-06-01T08:00:00Z"),
        )
        .with_columns(**{name: pl.lit(value) for name, value in changed.items()})
    )


def test_what_was_added_comes_back(place: str) -> None:
    given = History(checked())
    with HistoryStore(place) as store:
        assert store.add(given) == Added(6, 0)
        assert store.add(more()) == Added(2, 0)
        loaded = store.load()
    assert loaded.n == 8
    assert loaded.versions == ("1.9", "1.10", "1.11", "1.12")
    assert loaded.order_by == "released"
    assert loaded.unit == "ms"
    assert loaded.measured[:6].tobytes() == given.measured.tobytes()
    assert loaded.predicted is not None
    assert loaded.predicted.tolist() == [10.5] * 3 + [4.25] * 3 + [10.5, 4.25]
    assert loaded.date[:3].astype(str).tolist() == [
        f"2026-0{month}-01T08:00:00" for month in (1, 2, 3)
    ]
    assert (loaded.released[:6] == given.released).all()
    assert loaded.spread[:2].tolist() == [0.01, 0.02]
    assert np.isnan(loaded.spread[2])
    assert loaded.runs[:2].tolist() == [25, 25]
    assert loaded.series_names == given.series_names
    assert loaded.column("op").tolist() == ["Conv"] * 3 + ["Gelu"] * 3 + ["Conv", "Gelu"]
    assert loaded.native.schema["batch"] == pl.Int64
    assert loaded.native["stack_cuda"].unique().to_list() == ["12.10"]
    assert list(loaded.native.columns) == checked().columns


def test_numbers_come_back_to_the_last_bit(place: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(1, 0x7FEFFFFFFFFFFFFF, 3000, dtype=np.uint64).view(float)
    values = [*bits.tolist(), 5e-324, 1.7976931348623157e308, 2.0**53 + 2, 1 / 3]
    key = [*(-bits).tolist(), -5e-324, 0.1 + 0.2, 2.0**60, 4.0]
    frame = pl.DataFrame({"version": "1", "measured": values, "key": key, "predicted": values})
    with HistoryStore(place) as store:
        store.add(frame)
        store.export(tmp_path / "out.csv")
        store.import_file(tmp_path / "out.csv", name="csv")
        for name in ("default", "csv"):
            loaded = store.load(name=name)
            assert loaded.measured.tolist() == values
            assert loaded.predicted is not None
            assert loaded.predicted.tolist() == values
            assert loaded.column("key").tolist() == key


TEXTS = (
    "plain", "日本語 ß é", "e\u0301", "𝔘𝔫𝔦", "a\tb", "a\nb\r\nc", "\\", "\\N", "\\.", "a\n\\.\nb",
    "'; DROP TABLE errcomp_history; --", '"quoted, with comma"', "null", "NaN", "{}", "%s", ":x",
    "\ud7ff\ue000\U0010ffff", "\u202eabc", "\x01",
)  # fmt: skip


def test_any_text_comes_back(place: str) -> None:
    frame = pl.DataFrame(
        {"version": "1", "series": TEXTS, "note": TEXTS, 'odd "key"\n': TEXTS, "measured": 1.0}
    )
    with HistoryStore(place) as store:
        store.add(frame, name="naïve; 日本")
        loaded = store.load(name="naïve; 日本")
        assert loaded.column("series").tolist() == list(TEXTS)
        assert loaded.column("note").tolist() == list(TEXTS)
        assert loaded.column('odd "key"\n').tolist() == list(TEXTS)
        assert store.add(frame, name="naïve; 日本", skip_known=True) == Added(0, len(TEXTS))


def test_histories_are_apart(place: str) -> None:
    with HistoryStore(place) as store:
        assert store.list() == () if "://" in place else True
        store.add(checked(), name="b")
        store.add(more(predictor="other"), name="a")
        store.add(more(), name="b")
        store.add(pl.DataFrame({"version": ["x"], "measured": [1.0]}), name="c")
        assert store.list() == (
            StoredHistory("a", 2, 2, 1, ("other",), "2026-06-01T08:00:00Z", "2026-06-01T08:00:00Z"),
            StoredHistory(
                "b", 8, 2, 4, ("roofline",), "2026-01-01T08:00:00Z", "2026-06-01T08:00:00Z"
            ),
            StoredHistory("c", 1, 1, 1, (), None, None),
        )
        assert store.load(name="a").n == 2
        assert store.load(name="c").n == 1
        with pytest.raises(InputError, match="unknown history 'B'. Histories: a, b, c"):
            store.load(name="B")


def test_series_are_counted_as_a_history_counts_them(place: str) -> None:
    frame = pl.DataFrame(
        {
            "version": ["1", "2"] * 3,
            "series": ["a", "a", "a", "a", "b", "b"],
            "level": ["kernel", "kernel", "model", "model", "kernel", "kernel"],
            "note": list("uvwxyz"),
            "measured": 1.5,
        }
    )
    with HistoryStore(place) as store:
        store.add(frame)
        assert store.list()[0].series == store.load().n_series == 3


def test_a_validation_that_is_there_is_refused_or_skipped(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        both = pl.concat([more()[:1], checked(), more()[1:]])
        with pytest.raises(
            InputError,
            match=r"duplicate validations: 6 of 8 are already in the store "
            r"\(rows 2, 3, 4 \(and 3 more\)\). Nothing was added.*skip_known=True \(--skip-known\)",
        ):
            store.add(both)
        assert store.load().n == 6
        assert store.add(both, skip_known=True) == Added(2, 6)
        assert store.load().n == 8
        assert store.add(both, skip_known=True) == Added(0, 8)
        # The same under another name is another validation.
        assert store.add(both, name="other") == Added(8, 0)


def test_identity_does_not_depend_on_how_a_table_was_written(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        same = checked().with_columns(
            pl.col("batch").cast(pl.Float64),
            pl.col("op").cast(pl.Categorical),
            (pl.col("predictor") + "  "),
            date=pl.col("date").str.to_datetime(time_zone="Asia/Tokyo"),
            empty=pl.lit(None),
        )
        same = same.select(sorted(same.columns, reverse=True))[::-1]
        assert store.add(same, skip_known=True) == Added(0, 6)


@pytest.mark.parametrize(
    "changed",
    [
        {"op": "Relu"},
        {"batch": 9},
        {"new_key": "x"},
        {"version": "1.13"},
        {"level": "model"},
        {"predictor": "learned"},
        {"predictor_version": "0.4"},
        {"stack_cuda": "12.1"},
        {"stack_driver": "550"},
        {"date": "2026-06-01T08:00:01Z"},
        {"repeat": 2},
    ],
)
def test_identity_depends_on_what_makes_a_validation(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    with HistoryStore(tmp_path / "h.db") as store:
        store.add(more()[:1])
        fresh = more()[:1].with_columns(**{name: pl.lit(v) for name, v in changed.items()})
        if "version" in changed:
            fresh = fresh.drop("released")
        assert store.add(fresh, skip_known=True) == Added(1, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"measured": 11.0}, r"measured is 10.0 in the store, but 11.0 in row 1\."),
        ({"predicted": 1.0}, r"predicted is 10.5 in the store, but 1.0 in row 1\."),
        ({"measured_spread": None}, r"measured_spread is 0.01 in the store, but None in row 1\."),
        ({"n_repeats": 3}, r"n_repeats is 25 in the store, but 3 in row 1\."),
        ({"status": "ok"}, r"status is None in the store, but ok in row 1\."),
    ],
)
def test_another_value_is_refused(place: str, changed: dict[str, Any], message: str) -> None:
    with HistoryStore(place) as store:
        store.add(more())
        for skip in (False, True):
            with pytest.raises(
                InputError, match=f"the store has other values for rows 1, 2: {message}"
            ):
                store.add(more(**changed), skip_known=skip)
        assert store.load().n == 2


def test_repeats_without_a_number_come_together(place: str) -> None:
    repeats = pl.DataFrame({"version": "1", "op": "a", "measured": [1.0, 1.1, 1.2]})
    with HistoryStore(place) as store:
        assert store.add(repeats) == Added(3, 0)
        assert store.load().measured.tolist() == [1.0, 1.1, 1.2]
        assert store.add(repeats[[2, 0]], skip_known=True) == Added(0, 2)
        with pytest.raises(
            InputError, match="has other values for row 3: .*a number in a column 'repeat'"
        ):
            store.add(repeats.with_columns(measured=pl.Series([1.2, 1.0, 1.3])), skip_known=True)
        assert store.add(repeats.with_columns(repeat=pl.Series([7, 8, 9]))) == Added(3, 0)
        assert store.load().native["repeat"].to_list() == [None, None, None, 7, 8, 9]


def test_what_history_refuses_is_not_written(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        for bad in (
            more(measured=-1.0),
            pl.concat([more(), more()]),
            more().drop("version"),
            more(date="yesterday"),
            more(unit="ms").with_columns(released=pl.Series(["2026-01-01", "2026-01-02"])),
        ):
            with pytest.raises(InputError):
                store.add(bad)
        assert store.load().n == 6


def test_one_bad_row_of_many_leaves_nothing(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        with pytest.raises(InputError, match="the store has other values for"):
            store.add(pl.concat([more(), checked()[:1].with_columns(measured=pl.lit(7.0))]))
        stored = store.list()[0]
        assert (stored.validations, stored.versions) == (6, 3)


def test_mixed_units_are_refused(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        for unit, shown in (("us", "'us'"), (None, "no unit")):
            with pytest.raises(
                InputError,
                match=f"mixed units: 'ms' in the store, but {shown} in row 1 of the same series",
            ):
                store.add(more(unit=unit))
        # Another series may have another unit: ratios do not mind.
        store.add(more(unit="img/s", op="Throughput")[:1])
        assert store.load().unit is None


def test_units_of_named_series_and_of_failures(place: str) -> None:
    named = pl.DataFrame(
        {"version": "1", "series": list("abc"), "note": "x", "measured": 1.0,
         "unit": ["ms", None, "img/s"], "status": ["ok", "crashed", "ok"]}
    )  # fmt: skip
    with HistoryStore(place) as store:
        store.add(named)
        later = named.with_columns(
            version=pl.lit("2"), note=pl.lit("y"), status=pl.lit("ok"), unit=pl.col("unit")
        ).with_columns(unit=pl.col("unit").fill_null("ms"))
        # Series b failed without a unit, and has one now.
        store.add(later)
        with pytest.raises(InputError, match="mixed units: 'ms' in the store, but 's' in row 2"):
            store.add(later.with_columns(version=pl.lit("3"), unit=pl.Series(["ms", "s", "img/s"])))
        loaded = store.load()
        assert loaded.n == 5
        assert [part.n for part in loaded.dropped] == [1]


def test_a_release_date_that_differs_is_refused_and_one_that_lacked_is_added(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked().drop("released"))
        assert store.load().order_by == "number"
        store.add(checked(op="Relu"))
        assert store.load().order_by == "released"
        with pytest.raises(
            InputError,
            match="conflicting release dates of version '1.9': 2025-12-01T00:00:00Z in the store, "
            "2025-11-01T00:00:00Z in rows 1, 4. Fix",
        ):
            store.add(checked(op="Add", released=["2025-11-01", "2026-01-15", "2026-02-20"] * 2))


def test_columns_that_all_rows_need(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        with pytest.raises(
            InputError,
            match="the history 'default' has a column 'predicted', but the table does not: either",
        ):
            store.add(more().drop("predicted"))
        with pytest.raises(
            InputError, match="the table has a column 'series', but the history 'default' does not"
        ):
            store.add(more(series="s"))


def test_columns_that_change_their_kind_hold_all_values(place: str) -> None:
    with HistoryStore(place) as store:
        base = {"version": ["1"], "measured": [1.0]}
        store.add({**base, "a": [8], "b": [1.5], "c": [True], "repeat": [1]})
        store.add({**base, "a": [2.5], "b": [4], "c": [False], "repeat": [1.5]})
        frame = store.load().native
        assert frame["a"].to_list() == [8.0, 2.5]
        assert frame["b"].to_list() == [1.5, 4.0]
        assert frame["c"].to_list() == [True, False]
        assert frame["repeat"].to_list() == [1.0, 1.5]
        store.add({**base, "a": ["8x"], "b": ["x"], "c": ["x"], "repeat": ["x"]})
        frame = store.load().native
        assert frame["a"].to_list() == ["8", "2.5", "8x"]
        assert frame["b"].to_list() == ["1.5", "4", "x"]
        assert frame["c"].to_list() == ["true", "false", "x"]
        assert frame["repeat"].to_list() == ["1", "1.5", "x"]
        # What is text now is still what it was.
        assert store.add({**base, "a": [8], "b": [1.5], "c": [True], "repeat": [1]},
                         skip_known=True) == Added(0, 1)  # fmt: skip


def test_failed_validations_are_kept_as_failed(place: str) -> None:
    frame = checked(
        status=["ok", "", None, "timeout", "crashed", "success"],
        measured=["10", "10.5", "11", "oops", "-1", "12"],
        n_repeats=[1, 2, 3, None, 1, 1],
    )
    with HistoryStore(place) as store:
        assert store.add(frame) == Added(6, 0)
        loaded = store.load()
        assert loaded.measured.tolist() == [10, 10.5, 11, 12]
        assert [(part.n, part.reason) for part in loaded.dropped] == [
            (2, "the validation failed (status)")
        ]
        assert loaded.native["status"].to_list() == ["ok", None, None, "timeout", "crashed",
                                                    "success"]  # fmt: skip
        assert loaded.native["measured"].to_list() == [10, 10.5, 11, None, -1, 12]
        assert store.add(frame, skip_known=True) == Added(0, 6)
        # A selection holds those only that did not fail.
        part = History(frame).where({"op": "Gelu"})
        assert store.add(part, name="part") == Added(1, 0)


def test_validations_without_a_figure_are_kept_as_such(place: str) -> None:
    frame = checked(
        status=["ok", "", None, "timeout", "ok", None],
        measured=["10", "", "11", None, None, "12"],
    )
    with HistoryStore(place) as store:
        assert store.add(frame) == Added(6, 0)
        loaded = store.load()
        assert loaded.measured.tolist() == [10, 11, 12]
        dropped = [(part.n, part.reason) for part in loaded.dropped]
        assert dropped == [(1, "the validation failed (status)"), (2, "no measurement")]
        assert loaded.native["measured"].to_list() == [10, None, 11, None, None, 12]
        assert store.add(frame, skip_known=True) == Added(0, 6)
        # What was stored can be stored again: nothing is lost, nothing new.
        assert store.add(loaded, skip_known=True) == Added(0, 6)
        assert store.add(loaded, name="copy") == Added(6, 0)
        assert store.load(name="copy").native.equals(loaded.native)
        # A figure that comes later is another value.
        later = frame.with_columns(measured=pl.Series(["10", "10.5", "11", None, "1", "12"]))
        with pytest.raises(InputError, match="the store has other values for rows 2, 5"):
            store.add(later, skip_known=True)
        assert store.add(loaded.where({"op": loaded.column("op")[0]}), name="part").n < 6


def test_a_selection_loads_and_adds_its_rows_only(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(History(checked()).where({"op": "Gelu", "version": ["1.10", "1.11"]}))
        assert store.load().measured.tolist() == [2.0, 1e-300]
        store.add(checked(), skip_known=True)
        loaded = store.load(where={"op": "Gelu", "batch": 16})
        assert loaded.measured.tolist() == [2.0, 1e-300, 4.0]
        assert loaded.selection == {"op": ("Gelu",), "batch": ("16",)}
        with pytest.raises(InputError, match="no row has op=Gem"):
            store.load(where={"op": "Gem"})


def test_versions_without_an_order_need_one(place: str) -> None:
    with HistoryStore(place) as store:
        for name, value in (("beef", 1.0), ("cafe", 2.0)):
            store.add({"version": [name], "measured": [value]})
        with pytest.raises(InputError, match="order"):
            store.load()
        assert store.load(order=["cafe", "beef"]).versions == ("cafe", "beef")


def test_dates_are_utc_whatever_they_were(place: str) -> None:
    east = timezone(timedelta(hours=9))
    given = (
        pl.Series([date(2026, 1, 1)]),
        pl.Series([datetime(2026, 1, 1, 12, tzinfo=east)]),
        pl.Series([datetime(2026, 1, 2, 3, 4, 5, 678901)]),
        pl.Series(["2026-01-03T00:00:00-05:00"]),
        pl.Series(["0999-12-31"]),
    )
    with HistoryStore(place) as store:
        for i, dates in enumerate(given):
            store.add({"version": ["1"], "op": [i], "measured": [1.0], "date": dates})
        assert store.load().date.astype(str).tolist() == [
            "2026-01-01T00:00:00",
            "2026-01-01T03:00:00",
            "2026-01-02T03:04:05",
            "2026-01-03T05:00:00",
            "0999-12-31T00:00:00",
        ]
        assert store.list()[0].first == "0999-12-31T00:00:00Z"


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_export_and_import(place: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    with HistoryStore(place) as store:
        store.add(checked(status=["ok"] * 5 + ["failed"]))
        assert store.export(path) == 6
        assert store.import_file(path, name="copy") == Added(6, 0)
        assert store.import_file(path, skip_known=True) == Added(0, 6)
        exported, imported = store.load(), store.load(name="copy")
    assert exported.native.equals(imported.native)
    assert exported.dropped == imported.dropped
    assert pl.read_parquet(path).equals(exported.native) if suffix == "parquet" else True


def test_readers_see_what_was_there_while_a_writer_writes(place: str) -> None:
    store, other = HistoryStore(place), HistoryStore(place)
    store.add(checked())
    with store._place.writing() as connection:
        connection.exec_driver_sql("DELETE FROM errcomp_validation WHERE id > 2")
        assert other.load().n == 6
        assert other.list()[0].validations == 6
    assert other.load().n == 2


def test_reading_sees_one_state(place: str) -> None:
    """What is added while a history is read comes with the next reading."""
    store, other = HistoryStore(place), HistoryStore(place)
    store.add(checked())
    with store._reading() as connection:
        assert connection is not None
        assert connection.exec_driver_sql("SELECT count(*) FROM errcomp_series").scalar() == 2
        other.add(more(op="Relu"))
        assert connection.exec_driver_sql("SELECT count(*) FROM errcomp_validation").scalar() == 6
    assert store.load().n == 8


def test_waiting_for_another_writer_ends(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = HistoryStore(place), HistoryStore(place)
    store.add(checked())
    monkeypatch.setattr("errcomp.halflife.store.place.WAIT", 0.2)
    with (
        store._place.writing(),
        pytest.raises(InputError, match="another process has been writing to it for 0.2 seconds"),
    ):
        other.add(more())
    assert other.add(more()) == Added(2, 0)


def test_migrations(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps run in order, once, and all or none; then what was there is read as ever."""
    with HistoryStore(place) as store:
        store.add(checked())
        ran = []

        def step(connection: Any, name: str) -> None:
            connection.exec_driver_sql(f"ALTER TABLE errcomp_validation ADD COLUMN {name} TEXT")
            ran.append(name)

        def fails(connection: Any) -> None:
            step(connection, "b")
            connection.exec_driver_sql("nonsense")

        monkeypatch.setattr("errcomp.halflife.store.database.SCHEMA", 3)
        steps: dict[int, Any] = {1: lambda connection: step(connection, "a"), 2: fails}
        monkeypatch.setattr("errcomp.halflife.store.database.MIGRATIONS", steps)
        with pytest.raises(InputError, match="cannot be written|refused the request"):
            store.load()
        assert store._schema() == 1
        steps[2] = lambda connection: step(connection, "b")
        assert store.load().n == 6
        assert ran == ["a", "b", "a", "b"]
        assert store._schema() == 3
        store.add(more())
        assert store.load().n == 8
        assert len(ran) == 4


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE errcomp_meta SET schema_version = 99",
            "newer errcomp .its tables have version 99;.*Upgrade",
        ),
        ("DELETE FROM errcomp_meta", "must have exactly one schema version, got ..*Restore"),
        ("INSERT INTO errcomp_meta VALUES (1)", "must have exactly one schema version"),
        ("UPDATE errcomp_meta SET schema_version = 0", "must have exactly one schema version"),
    ],
)
def test_tables_of_an_unknown_version(place: str, statement: str, message: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
        with store._place.writing() as connection:
            connection.exec_driver_sql(statement)
        for use in (store.load, store.list, lambda: store.add(more())):
            with pytest.raises(InputError, match=message):
                use()


def test_a_closed_store_is_not_used(place: str) -> None:
    with HistoryStore(place) as store:
        store.add(checked())
    for use in (store.load, store.list, lambda: store.add(more())):
        with pytest.raises(InputError, match="the store was closed"):
            use()


@pytest.mark.parametrize("name", ["", " ", "a\nb", 3])
def test_a_history_needs_a_name(place: str, name: Any) -> None:
    with pytest.raises(InputError, match="the name"):
        HistoryStore(place).add(checked(), name=name)


def test_many_identities_are_asked_for_in_parts(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("errcomp.halflife.store._SCAN", 0)
    monkeypatch.setattr("errcomp.halflife.store._ASKED", 4)
    monkeypatch.setattr("errcomp.halflife.store._AT_ONCE", 5)
    monkeypatch.setattr("errcomp.halflife.store.database._AT_ONCE", 3)
    test_a_validation_that_is_there_is_refused_or_skipped(place)
