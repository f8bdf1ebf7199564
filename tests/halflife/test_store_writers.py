"""Several writers at once, and writers that are killed: nothing is lost and nothing is half."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.halflife.store import HistoryStore

pytestmark = pytest.mark.core

ROWS = 2000
#: So many rows go to the database in one statement here, so that an addition has many.
PART = 100

WRITER = f"""
import os, signal, sys
import sqlalchemy as sa
from errcomp.halflife import store as _store_writing
from errcomp.halflife.store import HistoryStore

where, first, count, last = sys.argv[1], *map(int, sys.argv[2:])
_store_writing._AT_ONCE = {PART}
left = [last]

def tick(*_):
    # Die at a statement that is about to be sent, a COMMIT among them.
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

sa.event.listen(sa.Engine, "before_cursor_execute", tick)
sa.event.listen(sa.Engine, "commit", tick)
print("ready", flush=True)
sys.stdin.readline()
with HistoryStore(where) as store:
    for batch in range(first, first + count):
        store.add({{
            "version": ["1.0"] * {ROWS},
            "op": [f"{{batch}}/{{i % 10}}" for i in range({ROWS})],
            "repeat": list(range({ROWS})),
            "batch": [batch] * {ROWS},
            "measured": [1.0 + i for i in range({ROWS})],
        }})
        print(batch, flush=True)
"""


Writer = subprocess.Popen[str]
Start = Callable[..., Writer]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process that adds batches, and says so after each, when it is told to."""
    started: list[Writer] = []

    def writer(where: str, first: int, count: int, last: int = 0) -> Writer:
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, where, str(first), str(count), str(last)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield writer
    for process in started:
        if process.returncode is None:
            process.kill()
            process.communicate()


def go(process: Writer) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def stored(where: str) -> dict[int, int]:
    """Return how many rows of each batch there are."""
    try:
        loaded = HistoryStore(where).load()
    except InputError as error:
        if "the store does not exist" in str(error) or "Histories: none" in str(error):
            return {}  # killed before the first was kept
        raise
    counts = loaded.native.group_by("batch").len()
    return dict(zip(counts["batch"].to_list(), counts["len"].to_list(), strict=True))


def kill_writers(start: Start, where: str, times: int, seed: int) -> None:
    """Kill a writer at random moments, and look at what there is after each."""
    rng, first = random.Random(seed), 0
    acknowledged: set[int] = set()
    for i in range(times):
        # At a statement of one of two additions; every third time at no moment in particular.
        process = start(where, first, 1000, 0 if i % 3 == 2 else rng.randrange(1, 100))
        go(process)
        if i % 3 == 2:
            assert process.stdout is not None
            acknowledged.add(int(process.stdout.readline()))
            time.sleep(rng.random() * 0.2)
            process.send_signal(signal.SIGKILL)
        out, err = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, err
        acknowledged.update(int(line) for line in out.splitlines())
        counts = stored(where)
        assert set(counts.values()) <= {ROWS}
        assert acknowledged <= set(counts)
        # The last may have been kept without that its writer could say so.
        assert len(set(counts) - acknowledged) <= 1
        acknowledged.update(counts)
        first = max(acknowledged, default=-1) + 1


def check_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.mark.slow
def test_a_killed_writer_loses_nothing(start: Start, place: str) -> None:
    kill_writers(start, place, 3, seed=1)
    if "://" not in place:
        check_file(Path(place))


@pytest.mark.slow
def test_writers_killed_at_many_moments_lose_nothing(start: Start, place: str) -> None:
    kill_writers(start, place, 15, seed=2)
    if "://" not in place:
        check_file(Path(place))


@pytest.mark.slow
def test_writers_at_once_all_land(start: Start, place: str) -> None:
    """They even make the store at once."""
    count, each = 3, 3
    writers = [start(place, 100 * i, each) for i in range(count)]
    for process in writers:
        go(process)
    for process in writers:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert len(out.splitlines()) == each
    expected = {100 * i + j for i in range(count) for j in range(each)}
    assert stored(place) == dict.fromkeys(expected, ROWS)


@pytest.mark.slow
def test_writers_of_the_same_at_once(start: Start, place: str) -> None:
    """One of two that add the same is refused, whole."""
    writers = [start(place, 0, 1) for _ in range(2)]
    for process in writers:
        go(process)
    ended = [process.communicate(timeout=300) for process in writers]
    assert sorted(process.returncode for process in writers) == [0, 1]
    assert sum("duplicate validations" in err for _, err in ended) == 1
    assert stored(place) == {0: ROWS}
