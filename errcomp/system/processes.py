"""Run the same work in this process, in several, or on several machines, through joblib.

Results come in the order of the items; warnings and errors come as if everything had run here. No
result depends on the number of processes: the caller gives each item everything it needs, seeds
included.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pickle import PicklingError
from typing import Any, Protocol, TypeVar, runtime_checkable
from uuid import uuid4

from errcomp.errors import EngineError, ErrcompError, InputError, MissingExtraError

#: Called with the work done, and the total.
Progress = Callable[[float, float], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Errors of other backends than joblib's own that mean that a worker was killed.
_DEATHS = (("distributed", "KilledWorker"), ("ray.exceptions", "RayActorError"))
#: Calls queued per core of a cluster: results come in order, and some take longer.
_AHEAD = 4
#: Made again in each new process, but inherited by a fork: compare the process ID as well.
_NAME = uuid4().hex


@runtime_checkable
class ShowsNames(Protocol):
    """A `Progress` that also shows which step has begun."""

    def begin(self, what: str) -> None:
        """Take the name of the step."""


class Steps:
    """Counts steps of work and reports them to a `Progress`, if there is one.

    Examples
    --------
    >>> steps = Steps(print, 3)
    >>> steps.step()
    1 3
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def begin(self, what: str) -> None:
        """Name the step that begins to a `Progress` that shows names."""
        if isinstance(self.progress, ShowsNames):
            self.progress.begin(what)

    def step(self) -> None:
        """Report one more step."""
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def count_jobs(n_jobs: int | None) -> int:
    """Return how many workers `map_jobs` would use.

    As in scikit-learn: None is 1, or the setting of a surrounding ``joblib.parallel_config``; -1 is
    all cores, of the whole cluster on a cluster.

    Raises
    ------
    InputError
        It is not a whole number, or it is 0.
    MissingExtraError
        It is more than one, and joblib is not installed.

    Examples
    --------
    >>> count_jobs(None), count_jobs(1)
    (1, 1)
    """
    if n_jobs is not None and (type(n_jobs) is not int or n_jobs == 0):
        raise InputError(
            f"n_jobs must be a whole number of processes, -1 for one per core, or None, got "
            f"{n_jobs!r}"
        )
    # Where joblib is not loaded no backend is configured; the core does not need it.
    loaded = sys.modules.get("joblib")
    if n_jobs == 1 or (n_jobs is None and loaded is None):
        return 1
    return int((loaded or _import_joblib()).effective_n_jobs(n_jobs))


def map_jobs(
    function: Callable[[Item], Result], items: Iterable[Item], *, n_jobs: int | None = None
) -> Iterator[Result]:
    """Call a function with each item, in this process or through joblib, and yield the results.

    Parameters
    ----------
    function : callable
        A function of a module, or a ``functools.partial`` of one. Its results must depend on its
        arguments alone.
    items : iterable
        What each call needs, and no more: it is sent to the process.
    n_jobs : int, optional
        See `count_jobs`. With 1, joblib is not imported.

    Yields
    ------
    object
        The results, in the order of the items.

    Raises
    ------
    ErrcompError
        The error of the first item that raised; warnings of earlier items are issued first.
    EngineError
        A process was killed.

    Examples
    --------
    >>> list(map_jobs(abs, [3, -4]))
    [3, 4]
    """
    if count_jobs(n_jobs) == 1:
        return map(function, items)
    return _in_processes(function, items, n_jobs)


def _in_processes(
    function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None
) -> Iterator[Result]:
    call = _Call(function, _process())
    backend, _ = _import_joblib().parallel.get_active_backend()
    outcomes: Iterable[_Outcome] = ()
    try:
        if hasattr(backend, "client"):
            outcomes = _on_dask(backend, call, items)
        else:
            outcomes = _through_joblib(backend, call, items, n_jobs)
        for outcome in outcomes:
            yield outcome.result()
    except Exception as error:
        told = _explained(error)
        if told is None:
            raise
        raise told from error
    finally:
        if isinstance(outcomes, Generator):
            with warnings.catch_warnings():
                # The caller stopped on an error; do not distract from it with wasted work.
                warnings.simplefilter("ignore")
                outcomes.close()


def _through_joblib(
    backend: Any, call: _Call, items: Iterable[Any], n_jobs: int | None
) -> Iterator[_Outcome]:
    joblib, left = _import_joblib(), False

    def wanted() -> Iterator[Any]:
        for item in items:
            if left:
                return
            yield item

    # Ray has no generator: its results come all at once.
    lazily = getattr(backend, "supports_return_generator", False)
    # "c": a function may write into its arguments, as it may in this process.
    parallel = joblib.Parallel(
        n_jobs=n_jobs, return_as="generator" if lazily else "list", mmap_mode="c"
    )
    delayed = joblib.delayed(call)
    outcomes: Iterable[_Outcome] = parallel(delayed(item) for item in wanted())
    try:
        # Not "yield from", which closes the generator: loky's thread then fails.
        for outcome in outcomes:  # noqa: UP028
            yield outcome
    except GeneratorExit:
        left = True
        with suppress(Exception):  # errors of results that are not awaited
            deque(outcomes, maxlen=0)
        raise


def _on_dask(backend: Any, call: _Call, items: Iterable[Any]) -> Iterator[_Outcome]:
    """Use the client of joblib's backend: joblib 1.6 waits for ever for tasks that killed workers.

    Data travel with each call, so that another worker can repeat the tasks of a dead one.
    """
    client, waiting = backend.client, deque[Any]()
    ahead = _AHEAD * sum(client.ncores().values())
    try:
        for item in items:
            waiting.append(client.submit(call, item, pure=False, **backend.submit_kwargs))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        client.cancel(list(waiting))


def _process() -> tuple[str, int]:
    return _NAME, os.getpid()


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Result of a call in another process: its value or its error, and the warnings before it."""

    value: Any
    error: tuple[type[ErrcompError], tuple[Any, ...], dict[str, Any]] | None
    warned: tuple[tuple[Warning, type[Warning], str, int], ...]

    def result(self) -> Any:
        for message, category, filename, line in self.warned:
            warnings.warn_explicit(message, category, filename, line)
        if self.error is None:
            return self.value
        # Made without its constructor, whose arguments may differ from the message.
        kind, arguments, state = self.error
        error = kind.__new__(kind, *arguments)
        error.__dict__.update(state)
        raise error


@dataclass(frozen=True, slots=True)
class _Call:
    """Calls a function, and returns its warnings and errors as well."""

    function: Callable[[Any], Any]
    home: tuple[str, int]

    def __call__(self, item: Any) -> _Outcome:
        if _process() == self.home:  # a thread shares the warnings of its process
            return self._outcome(item, [])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            return self._outcome(item, caught)

    def _outcome(self, item: Any, caught: list[warnings.WarningMessage]) -> _Outcome:
        value, raised = None, None
        try:
            value = self.function(item)
        except ErrcompError as error:
            raised = (type(error), error.args, vars(error))
        seen = {(str(w.message), w.category, w.filename, w.lineno): w.message for w in caught}
        # A warning given as text arrives as an instance of its category.
        warned = tuple((message, *key[1:]) for key, message in seen.items())
        return _Outcome(value, raised, warned)  # type: ignore[arg-type]


def _explained(error: Exception) -> ErrcompError | None:
    """Return an error that says what to do if a process died or was not reached; else None."""
    here = ((sys.modules.get(module), name) for module, name in _DEATHS)
    if isinstance(error, (BrokenProcessPool, *(getattr(m, n) for m, n in here if m))):
        reason = re.split(r"\.\s", str(error).strip())[0].rstrip(".")
        return EngineError(
            "a worker process was killed, most likely because memory ran out "
            f"({reason}). Use fewer processes (n_jobs, --jobs), or machines with more memory."
        )
    if isinstance(error, CancelledError):
        return EngineError(
            f"the cluster stopped before the work was done ({error}). Start it again, or use "
            "n_jobs=1."
        )
    if isinstance(error, PicklingError):
        return InputError(
            f"the arguments cannot be sent to another process ({error}). Use n_jobs=1, or define "
            "the functions that you pass in a module."
        )
    return None


def _import_joblib() -> Any:
    try:
        import joblib  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("joblib", "jobs", "running more than one process") from error
    return joblib
