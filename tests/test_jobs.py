"""Work in several processes: the order, the bytes, the errors and the warnings of one."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from errcomp.errors import EngineError, InputError, MissingExtraError
from errcomp.system.processes import Steps, _Call, _explained, _on_dask, count_jobs, map_jobs

needs_joblib = [
    pytest.mark.extras,
    pytest.mark.skipif(
        importlib.util.find_spec("joblib") is None, reason="joblib is not installed"
    ),
]


def here_or_not() -> Callable[[float], tuple[float, int]]:
    # Not of the module: another process need not find this file.
    def square(x: float) -> tuple[float, int]:
        return x * x, os.getpid()

    return square


@pytest.mark.core
def test_one_process_needs_no_joblib() -> None:
    code = (
        "import sys; import errcomp as ec; from errcomp.system.processes import map_jobs\n"
        "assert list(map_jobs(abs, [-1, 2])) == [1, 2]\n"
        "ec.summarize({'predicted': [1.0, 2.0], 'measured': [1.0, 3.0]})\n"
        "assert 'joblib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("n_jobs", [0, 1.0, "2", True])
def test_a_number_that_is_none(n_jobs: Any) -> None:
    with pytest.raises(InputError, match="n_jobs must be a whole number"):
        map_jobs(abs, [1], n_jobs=n_jobs)


@pytest.mark.core
def test_joblib_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert count_jobs(None) == count_jobs(1) == 1
    with pytest.raises(MissingExtraError, match=r"joblib.*pip install 'errcomp\[jobs\]'"):
        map_jobs(abs, [1], n_jobs=2)


def test_steps_are_named_to_whoever_shows_names() -> None:
    told: list[object] = []

    class Names:
        def __call__(self, done: float, total: float) -> None:
            told.append((done, total))

        def begin(self, what: str) -> None:
            told.append(what)

    steps = Steps(Names(), 2)
    for what in ("read", "fit"):
        steps.begin(what)
        steps.step()
    assert told == ["read", (1, 2), "fit", (2, 2)]
    assert steps.done == 2
    for without in (Steps(lambda *both: told.append(both), 1), Steps(None, 1)):
        without.begin("unnamed")
        without.step()
    assert told[4:] == [(1, 1)]


@pytest.mark.parametrize("home", ["", "~"])
def test_a_call_elsewhere_brings_back_its_warnings_once_and_its_error(home: str) -> None:
    call = _Call(warns(), home=(home, 0))
    one, two = call(1), call(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert one.result() == 1
        with pytest.raises(InputError, match="^no good: 2$"):
            two.result()
    assert [str(each.message) for each in caught] == ["beware of 1", "beware of 2"]
    assert {each.category for each in caught} == {RuntimeWarning}
    assert {each.filename for each in caught} == {__file__}


def test_a_cluster_that_stops_is_an_error_that_says_what_to_do() -> None:
    found = _explained(CancelledError("lost"))
    assert type(found) is EngineError
    assert str(found) == (
        "the cluster stopped before the work was done (lost). Start it again, or use n_jobs=1."
    )
    assert _explained(ZeroDivisionError()) is None


def test_a_cluster_gets_a_few_calls_for_each_core_ahead_of_the_results() -> None:
    sent: list[int] = []
    cancelled: list[Any] = []

    def submit(call: Any, item: int, **options: Any) -> Any:
        assert options == {"pure": False, "retries": 3}
        sent.append(item)
        return SimpleNamespace(item=item, result=lambda: call(item))

    client = SimpleNamespace(
        ncores=lambda: {"a": 1, "b": 2}, submit=submit, cancel=cancelled.extend
    )
    backend = SimpleNamespace(client=client, submit_kwargs={"retries": 3})
    call = _Call(abs, home=("another process", 0))
    results = _on_dask(backend, call, range(-20, 0))
    assert next(results).result() == 20
    assert sent == [*range(-20, -7)]  # the first, and four for each of three cores
    results.close()  # type: ignore[attr-defined]
    assert [future.item for future in cancelled] == [*range(-19, -7)]
    cancelled.clear()
    every = [outcome.result() for outcome in _on_dask(backend, call, range(-20, 0))]
    assert every == [*range(20, 0, -1)]
    assert cancelled == []


@pytest.mark.core
def test_a_backend_with_a_client_is_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(call: Any, item: int, *, pure: bool) -> Any:
        return SimpleNamespace(result=lambda: call(item))

    client = SimpleNamespace(ncores=lambda: {"a": 1}, submit=submit, cancel=lambda futures: None)
    backend = SimpleNamespace(client=client, submit_kwargs={})
    joblib = SimpleNamespace(
        effective_n_jobs={None: 8, -1: 8, 1: 1, 2: 2}.__getitem__,
        parallel=SimpleNamespace(get_active_backend=lambda: (backend, 8)),
    )
    monkeypatch.setitem(sys.modules, "joblib", joblib)
    assert [count_jobs(n) for n in (None, -1, 1, 2)] == [8, 8, 1, 2]
    results = map_jobs(fails(), [0, 0, 3, 0])
    assert [next(results), next(results)] == [0, 0]
    with pytest.raises(InputError, match="^no good: 3$"):
        next(results)


class TestProcesses:
    pytestmark = needs_joblib

    def test_results_come_in_the_order_of_the_items(self) -> None:
        found = list(map_jobs(here_or_not(), iter(range(20)), n_jobs=2))
        assert [value for value, _ in found] == [i * i for i in range(20)]
        assert os.getpid() not in {process for _, process in found}

    def test_a_surrounding_configuration_decides(self) -> None:
        import joblib

        assert count_jobs(None) == 1
        with joblib.parallel_config(n_jobs=2):
            assert count_jobs(None) == 2
            assert count_jobs(1) == 1
            found = list(map_jobs(here_or_not(), [3], n_jobs=None))
        assert found[0][0] == 9
        assert found[0][1] != os.getpid()

    def test_threads(self) -> None:
        import joblib

        with joblib.parallel_config(backend="threading", n_jobs=2):
            found = list(map_jobs(here_or_not(), [3, 4]))
            with pytest.raises(InputError, match="no good"):
                list(map_jobs(fails(), [1, 2]))
        assert found == [(9, os.getpid()), (16, os.getpid())]

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_backend_that_hands_over_all_at_once(self) -> None:
        import joblib

        with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
            assert list(map_jobs(abs, [-3, 4])) == [3, 4]

    def test_a_function_may_write_into_what_it_is_given(self) -> None:
        def doubled(values: Any) -> float:
            values *= 2
            return float(values[-1])

        large = [np.ones(200_000), np.ones(200_000)]  # mapped into memory by joblib
        assert list(map_jobs(doubled, large, n_jobs=2)) == [2.0, 2.0]
        assert large[0][-1] == 1

    def test_the_error_is_that_of_the_first_item(self) -> None:
        with pytest.raises(InputError, match=r"^no good: 1$"):
            list(map_jobs(fails(), [0, 1, 2, 3], n_jobs=2))

    def test_an_error_with_a_constructor_of_its_own(self) -> None:
        def lacks(_: int) -> None:
            raise MissingExtraError("xgboost", "boost", "this")

        with pytest.raises(MissingExtraError) as caught:
            list(map_jobs(lacks, [1, 2], n_jobs=2))
        assert str(caught.value) == str(MissingExtraError("xgboost", "boost", "this"))

    def test_an_error_that_is_a_fault_keeps_its_type(self) -> None:
        with pytest.raises(ZeroDivisionError):
            list(map_jobs(lambda x: 1 / x, [1, 0], n_jobs=2))

    def test_warnings_are_given_here_once_and_before_the_error(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(InputError, match="no good: 2"):
                list(map_jobs(warns(), [0, 1, 2], n_jobs=2))
        assert [str(one.message) for one in caught] == ["beware of 0", "beware of 1", "beware of 2"]
        assert {one.category for one in caught} == {RuntimeWarning}
        places = {(one.filename, one.lineno) for one in caught}
        assert len(places) == 1
        assert next(iter(places))[0] == __file__

    def test_a_process_dies(self) -> None:
        def dies(x: int) -> int:
            if x == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return x

        with pytest.raises(EngineError, match=r"was killed.*memory.*--jobs"):
            list(map_jobs(dies, range(6), n_jobs=2))
        # What comes after it has processes again.
        assert list(map_jobs(abs, [-1, -2], n_jobs=2)) == [1, 2]

    def test_a_worker_of_ray_dies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import joblib

        class DeathError(Exception):
            pass

        def die(_: int) -> None:
            raise DeathError("The actor died.\n\tclass_name: X. Y")

        monkeypatch.setitem(
            sys.modules, "ray.exceptions", SimpleNamespace(RayActorError=DeathError)
        )
        with (
            joblib.parallel_config(backend="threading", n_jobs=2),
            pytest.raises(EngineError, match=r"was killed.*\(The actor died\)"),
        ):
            list(map_jobs(die, [1, 2]))

    def test_left_before_its_end(self) -> None:
        results = map_jobs(abs, range(1000), n_jobs=2)
        assert next(results) == 0
        results.close()  # type: ignore[attr-defined]
        assert list(map_jobs(abs, [-1, -2], n_jobs=2)) == [1, 2]

    def test_what_cannot_be_sent(self) -> None:
        lock = threading.Lock()
        with pytest.raises(InputError, match=r"cannot be sent to another process.*n_jobs=1"):
            list(map_jobs(lambda x: (x, lock), [1, 2], n_jobs=2))


def fails() -> Callable[[int], int]:
    def fail(x: int) -> int:
        from errcomp.errors import InputError

        if x:
            raise InputError(f"no good: {x}")
        return x

    return fail


def warns() -> Callable[[int], int]:
    def warn(x: int) -> int:
        import warnings

        from errcomp.errors import InputError

        for _ in range(3):
            warnings.warn(f"beware of {x}", RuntimeWarning, stacklevel=1)
        if x == 2:
            raise InputError("no good: 2")
        return x

    return warn
