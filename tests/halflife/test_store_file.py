"""A store in a file: what is no store, what cannot be read or written, files of older versions."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa

from errcomp.errors import InputError
from errcomp.halflife.store import Added, HistoryStore, place
from errcomp.halflife.store.database import SCHEMA

ARCHIVE = sorted((Path(__file__).parents[1] / "data").glob("history-store-v*"))
NOBODY = 65534


def rows(n: int = 3, **changed: Any) -> pl.DataFrame:
    columns = {"version": [f"1.{i}" for i in range(n)], "op": "Gelu", "measured": 1.5}
    return pl.DataFrame(columns | changed)


def test_the_first_addition_makes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with HistoryStore(path) as store:
        assert repr(store) == f"HistoryStore({str(path)!r})"
        for use in (store.load, store.list):
            with pytest.raises(
                InputError, match="does not exist. Create it with `errcomp history add`"
            ):
                use()
        assert not path.exists()
        store.add(rows())
        assert store.list()[0].validations == 3
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_what_is_acknowledged_is_on_the_disk(tmp_path: Path) -> None:
    with HistoryStore(tmp_path / "h.db")._place.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_an_empty_file_is_an_empty_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    store = HistoryStore(path)
    with pytest.raises(InputError, match="the store does not exist"):
        store.list()
    # A writer that was killed before its first addition leaves a file without tables.
    with store._place.writing():
        pass
    assert path.stat().st_size > 0
    assert store.list() == ()
    with pytest.raises(InputError, match="unknown history 'default'. Histories: none"):
        store.load()
    assert store.add(rows()) == Added(3, 0)


def test_a_url_of_a_file(tmp_path: Path) -> None:
    HistoryStore(f"sqlite:///{tmp_path}/h.db").add(rows())
    assert HistoryStore(tmp_path / "h.db").load().n == 3


@pytest.mark.parametrize("name", ["a b?c#d%20&.db", "ünï.db", "mode=ro.db", "'.db"])
def test_any_name_of_a_file(tmp_path: Path, name: str) -> None:
    HistoryStore(tmp_path / name).add(rows())
    assert HistoryStore(tmp_path / name).load().n == 3
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_relative_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    HistoryStore("h.db").add(rows())
    assert HistoryStore(tmp_path / "h.db").load().n == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "needs the name of a file"),
        (":memory:", "needs the name of a file"),
        ("a\0b", "needs the name of a file"),
        ("sqlite://", "PostgreSQL database"),
        ("mysql://me:secret@host/db", "PostgreSQL database .*, got mysql://…"),
        ("{}/none/h.db", "the folder .*none does not exist. Create it"),
        ("{}", "is a folder. Name a file in it"),
    ],
)
def test_names_that_no_store_can_have(tmp_path: Path, where: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        HistoryStore(where.replace("{}", str(tmp_path)))
    assert "secret" not in str(raised.value)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "table.csv", tmp_path / "other.db"
    text.write_text("version,measured\n1,2\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"table.csv: not a history store: it is not an SQLite file"
    ):
        HistoryStore(text)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = other.read_bytes()
    store = HistoryStore(other)
    for use in (store.load, store.list, lambda: store.add(rows())):
        with pytest.raises(
            InputError,
            match=r"not a history store: it contains a table that errcomp did not create "
            r"\(mine\)\. Name",
        ):
            use()
    assert other.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "table.csv"]


def test_a_file_that_changes_under_an_open_store(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    store = HistoryStore(path)
    store.add(rows())
    path.write_bytes(b"something else altogether")
    with pytest.raises(InputError, match="it is not an SQLite file"):
        store.load()


@pytest.mark.parametrize("keep", [100, 4096, 20_000])
def test_a_damaged_file(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "h.db"
    HistoryStore(path).add(rows(500))
    content = path.read_bytes()
    path.write_bytes(content[:keep] + b"\xa5" * (len(content) - keep))
    with pytest.raises(InputError, match=r"h\.db: .*(damaged|not an SQLite file|cannot be read)"):
        HistoryStore(path).load()


def test_a_damaged_date_of_creation(tmp_path: Path) -> None:
    """A file with the first bytes of SQLite and nothing else."""
    path = tmp_path / "h.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(2000))
    with pytest.raises(InputError, match="not an SQLite file, or it is damaged"):
        HistoryStore(path).list()


@contextmanager
def powerless() -> Iterator[None]:
    """Be somebody whom read-only folders stop: root is not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


def test_a_read_only_folder(open_folder: Path) -> None:
    path = open_folder / "h.db"
    HistoryStore(path).add(rows())
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with powerless():
        store = HistoryStore(path)
        # Nobody is writing to it: it can be read as it is.
        assert store.load().n == 3
        with pytest.raises(InputError, match="read-only|cannot be opened"):
            store.add(rows(op="Relu"))
        with pytest.raises(InputError, match="cannot be opened. Check that .* can be written"):
            HistoryStore(open_folder / "new.db").add(rows())
    assert store.load().n == 3


def test_a_read_only_folder_with_a_log(open_folder: Path) -> None:
    """The log that a killed writer left holds part of the store: it is not read without."""
    path = open_folder / "h.db"
    HistoryStore(path).add(rows())
    log = path.with_name("h.db-wal")
    log.write_bytes(b"")
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with powerless(), pytest.raises(InputError, match="read-only|cannot be opened"):
        HistoryStore(path).load()


def test_a_file_that_may_not_be_read(open_folder: Path) -> None:
    path = open_folder / "h.db"
    HistoryStore(path).add(rows())
    path.chmod(0)
    with powerless(), pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        HistoryStore(path)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = HistoryStore(tmp_path / "h.db")
    store.add(rows())
    connect = place._connect

    def small(path: Path, mode: str, *orders: str) -> sqlite3.Connection:
        return connect(path, mode, *orders, "PRAGMA max_page_count = 30")

    with monkeypatch.context() as patch:
        patch.setattr(place, "_connect", small)
        with pytest.raises(
            InputError, match="the disk is full. Nothing was added; free some space"
        ):
            store.add(rows(5000, op="Relu"))
    assert store.load().n == 3
    assert store.add(rows(5000, op="Relu")) == Added(5000, 0)


LIMITED = """
import resource, signal, sys
from errcomp.errors import InputError
from errcomp.halflife.store import HistoryStore
store = HistoryStore(sys.argv[1])
def add(n, op):
    store.add({"version": [f"1.{i}" for i in range(n)], "op": op, "measured": 1.5})
add(3, "a")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    add(20_000, "b")
except InputError as error:
    print(error)
add(2, "c")
"""


@pytest.mark.slow
@pytest.mark.core
def test_a_disk_that_fails_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True
    )
    assert "Nothing was added" in done.stdout
    assert HistoryStore(path).load().column("op").tolist() == ["a"] * 3 + ["c"] * 2


def test_an_error_without_a_name_is_told(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "h.db")
    with (
        pytest.raises(InputError, match=r"h\.db: cannot be written \(no such table: none\)"),
        store._place.writing() as connection,
    ):
        connection.exec_driver_sql("DELETE FROM none")


def test_a_file_whose_damage_cannot_be_written_as_text(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    HistoryStore(path).add(rows())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "INSERT INTO sqlite_schema VALUES ('table', CAST(x'ff' AS TEXT), 'x', 3, 'CREATE X')"
        )
        connection.commit()
    with pytest.raises(
        InputError, match=r"h\.db: the file is damaged \('utf-8' codec .*from a copy"
    ):
        HistoryStore(path).list()


def test_a_commit_that_may_have_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = HistoryStore(tmp_path / "h.db")
    store.add(rows())
    unknown = (
        "It is unknown whether the rows were stored: add them again with skip_known=True "
        "(--skip-known)."
    )

    def breaks(lost: bool) -> Callable[..., None]:
        def commit(_: Any) -> None:
            gone = sqlite3.OperationalError("gone")
            raise sa.exc.OperationalError("COMMIT", None, gone, connection_invalidated=lost)

        return commit

    for lost in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(sa.RootTransaction, "commit", breaks(lost))
            with (
                pytest.raises(InputError, match=r"cannot be written \(gone\)") as raised,
                store._place.writing(),
            ):
                pass
        assert str(raised.value).endswith(unknown) == lost
    # A connection that breaks before has stored nothing.
    gone = sa.exc.OperationalError(
        "INSERT", None, sqlite3.OperationalError("gone"), connection_invalidated=True
    )
    with pytest.raises(InputError) as raised, store._place.writing():
        raise gone
    assert "unknown" not in str(raised.value)
    assert store.load().n == 3


def test_a_busy_file_is_asked_again_until_the_wait_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, asked = [100.0], []

    class Connection:
        def __init__(self, *names: str) -> None:
            self.names = list(names)

        def execute(self, order: str) -> None:
            asked.append(order)
            if self.names:
                error = sqlite3.OperationalError("no")
                error.sqlite_errorname = self.names.pop(0)
                raise error

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(place, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    busy: Any = Connection("SQLITE_BUSY", "SQLITE_BUSY_RECOVERY")
    place._patiently(busy, "PRAGMA x")
    assert asked == ["PRAGMA x"] * 3
    assert clock[0] == pytest.approx(100.02)
    other: Any = Connection("SQLITE_CORRUPT")
    with pytest.raises(sqlite3.OperationalError):
        place._patiently(other, "PRAGMA x")
    monkeypatch.setattr(place, "WAIT", 0.055)
    asked.clear()
    always: Any = Connection(*["SQLITE_BUSY"] * 99)
    with pytest.raises(sqlite3.OperationalError):
        place._patiently(always, "PRAGMA x")
    # At 0, 0.01, …, 0.05 and 0.06 seconds.
    assert len(asked) == 7


def test_exports_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    with HistoryStore(path) as store:
        store.add(rows())
        with pytest.raises(InputError, match="exported as Parquet or CSV"):
            store.export(tmp_path / "out.json")
        with pytest.raises(InputError, match="is the store itself"):
            store.export(path)
        with pytest.raises(InputError, match="cannot be written"):
            store.export(tmp_path / "none" / "out.csv")
        assert store.load().n == 3


@pytest.mark.parametrize("folder", ARCHIVE, ids=lambda folder: folder.name)
def test_stores_of_every_version_are_read(folder: Path, tmp_path: Path) -> None:
    copy = copytree(folder, tmp_path / "copy")
    with HistoryStore(copy / "history.db") as store:
        assert f"v{store._schema()}" == folder.name.rpartition("-")[2]
        loaded = store.load(name="ort")
        assert loaded.native.equals(pl.read_parquet(folder / "ort.parquet"))
        assert [
            (entry.name, entry.validations, entry.series, entry.versions) for entry in store.list()
        ] == [
            ("ort", 13, 3, 4),
            ("plain", 2, 1, 2),
        ]
        assert store.add(loaded, name="ort", skip_known=True) == Added(0, 13)
        assert store._schema() == SCHEMA


def test_there_is_an_archive_of_every_version() -> None:
    assert [folder.name for folder in ARCHIVE] == [
        f"history-store-v{number}" for number in range(1, SCHEMA + 1)
    ]


@pytest.mark.extras
@pytest.mark.parametrize("make", [lambda: pytest.importorskip("pandas").DataFrame,
                                  lambda: pytest.importorskip("pyarrow").table])  # fmt: skip
def test_frames_of_other_libraries(tmp_path: Path, make: Callable[[], Any]) -> None:
    data = {
        "version": ["1", "2", "3"],
        "measured": [1.0, 2.0, 3.0],
        "op": ["a", None, "c"],
        "batch": [1, 2, 3],
        "share": [0.5, None, 1.5],
        "flag": [True, False, True],
        "status": [None, None, "failed"],
        "date": ["2026-01-01", "2026-01-02", "2026-01-03"],
    }
    with HistoryStore(tmp_path / "h.db") as store:
        assert store.add(make()(data)) == Added(3, 0)
        assert store.add(pl.DataFrame(data), skip_known=True) == Added(0, 3)
        loaded = store.load().native
        assert loaded["share"].to_list() == [0.5, None, 1.5]
        assert loaded["flag"].to_list() == [True, False, True]
        assert loaded["batch"].to_list() == [1, 2, 3]
        assert loaded["op"].to_list() == ["a", None, "c"]


@pytest.mark.extras
def test_mixed_values_of_another_library(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    data = {"version": "1", "measured": 1.0, "key": [1, "x", 2.5, None]}
    with HistoryStore(tmp_path / "h.db") as store:
        store.add(pandas.DataFrame(data))
        assert store.load().native["key"].to_list() == ["1", "x", "2.5", None]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a\0b", "c"], "key contains a null character in row 1, which a database cannot"),
        ([1.5, float("inf")], "key is infinite in row 2. Fix"),
        ([[1], [2]], "the values of key have the type List.*Put each element in a column"),
        ([b"a", b"b"], "the values of key have the type Binary"),
    ],
)
def test_values_that_cannot_be_stored(tmp_path: Path, column: list[Any], message: str) -> None:
    frame = {"version": ["1", "2"], "series": ["a", "a"], "measured": [1.0, 1.0], "key": column}
    with pytest.raises(InputError, match=message):
        HistoryStore(tmp_path / "h.db").add(frame)


def test_other_types_become_text(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"version": "1", "measured": [1.0, 2.0], "big": [2**63, 2**64 - 1], "op": ["a", "b"]},
        schema_overrides={"big": pl.UInt64, "op": pl.Categorical},
    ).with_columns(day=pl.date(2026, 1, 2), price=pl.lit("1.25").cast(pl.Decimal(10, 2)))
    with HistoryStore(tmp_path / "h.db") as store:
        store.add(frame)
        loaded = store.load().native
    assert loaded["big"].to_list() == [str(2**63), str(2**64 - 1)]
    assert loaded["op"].to_list() == ["a", "b"]
    assert loaded["day"].to_list() == ["2026-01-02"] * 2
    assert loaded["price"].to_list() == [1.25] * 2


def test_failures_that_cannot_be_kept(tmp_path: Path) -> None:
    store = HistoryStore(tmp_path / "h.db")
    base: dict[str, list[Any]] = {"measured": [1.0, 2.0], "status": ["ok", "failed"]}
    with pytest.raises(InputError, match="version is missing in row 2"):
        store.add({**base, "version": ["1", None]})
    with pytest.raises(InputError, match="date must be a date.*row 2"):
        store.add({**base, "version": ["1", "2"], "date": ["2026-01-01", "soon"]})
    with pytest.raises(InputError, match="version is missing in row 2"):
        store.add({"measured": [1.0, None], "version": ["1", None]})


def test_names_of_columns_that_the_store_uses_itself(tmp_path: Path) -> None:
    names = ("id", "keys", "stack", "identity", "occurrence", "history_id", "series_id", "name")
    frame = pl.DataFrame({"version": "1", "measured": [1.0, 2.0]} | {n: [n, "x"] for n in names})
    with HistoryStore(tmp_path / "h.db") as store:
        store.add(frame)
        loaded = store.load().native
        assert all(loaded[name].to_list() == [name, "x"] for name in names)
        assert store.add(frame, skip_known=True) == Added(0, 2)


_ENDLESS = "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q)"
#: What a stranger may have put into a store, and what it is called.
PROGRAMS = {
    "errcomp_validation (view)": (
        "ALTER TABLE errcomp_validation RENAME TO zz",
        f"CREATE VIEW errcomp_validation AS {_ENDLESS} SELECT zz.* FROM zz, q",
    ),
    "errcomp_meta (view)": (
        "ALTER TABLE errcomp_meta RENAME TO zz",
        f"CREATE VIEW errcomp_meta AS {_ENDLESS} SELECT n AS schema_version FROM q",
    ),
    "more (trigger)": (
        "CREATE TRIGGER more AFTER INSERT ON errcomp_validation BEGIN INSERT INTO errcomp_version "
        "SELECT id + 1000, history_id, version || id, released FROM errcomp_version; END",
    ),
    "errcomp_meta (virtual table)": (
        "DROP TABLE errcomp_meta",
        "CREATE VIRTUAL TABLE errcomp_meta USING fts5(schema_version)",
    ),
    "errcomp_version.big (computed column)": (
        "ALTER TABLE errcomp_version ADD COLUMN big AS (hex(zeroblob(400000000)))",
    ),
    "errcomp_setup (table with conditions)": (
        "ALTER TABLE errcomp_setup ADD COLUMN c INTEGER CHECK (length(hex(zeroblob(9))) > 1)",
    ),
    "errcomp_series (table with conditions)": (
        "ALTER TABLE errcomp_series RENAME TO zz",
        "CREATE TABLE errcomp_series (id, keys DEFAULT (hex(zeroblob(400000000))))",
    ),
    "slow (index of an expression)": (
        "CREATE INDEX slow ON errcomp_validation (hex(zeroblob(400000000)))",
    ),
    "part (index of an expression)": (
        "CREATE INDEX part ON errcomp_validation (id) WHERE hex(zeroblob(400000000)) > ''",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_store_with_queries_of_a_stranger(tmp_path: Path, program: str) -> None:
    path = tmp_path / "h.db"
    HistoryStore(path).add(rows())
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if "zeroblob(400000000)" in PROGRAMS[program][0] and "INDEX" in PROGRAMS[program][0]:
            connection.execute("DELETE FROM errcomp_validation")  # making it would take long
        for order in PROGRAMS[program]:
            connection.execute(order)
    store, began = HistoryStore(path), time.monotonic()
    for use in (store.list, store.load, store.check, lambda: store.add(rows(op="Relu"))):
        with pytest.raises(InputError, match="errcomp did not create.*Drop them") as raised:
            use()
        assert program in str(raised.value)
    assert time.monotonic() - began < 2


def test_views_and_tables_of_ones_own_are_let_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    HistoryStore(path).add(rows())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW mean AS SELECT avg(measured) FROM errcomp_validation")
        connection.execute("CREATE INDEX dates ON errcomp_validation (date)")
        connection.execute("CREATE TABLE mine (x DEFAULT (1))")
    assert HistoryStore(path).add(rows(op="Relu")) == Added(3, 0)
    assert HistoryStore(path).load().n == 6
