"""Any directed acyclic graph of events, such as the streams and dependencies of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from errcomp.errors import InputError, describe_names
from errcomp.propagation.graph._fields import listed, name, number, read_object, shown
from errcomp.propagation.graph._node import Node, asking_once, read_node
from errcomp.propagation.graph.algebra import Algebra
from errcomp.propagation.graph.nodes import CHAKRA
from errcomp.propagation.graph.schedule import Schedule, schedule
from errcomp.propagation.terms import Floats, Integers

__all__ = ["Dag", "Sampling"]

T = TypeVar("T")
Duration = str | Node | float
_NAME, _DURATION = name(), number(low=0)
_KEYS = ("kernel", "duration", "graph")


@runtime_checkable
class Sampling(Protocol):
    """An engine whose quantities are arrays of draws."""

    def block(self, names: Sequence[str]) -> Floats:
        """Return one instance of each of these terms or quantities, shape (len(names), draws).

        A name may come several times: each is an instance of its own, as ``repeated(name, 1)``.
        """
        ...


@dataclass(frozen=True)
class Dag(Node, node="dag"):
    r"""Events that start when all those are finished that they wait for.

    .. math:: f_i = d_i + \max_{j \to i} f_j, \qquad T = \max_i f_i

    Waiting is said by edges and by streams: events of one stream run in the order given. Nothing
    else makes an event wait, so what shares a resource must share a stream.

    Attributes
    ----------
    durations : mapping of str to str, Node or float
        For each event its id and what it takes: the name of a kernel of the table (one instance),
        a graph of its own, or a certain time. Pairs will do.
    edges : sequence of (str, str)
        ``(before, after)``: after starts when before is finished. Given twice is given once.
    streams : mapping of str to str
        Stream of an event; events without one wait for their edges only.
    chakra : mapping of str to int or str
        Id of the node of a Chakra trace that an event is.

    Raises
    ------
    InputError
        There is no event, two have the same id, an edge or stream names an event that is not
        there, or events wait for each other in a circle (names the first of the circle).

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
        """Make the graph of a trace: events in order on each stream, and what else they wait for.

        Parameters
        ----------
        streams : mapping of str to iterable of (str, str, Node or float)
            For each stream the ids of its events and what they take, in order.
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
            raise InputError(f"Dag.streams: must be a mapping of streams, got {shown(streams)}")
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
                f"Dag.edges: no event is called {listed(unique)}. Events: "
                f"{describe_names(list(known), wanted=str(unique[0]))}."
            )
        object.__setattr__(self, "edges", tuple(edges))
        for key, check in (("streams", _NAME.check), ("chakra", CHAKRA.check)):
            given, where = getattr(self, key), f"Dag.{key}"
            if not isinstance(given, Mapping):
                raise InputError(f"{where}: must be a mapping of event ids, got {shown(given)}")
            if lost := [event for event in given if event not in known]:
                raise InputError(f"{where}: no event is called {listed(lost)}")
            object.__setattr__(self, key, {e: check(v, where) for e, v in given.items()})
        _ = self._schedule  # finds circles

    @cached_property
    def _schedule(self) -> Schedule:
        at = {event: i for i, event in enumerate(self.durations)}
        edges = [(at[a], at[b]) for a, b in self.edges]
        latest: dict[str, int] = {}
        for event, stream in ((e, self.streams[e]) for e in self.durations if e in self.streams):
            if stream in latest:
                edges.append((latest[stream], at[event]))
            latest[stream] = at[event]
        found = schedule(len(at), edges)
        if isinstance(found, Schedule):
            return found
        ids = list(self.durations)
        names = [repr(ids[i]) for i in found]
        more = f" -> … ({len(names) - 3} more)" if len(names) > 3 else ""
        raise InputError(
            f"Dag.edges: events wait for each other: {' -> '.join(names[:3])}{more} -> {names[0]}. "
            "Remove one of these dependencies."
        )

    def _parts(self) -> tuple[Node, ...]:
        return tuple(what for what in self.durations.values() if isinstance(what, Node))

    def own_leaves(self) -> tuple[tuple[str, int], ...]:
        """Return the kernels of the events."""
        return tuple((what, 1) for what in self.durations.values() if isinstance(what, str))

    def time(self, algebra: Algebra[T]) -> T:
        """Return the time until all events are finished.

        An engine that can draw all durations at once (`Sampling`) gets them through
        `finish_times`; others are asked event by event for sums and maxima.
        """
        if isinstance(algebra, Sampling):
            return cast(T, self.finish_times(self.duration_block(algebra)))
        takes = list(self.durations.values())

        def duration(i: int) -> T:
            what = takes[i]
            if isinstance(what, Node):
                return what.time(algebra)
            return algebra.repeated(what, 1) if isinstance(what, str) else algebra.constant(what)

        return self._schedule.evaluate(duration, algebra.maximum, algebra.total)

    def duration_block(self, algebra: Sampling) -> Floats:
        """Draw the duration of every event, shape (events, draws), in the order of `durations`."""
        takes = list(self.durations.values())
        drawn = [i for i, what in enumerate(takes) if isinstance(what, str)]
        leaves = algebra.block([cast(str, takes[i]) for i in drawn])
        if len(drawn) == len(takes):
            return leaves
        engine = asking_once(cast(Algebra[Floats], algebra))
        block = np.empty((len(takes), len(engine.constant(0.0))))
        block[drawn] = leaves
        for i, what in enumerate(takes):
            if isinstance(what, Node):
                block[i] = what.time(engine)
            elif not isinstance(what, str):
                block[i] = what
        return block

    def finish_times(self, durations: ArrayLike) -> Floats:
        """Return the time at which all events are finished, in each draw.

        Takes O((events + edges) × draws). Beside the input it needs rows for the events that
        others still wait for, 2,048 draws at a time.

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

        The path is followed back from the event that finishes last to the one that it waited for
        longest, and so on; of several that finish together the first counts. Divided by the number
        of draws this is the criticality index of the event. Takes up to five times as long as
        `finish_times`, and one byte for each draw of each event that waits for several.

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
        """Return in how many draws each event is on the critical path; see `critical_paths`."""
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
        """Return plain values for JSON."""
        nodes = []
        for event, what in self.durations.items():
            item: dict[str, Any] = {"id": event}
            if isinstance(what, Node):
                item["graph"] = what.to_dict()
            else:
                item["kernel" if isinstance(what, str) else "duration"] = what
            if event in self.streams:
                item["stream"] = self.streams[event]
            if event in self.chakra:
                item["chakra_node"] = self.chakra[event]
            nodes.append(item)
        return {"node": "dag", "nodes": nodes, "edges": [list(edge) for edge in self.edges]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str, depth: int) -> Dag:
        """Return the graph that this object describes; ``where`` is its JSON path."""
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
            what, path_of = item[given[0]], f"{path}.{given[0]}"
            if given[0] == "graph":
                what = read_node(what, path_of, depth + 1)
            else:
                what = (_NAME if given[0] == "kernel" else _DURATION).check(what, path_of)
            durations.append((event, what))
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
        """Return what `from_dict` takes, as JSON Schema."""
        text = dict(_NAME.schema)
        event = {
            "type": "object",
            "properties": {
                "id": text,
                "kernel": text,
                "duration": dict(_DURATION.schema),
                "graph": {"$ref": "#/$defs/node"},
                "stream": text,
                "chakra_node": dict(CHAKRA.schema),
            },
            "required": ["id"],
            "oneOf": [{"required": [key]} for key in _KEYS],
            "additionalProperties": False,
        }
        edge = {"type": "array", "prefixItems": [text, text], "items": False, "minItems": 2}
        return {
            "type": "object",
            "properties": {
                "node": {"const": "dag"},
                "nodes": {"type": "array", "items": event, "minItems": 1},
                "edges": {"type": "array", "items": edge},
            },
            "required": ["node", "nodes"],
            "additionalProperties": False,
        }


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
    """Check ids and durations; returns them in order."""
    found: dict[str, Duration] = {}
    twice: list[str] = []
    for event, what in (_pair(pair, "Dag.durations") for pair in pairs):
        _NAME.check(event, "Dag.durations")
        if event in found:
            twice.append(event)
        where = f"Dag.durations[{event!r}]"
        if isinstance(what, Node):
            found[event] = what
        elif isinstance(what, str):
            found[event] = _NAME.check(what, where)
        else:
            found[event] = _DURATION.check(what, where)
    if twice:
        raise InputError(
            f"Dag.durations: several events are called {listed(dict.fromkeys(twice))}. Give each "
            "its own id."
        )
    if not found:
        raise InputError("Dag.durations: there is no event. A graph needs at least one.")
    return found
