"""Work on a Dask cluster: the same bytes, also where a worker dies in the middle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from errcomp.errors import EngineError, InputError
from errcomp.summary import Summary, summarize
from errcomp.system.processes import map_jobs

joblib = pytest.importorskip("joblib")
distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.extras, pytest.mark.slow]


@pytest.fixture(scope="module")
def on_dask() -> Iterator[None]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        yield
        # Closing a cluster while it starts a worker anew, in place of one that was killed, fails.
        client.wait_for_workers(2, timeout=60)


def slowly(folder: Path, estimate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Say who has begun, and take a while."""

    def work(item: Any) -> Any:
        Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(0.5)
        return estimate(item)

    return work


def table() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    measured = rng.lognormal(size=600)
    return {
        "predicted": measured * np.exp(0.1 * rng.standard_normal(600)),
        "measured": measured,
        "device": np.repeat([f"d{i}" for i in range(12)], 50),
    }


@pytest.mark.distributed
@pytest.mark.usefixtures("on_dask")
class TestDask:
    def test_a_worker_is_killed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from errcomp import summary as module

        options: dict[str, Any] = {"by": "device", "resamples": 499}
        expected = summarize(table(), n_jobs=1, **options)
        row = module._row
        monkeypatch.setattr(
            module, "_row", lambda item, **asked: slowly(tmp_path, lambda i: row(i, **asked))(item)
        )
        found: list[Summary] = []

        def run() -> None:
            with joblib.parallel_config(backend="dask"):
                found.append(summarize(table(), **options))

        work = Thread(target=run)
        work.start()
        while len(list(tmp_path.iterdir())) < 5:
            time.sleep(0.05)
        before = {int(path.name.split("-")[0]) for path in tmp_path.iterdir()}
        assert len(before) == 2
        assert os.getpid() not in before
        os.kill(min(before), signal.SIGKILL)
        work.join(timeout=120)
        assert not work.is_alive()
        after = {int(path.name.split("-")[0]) for path in tmp_path.iterdir()}
        assert len(after) >= 2
        # 12 groups and all pairs together, and what the dead worker had begun once more.
        assert len(list(tmp_path.iterdir())) > 13
        assert found[0].to_dict() == expected.to_dict()

    def test_an_error_is_that_of_the_first_item(self) -> None:
        def fail(x: int) -> int:
            from errcomp.errors import InputError

            raise InputError(f"no good: {x}")

        with pytest.raises(InputError, match=r"^no good: 1$"):
            list(map_jobs(fail, [1, 2, 3]))

    def test_work_that_kills_every_worker(self) -> None:
        def die(x: int) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        with pytest.raises(EngineError, match=r"was killed.*memory.*workers died"):
            list(map_jobs(die, [1]))
