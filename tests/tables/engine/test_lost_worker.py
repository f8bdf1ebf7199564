"""A Dask worker that dies in the middle: the answer is the same, and nothing is lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pytest

from errcomp.summary import Summary, summarize
from errcomp.tables.engine.pairs import PairRows

pytestmark = [pytest.mark.extras, pytest.mark.slow]


def slowly(part: Any, started: str) -> Any:
    """Take a while for each part, and say that it has begun."""
    Path(started, f"{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.5)
    return part


def test_a_worker_is_killed(table: pl.DataFrame, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    dataframe = pytest.importorskip("dask.dataframe")
    options: dict[str, Any] = {
        "by": "device", "figures": ("mape", "max_ape", "wape"), "cluster": "run", "resamples": 499,
    }  # fmt: skip
    expected = summarize(table, **options)
    found: list[Summary] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        frame = dataframe.from_pandas(table.to_pandas(), npartitions=12)
        frame = frame.map_partitions(slowly, str(tmp_path), meta=frame._meta)
        work = Thread(target=lambda: found.append(summarize(PairRows(frame), **options)))
        work.start()
        while len(list(tmp_path.iterdir())) < 5:
            time.sleep(0.05)
        before = {int(path.name.split("-")[0]) for path in tmp_path.iterdir()}
        assert len(before) == 2
        os.kill(min(before), signal.SIGKILL)
        work.join(timeout=120)
    assert not work.is_alive()
    (summary,) = found
    for one, other in zip(
        [*summary.rows, summary.pooled], [*expected.rows, expected.pooled], strict=True
    ):
        assert one.n == other.n
        for name, figure in one.figures.items():
            assert figure.value == pytest.approx(other.figures[name].value, rel=1e-12)
            assert figure.method == other.figures[name].method
            if figure.low is not None:
                assert figure.low == pytest.approx(other.figures[name].low, rel=1e-9)
