"""Any directed acyclic graph of events, such as the streams and dependencies of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, describe_names
from errcomp.propagation.graph._node import (
    Algebra,
    Node,
    T,
    asking_once,
    listed,
    name,
    number,
    object_schema,
    read_node,
    read_object,
    shown,
)
from errcomp.propagation.graph.nodes import CHAKRA
from errcomp.propagation.graph.schedule import Schedule, schedule
from errcomp.propagation.terms import Floats, Integers

Duration = str | Node | float
_NAME, _DURATION = name(), number(low=0)
_KEYS = ("kernel", "duration", "graph")


@runtime_checkable
class Sampling(Protocol):
    """An engine whose quantities are arrays of draws."""

    def block(self, names: Sequence[str]) -> Floats:
        """Return one instance of each of these terms or quantities, shape (len(names), draws).

        A repeated name gives separate instances, as ``repeated(name, 1)`` does.

        Examples
        --------
        >>> from errcomp.propagation.montecarlo import SamplingAlgebra
        >>> issubclass(SamplingAlgebra, Sampling)
        True
        """
        ...


@dataclass(frozen=True)
class Dag(Node, node="dag"):
    r"""Events that start when all their predecessors are finished.

    .. math:: f_i = d_i + \max_{j \to i} f_j, \qquad T = \max_i f_i

    Events wait for edges and streams: events of a stream run in the given order. They wait for
    nothing else, so events that share a resource must share a stream.

    Attributes
    ----------
    durations : mapping of str to str, Node or float
        Id and duration of each event: the name of a kernel of the table (one instance), a graph,
        or a certain time. Also as pairs.
    edges : sequence of (str, str)
        ``(before, after)``: after starts when before is finished. Duplicates do not matter.
    streams : mapping of str to str
        Stream of an event; events without a stream wait only for their edges.
    chakra : mapping of str to int or str
        Id of an event's node in a Chakra trace.

    Raises
    ------
    InputError
        There is no event, two have the same id, an edge or stream names an unknown event, or
        events wait for each other in a cycle (the message names the first of them).

    References
    ----------
    Kelley and Walker (1959), "Critical-path planning and scheduling", Proceedings of the Eastern
    Joint Computer Conference, 160-173, doi:10.1145/1460299.1460318.

    Examples
    --------
    >>> from errcomp.propagation.graph import time_at
    >>> dag = Dag({"load": "copy", "compute": "matmul", "store": 1.0},
    ...           edges=[("load", "compute"), ("compute", "store")])
    >>> float(time_at(dag, {"copy": 2.0, "matmul": 5.0}))
    8.0
    >>> Dag({"a": 1.0, "b": 1.0}, edges=[("a", "b"), ("b", "a")])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    errcomp.errors.InputError: Dag.edges: events wait for each other: 'a' -> 'b' -> 'a'. Remove ...
    """

    durations: Mapping[str, Duration]
    edges: Sequence[tuple[str, str]] = ()
    streams: Mapping[str, str] = field(default_factory=dict)
    chakra: Mapping[str, int | str] = field(default_factory=dict)

    fields: ClassVar = {}

    @classmethod
    def from_streams(
        cls,
        streams: Mapping[str, Iterable[tuple[str, Duration]]],
        dependencies: Iterable[tuple[str, str]] = (),
    ) -> Dag:
        """Make the graph of a trace: events in order on each stream, and other dependencies.

        Parameters
        ----------
        streams : mapping of str to iterable of (str, str, Node or float)
            For each stream, ids and durations of its events, in order.
        dependencies : iterable of (str, str)
            ``(before, after)`` across streams.

        Examples
        --------
        >>> dag = Dag.from_streams({"0": [("a", 3.0), ("b", 1.0)], "1": [("c", 2.0)]},
        ...                        dependencies=[("c", "b")])
        >>> dag.to_dict()["nodes"][0]
        {'id': 'a', 'duration': 3.0, 'stream': '0'}
        """
        if not isinstance(streams, Mapping):
            raise InputError(
                f"Dag.streams: must map each stream to its events, got {shown(streams)}"
            )
        events = [
            (stream, _pair(e, f"stream {stream!r}")) for stream in streams for e in streams[stream]
        ]
        return cls(
            cast(Any, [event for _, event in events]),
            list(dependencies),
            {event: stream for stream, (event, _) in events},
        )

    def _check(self) -> None:
        pairs = self.durations.items() if isinstance(self.durations, Mapping) else self.durations
        object.__setattr__(self, "durations", _events(pairs))
        known = self.durations
        edges = [_edge(edge, "Dag.edges") for edge in self.edges]
        dangling = [end for edge in edges for end in edge if end not in known]
        if dangling:
            unique = list(dict.fromkeys(dangling))
            raise InputError(
                f"Dag.edges: no event is named {listed(unique)}. Events: "
                f"{describe_names(list(known), wanted=str(unique[0]))}."
            )
        object.__setattr__(self, "edges", tuple(edges))
        for key, check in (("streams", _NAME.check), ("chakra", CHAKRA.check)):
            given, where = getattr(self, key), f"Dag.{key}"
            if not isinstance(given, Mapping):
                raise InputError(
                    f"{where}: must be a mapping whose keys are event ids, got {shown(given)}"
                )
            if lost := [event for event in given if event not in known]:
                raise InputError(f"{where}: no event is named {listed(lost)}")
            object.__setattr__(self, key, {e: check(v, where) for e, v in given.items()})
        _ = self._schedule  # finds cycles

    @cached_property
    def _schedule(self) -> Schedule:
        at = {event: i for i, event in enumerate(self.durations)}
        edges = [(at[a], at[b]) for a, b in self.edges]
        latest: dict[str, int] = {}
        for event, stream in ((e, self.streams[e]) for e in self.durations if e in self.streams):
            if stream in latest:
                edges.append((latest[stream], at[event]))
            latest[stream] = at[event]
        order = schedule(len(at), edges)
        if isinstance(order, Schedule):
            return order
        ids = list(self.durations)
        names = [repr(ids[i]) for i in order]
        more = f" -> … ({len(names) - 3} more)" if len(names) > 3 else ""
        raise InputError(
            f"Dag.edges: events wait for each other: {' -> '.join(names[:3])}{more} -> {names[0]}. "
            "Remove one of these dependencies."
        )

    def _parts(self) -> tuple[Node, ...]:
        return tuple(duration for duration in self.durations.values() if isinstance(duration, Node))

    def own_leaves(self) -> tuple[tuple[str, int], ...]:
        return tuple((kernel, 1) for kernel in self.durations.values() if isinstance(kernel, str))

    def time(self, algebra: Algebra[T]) -> T:
        # An engine that can draw all durations at once needs no sums and maxima event by event.
        # Since Python 3.12, isinstance does not see a method that __getattr__ passes on.
        if hasattr(algebra, "block"):
            block = self.duration_block(cast(Sampling, algebra))
            times = self._schedule.finish_times(block, overwrite=True)
            if hasattr(algebra, "reuse"):
                algebra.reuse(block)
            return cast(T, times)
        takes = list(self.durations.values())

        def duration(i: int) -> T:
            span = takes[i]
            if isinstance(span, Node):
                return span.time(algebra)
            return algebra.repeated(span, 1) if isinstance(span, str) else algebra.constant(span)

        return self._schedule.evaluate(duration, algebra.maximum, algebra.total)

    def duration_block(self, algebra: Sampling) -> Floats:
        """Draw the duration of every event, shape (events, draws), in the order of `durations`.

        Examples
        --------
        >>> from errcomp.propagation.montecarlo import SamplingAlgebra
        >>> class Certain:  # an engine in which all kernels take 2
        ...     def block(self, names):
        ...         return np.full((len(names), 3), 2.0)
        >>> Dag({"a": "k1", "b": "k2"}).duration_block(Certain())
        array([[2., 2., 2.],
               [2., 2., 2.]])
        """
        drawn, names = self._drawn
        leaves = algebra.block(names)
        if len(drawn) == len(self.durations):
            return leaves
        engine = asking_once(cast(Algebra[Floats], algebra))
        block = np.empty((len(self.durations), len(engine.constant(0.0))))
        block[drawn] = leaves
        for i, duration in enumerate(self.durations.values()):
            if isinstance(duration, Node):
                block[i] = duration.time(engine)
            elif not isinstance(duration, str):
                block[i] = duration
        return block

    @cached_property
    def _drawn(self) -> tuple[list[int], tuple[str, ...]]:
        """Places and names of the events that take as long as a kernel."""
        events = enumerate(self.durations.values())
        drawn = {i: duration for i, duration in events if isinstance(duration, str)}
        return list(drawn), tuple(drawn.values())

    def finish_times(self, durations: ArrayLike) -> Floats:
        """Return the time at which all events are finished, in each draw.

        Takes O((events + edges) × draws). In addition to the input it needs memory for the events
        that others still wait for, 2,048 draws at a time; up to 1,024 draws, for a copy.

        Parameters
        ----------
        durations : array_like, shape (events, draws)
            In the order of `durations`.

        Returns
        -------
        ndarray, shape (draws,)

        Examples
        --------
        >>> dag = Dag({"a": "k1", "b": "k2", "c": "k3"}, edges=[("a", "c"), ("b", "c")])
        >>> dag.finish_times([[1.0, 5.0], [2.0, 2.0], [1.0, 1.0]])
        array([3., 6.])
        """
        return self._schedule.finish_times(self._as_block(durations))

    def critical_paths(self, durations: ArrayLike) -> tuple[Floats, Integers]:
        """Return the finish times, and in how many draws each event is on the critical path.

        The path leads back from the event that finishes last to the event that it waited for
        longest, and so on; if several finish together, the first counts. Divided by the number of
        draws this is the criticality index of the event. Takes up to five times as long as
        `finish_times`, and one byte per draw for each event that waits for several.

        Parameters
        ----------
        durations : array_like, shape (events, draws)
            In the order of `durations`.

        Returns
        -------
        tuple of ndarray, shape (draws,), and ndarray of int, shape (events,)

        References
        ----------
        Van Slyke (1963), "Monte Carlo methods and the PERT problem", Operations Research 11(5),
        839-860, doi:10.1287/opre.11.5.839.

        Examples
        --------
        >>> dag = Dag({"a": "k1", "b": "k2", "c": "k3"}, edges=[("a", "c"), ("b", "c")])
        >>> dag.critical_paths([[1.0, 5.0, 3.0], [2.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
        (array([3., 6., 4.]), array([2, 1, 3]))
        """
        return self._schedule.critical(self._as_block(durations))

    def critical_counts(self, durations: ArrayLike) -> Integers:
        """Return in how many draws each event is on the critical path; see `critical_paths`.

        Examples
        --------
        >>> dag = Dag({"a": "k1", "b": "k2", "c": "k3"}, edges=[("a", "c"), ("b", "c")])
        >>> dag.critical_counts([[1.0, 5.0, 3.0], [2.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
        array([2, 1, 3])
        """
        return self.critical_paths(durations)[1]

    def _as_block(self, durations: ArrayLike) -> Floats:
        block = np.asarray(durations, dtype=np.float64)
        if block.ndim != 2 or len(block) != len(self.durations):
            raise InputError(
                f"durations: must have the shape ({len(self.durations)} events, draws), got "
                f"{block.shape}"
            )
        return block

    def to_dict(self) -> dict[str, Any]:
        nodes = []
        for event, duration in self.durations.items():
            item: dict[str, Any] = {"id": event}
            if isinstance(duration, Node):
                item["graph"] = duration.to_dict()
            else:
                item["kernel" if isinstance(duration, str) else "duration"] = duration
            if event in self.streams:
                item["stream"] = self.streams[event]
            if event in self.chakra:
                item["chakra_node"] = self.chakra[event]
            nodes.append(item)
        return {"node": "dag", "nodes": nodes, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str, depth: int) -> Dag:
        """Return the graph that an object describes; ``where`` is its JSON path.

        Examples
        --------
        >>> document = {"node": "dag", "nodes": [{"id": "a", "duration": 3.0}]}
        >>> float(Dag.from_dict(document, "graph", 1).finish_times([[3.0]])[0])
        3.0
        """
        read_object(value, where, ["node", "nodes", "edges"], ["node", "nodes"])
        nodes, edges = value["nodes"], value.get("edges", [])
        for key, items in (("nodes", nodes), ("edges", edges)):
            if not isinstance(items, list):
                raise InputError(f"{where}.{key}: must be a list, got {shown(items)}")
        durations: list[tuple[str, Duration]] = []
        extra: dict[str, dict[str, Any]] = {"stream": {}, "chakra_node": {}}
        for i, item in enumerate(nodes):
            path = f"{where}.nodes[{i}]"
            read_object(item, path, ["id", *_KEYS, *extra], ["id"])
            event = _NAME.check(item["id"], f"{path}.id")
            given = [key for key in _KEYS if key in item]
            if len(given) != 1:
                raise InputError(
                    f"{path}: needs exactly one of {', '.join(_KEYS)}, got "
                    f"{listed(given) or 'none'}"
                )
            duration, path_of = item[given[0]], f"{path}.{given[0]}"
            if given[0] == "graph":
                duration = read_node(duration, path_of, depth + 1)
            else:
                duration = (_NAME if given[0] == "kernel" else _DURATION).check(duration, path_of)
            durations.append((event, duration))
            for key, check in (("stream", _NAME), ("chakra_node", CHAKRA)):
                if key in item:
                    extra[key][event] = check.check(item[key], f"{path}.{key}")
        for i, edge in enumerate(edges):
            _edge(edge, f"{where}.edges[{i}]")
        try:
            return cls(cast(Any, durations), edges, extra["stream"], extra["chakra_node"])
        except InputError as error:
            raise InputError(f"{where}: {error}") from error

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the objects that `from_dict` takes.

        Examples
        --------
        >>> sorted(Dag.schema()["properties"])
        ['edges', 'node', 'nodes']
        """
        text = dict(_NAME.schema)
        event = object_schema(
            {
                "id": _NAME,
                "kernel": _NAME,
                "duration": _DURATION,
                "graph": {"$ref": "#/$defs/node"},
                "stream": _NAME,
                "chakra_node": CHAKRA,
            },
            ["id"],
            oneOf=[{"required": [key]} for key in _KEYS],
        )
        edge = {"type": "array", "prefixItems": [text, text], "items": False, "minItems": 2}
        keys: dict[str, Any] = {
            "node": {"const": "dag"},
            "nodes": {"type": "array", "items": event, "minItems": 1},
            "edges": {"type": "array", "items": edge},
        }
        return object_schema(keys, ["node", "nodes"])


def _pair(value: Any, where: str) -> tuple[Any, Any]:
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str):
        return value[0], value[1]
    raise InputError(f"{where}: must be a pair that begins with a name, got {shown(value)}")


def _edge(value: Any, where: str) -> tuple[str, str]:
    before, after = _pair(value, where)
    if isinstance(after, str):
        return before, after
    raise InputError(f"{where}: must be a pair of names, got {shown(value)}")


def _events(pairs: Iterable[Any]) -> dict[str, Duration]:
    """Check ids and durations; return them in order."""
    events: dict[str, Duration] = {}
    twice: list[str] = []
    for event, duration in (_pair(pair, "Dag.durations") for pair in pairs):
        _NAME.check(event, "Dag.durations")
        if event in events:
            twice.append(event)
        if not isinstance(duration, Node):
            holds = _NAME if isinstance(duration, str) else _DURATION
            duration = holds.check(duration, f"Dag.durations[{event!r}]")
        events[event] = duration
    if twice:
        raise InputError(
            f"Dag.durations: several events are named {listed(dict.fromkeys(twice))}. Give each "
            "its own id."
        )
    if not events:
        raise InputError("Dag.durations: a graph needs at least one event, got none.")
    return events
