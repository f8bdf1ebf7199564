"""SQLite databases of strangers: views do not run, logs are not forgotten, queries end."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core import sqlite
from errcomp.readers.core.source import Source
from errcomp.readers.profilers import nsys, rocprof

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
ENDLESS = "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q)"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    (found,) = (FIXTURES / "nsys-sqlite" / "good").glob("*.sqlite")
    return Path(shutil.copy(found, tmp_path / "report.sqlite"))


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


def test_a_view_that_never_ends_is_refused(export: Path) -> None:
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    execute(
        export,
        f"ALTER TABLE {kernels} RENAME TO zz",
        f"CREATE VIEW {kernels} AS {ENDLESS} SELECT zz.* FROM zz, q",
    )
    began = time.monotonic()
    with pytest.raises(InputError, match=f"{kernels} is a view, but the profiler writes a table"):
        nsys.read(export)
    assert time.monotonic() - began < 20


def test_other_views_are_never_run(export: Path) -> None:
    rows = nsys.read(export).rows
    execute(export, f"CREATE VIEW rocpd_kernel_dispatch AS {ENDLESS} SELECT n AS start FROM q")
    assert nsys.read(export).rows.equals(rows)
    source = Source(export)
    assert "rocpd_kernel_dispatch" not in (sqlite.tables_in(source) or set())
    with sqlite.opened(source) as database:
        assert sqlite.select(database, "no_table", ["start"]) == ([], [])
    with (
        pytest.raises(InputError, match=r"\(rocpd_kernel_dispatch is a view, but the profiler"),
        sqlite.opened(source) as database,
    ):
        sqlite.select(database, "rocpd_kernel_dispatch", ["start"])


@pytest.mark.parametrize("table", ["NVTX_EVENTS", "TARGET_INFO_SESSION_START_TIME"])
def test_a_view_instead_of_any_table_that_is_read_is_refused(export: Path, table: str) -> None:
    execute(
        export,
        f"DROP TABLE IF EXISTS {table}",
        f"CREATE VIEW {table} AS {ENDLESS} SELECT n AS start FROM q",
    )
    with pytest.raises(InputError, match=f"{table} is a view, but the profiler writes a table"):
        nsys.read(export)


@pytest.mark.parametrize(
    "table",
    ["kernel_dispatch", "memory_copy", "string", "info_kernel_symbol", "info_agent"],
)
def test_a_view_instead_of_a_table_of_rocprofv3_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "9_results.db"
    shutil.copy(FIXTURES / "rocprof-rocpd" / "good" / path.name, path)
    name = f"rocpd_{table}_00a1"
    execute(
        path,
        f"ALTER TABLE {name} RENAME TO zz",
        f"CREATE VIEW {name} AS {ENDLESS} SELECT zz.* FROM zz, q",
        # There is a second process, so that the file is still known as what it is.
        "CREATE TABLE rocpd_kernel_dispatch_00b2 (start)",
    )
    with pytest.raises(InputError, match=f"{name} is a view, but the profiler writes a table"):
        rocprof.read(path)


@pytest.mark.parametrize(
    "statement",
    [
        f"{ENDLESS} SELECT max(n) FROM q",
        "SELECT load_extension('x')",
        "PRAGMA journal_mode = wal",
        "ATTACH ':memory:' AS other",
        "CREATE TABLE t (a)",
    ],
)
def test_what_is_not_a_plain_query_is_denied(export: Path, statement: str) -> None:
    with (
        pytest.raises(
            InputError, match=r"SQLite cannot read this file \((not authorized|.*prohibited)"
        ),
        sqlite.opened(Source(export)) as database,
    ):
        database.execute(statement)


def test_a_query_has_a_budget(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(export, "CREATE TABLE t (a)", f"INSERT INTO t {ENDLESS} SELECT n FROM q LIMIT 2000")
    monkeypatch.setattr(sqlite, "_LEAST", 1_000_000)
    with (
        pytest.raises(
            InputError, match="takes more steps to read this file than a file of its size"
        ),
        sqlite.opened(Source(export)) as database,
    ):
        database.execute("SELECT x.a FROM t AS x, t AS y, t AS z").fetchall()
    with sqlite.opened(Source(export)) as database:
        assert len(sqlite.select(database, "t", ["a"])[1]) == 2000


@pytest.mark.parametrize(("size", "looks"), [(0, 100), (400_000, 100), (5_000_000, 1000)])
def test_the_budget_grows_with_the_file(size: int, looks: int) -> None:
    assert sqlite._Budget(size).left == looks


def test_a_signal_ends_a_query_and_is_not_lost(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_LEAST", 10**12)  # a fast machine must not run out of steps first
    execute(export, "CREATE TABLE t (a)", f"INSERT INTO t {ENDLESS} SELECT n FROM q LIMIT 2000")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt), sqlite.opened(Source(export)) as database:
            database.execute(
                "SELECT x.a FROM t AS x, t AS y, t AS z WHERE x.a + y.a + z.a < 0"
            ).fetchall()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_rows_in_a_log_are_not_left_out(export: Path, tmp_path: Path) -> None:
    live = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(export)) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL"
        )
        database.commit()
        for end in ("", "-wal"):
            shutil.copy(f"{export}{end}", f"{live}{end}")
    with pytest.raises(
        InputError, match=r"live\.sqlite-wal in the same folder holds rows .* wal_checkpoint"
    ):
        nsys.read(live)
    n = len(nsys.read(export).rows)
    # What the message says to do.
    execute(live, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert len(nsys.read(live).rows) == n


def test_a_database_that_was_being_written_is_refused(export: Path, tmp_path: Path) -> None:
    rows = nsys.read(export).rows
    live = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(export, isolation_level=None)) as database:
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 1000")
        database.execute("CREATE TABLE filler AS SELECT randomblob(100000) AS a")
        for end in ("", "-journal"):
            shutil.copy(f"{export}{end}", f"{live}{end}")
        database.execute("ROLLBACK")
    with pytest.raises(
        InputError,
        match=r"live\.sqlite-journal in the same folder shows that a write to the database",
    ):
        nsys.read(live)
    execute(live, "PRAGMA user_version")
    assert nsys.read(live).rows.equals(rows)


def test_an_empty_log_is_none(export: Path) -> None:
    rows = nsys.read(export).rows
    for end in ("-wal", "-journal"):
        Path(f"{export}{end}").write_bytes(b"")
    assert nsys.read(export).rows.equals(rows)


@pytest.mark.parametrize(
    ("size", "looks"), [(1, 100), (499_999, 100), (500_000, 100), (1_000_000, 200)]
)
def test_a_query_may_take_steps_in_proportion_to_the_file(size: int, looks: int) -> None:
    budget = sqlite._Budget(size)
    answers = [*budget.spend()]
    assert answers == [0] * looks + [1]
    assert (budget.left, budget.signal) == (0, None)


def test_a_signal_ends_a_query() -> None:
    budget = sqlite._Budget(1)
    asking = budget.spend()
    assert next(asking) == 0
    assert asking.throw(KeyboardInterrupt) == 1
    assert isinstance(budget.signal, KeyboardInterrupt)
    assert budget.left == 99
    unused = sqlite._Budget(1)
    asking = unused.spend()
    next(asking)
    asking.close()
    assert unused.signal is None


def test_rows_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sqlite"
    execute(path, "CREATE TABLE t (a, b)", "INSERT INTO t VALUES (1, 2), (3, 4), (5, 6), (7, 8)")
    execute(path, "INSERT INTO t VALUES (9, NULL)", "CREATE TABLE empty (a)")
    monkeypatch.setattr(sqlite, "_PART", 2)
    with sqlite.opened(Source(path)) as database:
        columns, parts = sqlite.select_parts(database, "t", ["b", "c", "a"])
        assert columns == ["b", "a"]
        assert [*parts] == [[(2, 1), (4, 3)], [(6, 5), (8, 7)], [(None, 9)]]
        assert sqlite.select(database, "t", ["a"]) == (["a"], [(1,), (3,), (5,), (7,), (9,)])
        columns, parts = sqlite.select_parts(database, "empty", ["a"])
        assert (columns, [*parts]) == (["a"], [[]])
