"""Five hundred writers of a file killed at random moments: no acknowledged addition is lost."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from errcomp.halflife.store import HistoryStore

ROWS = 40
#: A process that has loaded errcomp, and forks a writer for each kill: starting Python takes longer
#: than what it does. It has no threads yet, which a fork would not copy.
ZYGOTE = f"""
import os, signal, sys, time
from errcomp.halflife.store import HistoryStore

where = sys.argv[1]
for order in sys.stdin:
    first, seconds = order.split()
    child = os.fork()
    if child == 0:
        store = HistoryStore(where)
        for batch in range(int(first), int(first) + 1000):
            store.add({{
                "version": ["1.0"] * {ROWS},
                "op": [f"{{batch}}/{{i % 4}}" for i in range({ROWS})],
                "repeat": list(range({ROWS})),
                "batch": [batch] * {ROWS},
                "measured": [1.0 + i for i in range({ROWS})],
            }})
            os.write(1, b"%d\\n" % batch)
    time.sleep(float(seconds))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.write(1, b"killed\\n")
"""


def additions(path: Path) -> dict[int, int]:
    """Return how many rows of each addition there are, asked without errcomp."""
    with contextlib.closing(sqlite3.connect(path)) as store:
        assert store.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        rows = store.execute(
            "SELECT json_extract(keys, '$.batch'), count(*) FROM errcomp_validation v "
            "JOIN errcomp_series s ON s.id = v.series_id GROUP BY 1"
        ).fetchall()
    return {int(str(name).strip('"')): n for name, n in rows}


@pytest.mark.core
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_acknowledged_addition_is_lost(tmp_path: Path) -> None:
    path, rng = tmp_path / "h.db", random.Random(3)
    HistoryStore(path).add({"version": ["1.0"], "op": ["x"], "batch": [-1], "measured": [1.0]})
    zygote = subprocess.Popen(
        [sys.executable, "-c", ZYGOTE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    acknowledged: set[int] = {-1}
    unsaid = kills = 0
    # How long an addition takes on this machine, with all that runs beside it.
    moment, usual = 3.0, 0.0
    with zygote:
        for _ in range(500):
            zygote.stdin.write(f"{max(acknowledged) + 1} {moment:.3f}\n")
            zygote.stdin.flush()
            said = [int(line) for line in iter(zygote.stdout.readline, "killed\n")]
            acknowledged.update(said)
            usual = usual or moment / len(said)
            moment = 0.02 + 4 * usual * rng.random()
            kills += 1
            there = additions(path)
            assert acknowledged <= set(there)
            assert {n for batch, n in there.items() if batch >= 0} <= {ROWS}
            # At most the last was stored without being acknowledged.
            assert len(set(there) - acknowledged) <= 1
            unsaid += len(set(there) - acknowledged)
            acknowledged = set(there)
        zygote.stdin.close()
    assert kills == 500
    # The moments were such that something was being written.
    assert len(acknowledged) > 200
    assert HistoryStore(path).check().ok
    print(f"{kills} kills, {len(acknowledged)} additions, {unsaid} stored but not acknowledged")
