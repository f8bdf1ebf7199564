"""Checksums of a store: whatever changes in it is found, or the values are still the same."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from errcomp.cli import main
from errcomp.errors import InputError
from errcomp.halflife.store import HistoryStore, checksums
from errcomp.halflife.store.checksums import StoreCheck, StoreDifference

ADDITION = {
    "version": ["1.0", "1.1", "1.2"] * 2,
    "op": ["gelu"] * 3 + ["conv"] * 3,
    "measured": [1.5, 1.25, 2.0, 3.5, 3.25, 4.0],
    "predicted": [1.0, 1.0, 1.0, 3.0, 3.0, 3.0],
}


def filled(where: str | Path, additions: int = 2) -> HistoryStore:
    store = HistoryStore(where)
    for i in range(additions):
        store.add({**ADDITION, "batch": [i] * 6, "date": [f"2026-0{i + 1}-01"] * 6})
    store.add({"version": ["2.0"], "op": ["gelu"], "measured": [1.0]}, name="other")
    return store


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two additions and another history, made once."""
    path = tmp_path_factory.mktemp("filled") / "h.db"
    filled(path).close()
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copy(made, tmp_path / "h.db"))


def test_what_was_written_is_as_it_was_written(place: str) -> None:
    assert filled(place).check() == StoreCheck(3, 13, 0, ())


def test_a_place_that_holds_no_store(place: str) -> None:
    if "://" in place:
        assert HistoryStore(place).check() == StoreCheck(0, 0, 0, ())
    else:
        with pytest.raises(InputError, match="does not exist"):
            HistoryStore(place).check()


CHANGES = {
    "UPDATE errcomp_validation SET measured = 1.5000001 WHERE id = 1": "default, addition 1: its 6",
    "UPDATE errcomp_validation SET measured = 'x' WHERE id = 8": "default, addition 2: its 6 rows",
    "UPDATE errcomp_validation SET date = NULL WHERE id = 7": "default, addition 2: its 6 rows",
    "DELETE FROM errcomp_validation WHERE id = 2": (
        "addition 1: 6 rows were added, but 5 are in the store"
    ),
    'UPDATE errcomp_series SET keys = \'{"op": "x"}\' WHERE id = 1': (
        "its columns, versions, series or"
    ),
    "UPDATE errcomp_version SET released = '2026-01-01' WHERE id = 2": (
        "its columns, versions, series or"
    ),
    # Bytes that are no text.
    "UPDATE errcomp_version SET released = x'ff' WHERE id = 2": (
        "history default: its columns, versions, series or"
    ),
    "UPDATE errcomp_history SET name = 'x' WHERE id = 2": (
        "history x: its columns, versions, series or"
    ),
    # As long as before.
    "UPDATE errcomp_history SET name = 'ether' WHERE id = 2": (
        "history ether: its columns, versions, series or"
    ),
}


@pytest.mark.parametrize("order", CHANGES)
def test_a_change_by_hand_is_found(path: Path, order: str) -> None:
    store = HistoryStore(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(order)
        connection.commit()
    found = store.check()
    assert not found.ok
    shown = [
        f"{one.history}, addition {one.addition}: {one.what}"
        if one.addition
        else f"history {one.history}: {one.what}"
        for one in found.differences
    ]
    assert any(CHANGES[order] in line for line in shown), shown


def test_additions_beside_a_damaged_one_are_compared(path: Path) -> None:
    store = HistoryStore(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE errcomp_batch SET first_id = 'x' WHERE id = 1")
        connection.execute("UPDATE errcomp_validation SET measured = 9 WHERE id = 7")
        connection.commit()
    # The second addition is the first whose rows are known.
    changed = StoreDifference("default", 1, "its 6 rows were changed after they were written")
    damaged = StoreDifference("", 0, "the list of additions is damaged")
    assert store.check() == StoreCheck(3, 7, 6, (damaged, changed))


def test_an_addition_of_which_the_database_returns_less_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "h.db"
    store = filled(path, additions=1)
    read = checksums._sha256_of_rows

    def less(connection: sa.Connection, first: int, last: int) -> tuple[str, int]:
        return read(connection, first, last - 1)

    monkeypatch.setattr(checksums, "_sha256_of_rows", less)
    with pytest.raises(AssertionError, match="6 rows were written, but the database returns 5: th"):
        store.add({**ADDITION, "batch": [1] * 6, "date": ["2026-02-01"] * 6})
    monkeypatch.undo()
    assert store.check() == StoreCheck(2, 7, 0, ())


def test_a_row_that_came_in_another_way_is_counted(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = HistoryStore(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        columns = "history_id, series_id, version_id, setup_id, occurrence, measured"
        connection.execute(
            f"INSERT INTO errcomp_validation (id, identity, {columns}) "
            f"SELECT 99, x'00', {columns} FROM errcomp_validation WHERE id = 1"
        )
        connection.commit()
    assert store.check() == StoreCheck(3, 13, 1, ())
    assert main(["history", "check", str(path)]) == 0
    assert "1 validation without a checksum" in capsys.readouterr().out


def test_the_command_exits_with_1_and_says_what_to_do(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "check", str(path)]) == 0
    out = capsys.readouterr().out
    assert out == f"{path}: 3 additions with 13 validations, unchanged since they were written\n"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE errcomp_validation SET predicted = 9 WHERE id = 3")
        connection.commit()
    assert main(["history", "check", str(path)]) == 1
    out = capsys.readouterr().out
    assert (
        f"{path}: history default, addition 1: its 6 rows were changed after they were wri" in out
    )
    assert "Restore the store from a copy" in out
    assert main(["history", "check", str(tmp_path / "none.db")]) == 2


def test_a_store_of_an_earlier_version_gets_checksums_with_the_next_addition(
    tmp_path: Path,
) -> None:
    path = tmp_path / "h.db"
    store = filled(path, additions=1)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE errcomp_batch")
        connection.commit()
    assert store.check() == StoreCheck(0, 0, 7, ())
    assert store.load().n == 6
    store.add({**ADDITION, "batch": [7] * 6, "date": ["2026-03-01"] * 6})
    assert store.check() == StoreCheck(1, 6, 7, ())


def rows_of(path: Path) -> list[list[tuple[object, ...]]] | str:
    try:
        store = HistoryStore(path)
        return [store.load(name=one.name).native.rows() for one in store.list()]
    except InputError as error:
        return str(error)


# SQLAlchemy drops a connection whose first query fails; Python 3.13 tells.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_flipped_bit_is_found_or_changes_nothing(tmp_path: Path) -> None:
    path, rng = tmp_path / "h.db", random.Random(12)
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    content, before = path.read_bytes(), rows_of(path)
    # Most of the file is empty space: take bytes that hold something, and a few others.
    used = [at for at, byte in enumerate(content) if byte]
    flips = rng.sample(used, 220) + [rng.randrange(len(content)) for _ in range(20)]
    found = harmless = 0
    for at in flips:
        changed = bytearray(content)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            sound = HistoryStore(path).check().ok
        except InputError:
            sound = False
        if sound:
            assert rows_of(path) == before, at
            harmless += 1
        else:
            found += 1
    assert found > 100, (found, harmless)
