"""Chakra: nodes of protobuf traces, their graph, and PyTorch's JSON."""

from __future__ import annotations

import datetime
import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import Dag, time_at
from errcomp.propagation.graph.document import read_document
from errcomp.readers.collectives import chakra
from errcomp.readers.collectives.chakra import FORMATS, begins_trace, read
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import recognise
from errcomp.readers.core.source import Source

FIXTURES = Path(__file__).parents[1] / "data" / "readers"
TRACES = FIXTURES / "chakra-et"
JSON = FIXTURES / "chakra-json"


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: bytes | str) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def message(content: bytes) -> bytes:
    return varint(len(content)) + content


META = message(text(1, "0.0.4"))


def node(identity: int, name: str, kind: int, *parts: bytes) -> bytes:
    return message(number(1, identity) + text(2, name) + number(3, kind) + b"".join(parts))


def attribute(name: str, value: bytes) -> bytes:
    return text(10, text(1, name) + value)


def write(tmp_path: Path, *messages: bytes) -> Path:
    path = tmp_path / "trace.0.et"
    path.write_bytes(b"".join((META, *messages)))
    return path


def test_a_value_is_taken_of_wanted_attributes_only() -> None:
    content = text(1, "other") + number(5, 7)
    assert chakra._attribute(content, frozenset(("tensor",))) == ("other", None)
    assert chakra._attribute(content, frozenset(("other",))) == ("other", 7)


def test_nodes_as_rows() -> None:
    found = read(TRACES / "good")
    columns = ("level", "node", "kernel", "kernel_class", "measured", "host", "stream")
    assert found.rows.select(columns).rows() == [
        ("kernel", 1, "aten::mm", "compute", 3.0, True, None),
        ("kernel", 2, "gemm", "compute", 50.0, False, "7"),
        ("kernel", 3, "gemm", "compute", 50.0, False, "7"),
        ("kernel", 4, "gemm", "compute", 60.0, False, "7"),
        ("collective", 5, "ncclAllReduce", "collective", 40.0, False, "8"),
        ("kernel", 6, "wait", "compute", None, None, None),
    ]
    assert found.rows.row(0, named=True)["shape"] == "[[8,8]]"
    assert found.rows.row(0, named=True)["record_function"] == 12
    reduce = found.rows.row(4, named=True)
    assert (reduce["collective"], reduce["size_bytes"], reduce["group"]) == (
        *("all-reduce", 1048576),
        "0",
    )
    assert found.rows["status"].to_list() == [None] * 5 + ["no duration in the trace"]
    assert [(one.reason, one.n) for one in found.dropped] == [("metadata nodes", 1)]
    assert found.notes == ("The trace lacks 1 node that other nodes depend on.",)


def test_the_graph_is_a_document_of_propagation() -> None:
    found = read(TRACES / "good" / "trace.0.et")
    assert found.graph is not None
    document = found.graph()
    json.dumps(document)
    prediction = read_document(document)
    assert prediction.terms.unit == "us"
    terms = dict(zip(prediction.terms.ids, prediction.terms.value, strict=True))
    assert terms == {"aten::mm": 3.0, "gemm": 50.0, "gemm #2": 60.0, "ncclAllReduce": 40.0}
    assert prediction.terms.count.tolist() == [1, 2, 1, 1]
    graph = prediction.graph
    assert isinstance(graph, Dag)
    assert graph.chakra["5"] == 5
    assert graph.streams == {"2": "7", "3": "7", "4": "7", "5": "8"}
    assert ("4", "5") in graph.edges
    # 3 on the CPU, then one after the other on the stream, then the reduction.
    assert float(time_at(graph, terms)) == 3 + 50 + 50 + 60 + 40
    today = datetime.datetime.now(tz=datetime.UTC).date()
    created = datetime.date.fromisoformat(prediction.provenance.created)
    assert abs(today - created) <= datetime.timedelta(days=1)
    assert prediction.provenance.inputs[0].name == "trace.0.et"


def test_streams_need_start_times(tmp_path: Path) -> None:
    stream = attribute("stream", number(9, 7))
    path = write(
        tmp_path, node(1, "", 4, number(7, 5), stream), node(2, "", 4, number(7, 6), stream)
    )
    found = read(path)
    assert found.graph is not None
    graph = read_document(found.graph()).graph
    assert isinstance(graph, Dag)
    assert graph.streams == {}
    # No name: the type of the node.
    assert found.rows["kernel"].to_list() == ["compute", "compute"]


def test_a_workload_has_no_times() -> None:
    found = read(TRACES / "workload")
    assert found.rows.select("collective", "size_bytes", "measured", "status").rows() == [
        ("reduce-scatter", 1048576, None, "no duration in the trace")
    ]
    assert found.graph is None
    assert "a workload to simulate" in found.notes[0]


def test_metadata_longer_than_the_head(tmp_path: Path) -> None:
    rows = read(TRACES / "long_metadata").rows
    assert rows.select("collective", "to_rank", "measured").rows() == [
        ("send", 1, None),
        (None, None, 7.0),
    ]
    assert set(rows["schema"]) == {"1.0.2-chakra.0.0.4"}
    path = tmp_path / "long.et"
    schema = text(2, text(1, "schema") + text(29, "1.0.2"))
    steps = text(2, text(1, "input_file") + text(29, "<step/>" * 20_000))
    path.write_bytes(message(schema + steps) + node(1, "a", 4, number(7, 5)))
    assert read(path).rows["measured"].to_list() == [5.0]


def test_kinds_that_are_not_known_and_attributes_of_another_type(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        node(1, "a", 40, number(7, 5)),
        node(
            2, "b", 7, attribute("comm_type", number(9, 77)), attribute("comm_size", text(29, "x"))
        ),
        node(
            3, "c", 7, attribute("comm_type", number(17, 4)), attribute("comm_size", number(13, 9))
        ),
        node(4, "d", 4, attribute("stream", text(30, b"list")), attribute("op_schema", b"")),
        node(5, "e", 4, attribute("num_ops", varint(3 << 3 | 1) + bytes(8))),
        node(6, "f", 4, attribute("num_ops", varint(5 << 3 | 5) + bytes(4))),
        node(7, "g", 4, attribute("num_ops", varint(21 << 3 | 1) + b"\x09" + bytes(7))),
        node(8, "h", 4, attribute("num_ops", varint(19 << 3 | 5) + b"\x08" + bytes(3))),
        node(9, "i", 7, attribute("comm_size", number(9, 2**64 - 1))),
    )
    rows = read(path).rows
    assert rows["kernel_class"][0] == "unknown"
    assert rows["collective"].to_list()[:3] == [None, "unknown", "all-gather"]
    assert rows["size_bytes"].to_list() == [None, None, 9, None, None, None, None, None, -1]
    assert rows["operations"].to_list() == [None] * 6 + [9, 8, None]
    assert "stream" not in rows.columns


def test_damage_is_named(tmp_path: Path) -> None:
    content = (TRACES / "good" / "trace.0.et").read_bytes()
    path = tmp_path / "trace.0.et"
    path.write_bytes(content[:-3])
    with pytest.raises(InputError, match=r"cut off \(byte \d+: a message .* after 6 nodes\)"):
        read(path)
    path.write_bytes(content + content[len(META) :])
    with pytest.raises(InputError, match="two nodes have the same id"):
        read(path)
    path.write_bytes(META)
    with pytest.raises(InputError, match="this trace has no nodes"):
        read(path)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x00",
        b"hello, world",
        b"SQLite format 3\x00" + bytes(100),
        b"PK\x03\x04" + bytes(100),
        message(text(1, "text")),
        message(text(1, "0.0.4")) + message(number(1, 2)),
        message(text(3, "0.0.4")),
        message(text(1, "0.0.4")) + message(text(2, "a") + number(3, 500)),
    ],
)
def test_other_bytes_are_not_taken_for_it(head: bytes) -> None:
    assert not begins_trace(head)


def test_a_trace_without_metadata_fields(tmp_path: Path) -> None:
    path = tmp_path / "trace.et"
    path.write_bytes(b"\x00" + node(1, "a", 4, number(7, 5)))
    assert [one.name for one in recognise(Source(path))] == ["chakra-et"]
    assert read(path).rows["measured"].to_list() == [5.0]


def test_operators_with_the_times_that_trace_link_adds() -> None:
    found = read(JSON / "good")
    columns = ("node", "kernel", "measured", "status", "record_function", "shape", "stream")
    assert found.rows.select(columns).rows() == [
        (3, "aten::mm", 20.25, None, 6, "8x8", None),
        (4, "gemm_kernel", 50.0, None, 8, "8x8", "7"),
        (5, "aten::relu", None, "no duration in the trace", 10, "8x8", None),
    ]
    assert found.dropped[0].n == 2
    assert found.notes == ()


def test_operators_without_times() -> None:
    found = read(JSON / "no_times")
    assert found.rows["status"].to_list() == ["no duration in the trace"]
    assert "the profiler's trace of the same run" in found.notes[0]


def test_a_newer_schema() -> None:
    rows = read(JSON / "new_version").rows
    assert rows.select("parent", "record_function", "shape").rows() == [(2, 11, "8x4")]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("3", "Expected `array`"),
        ("[3]", "Expected `object`"),
        ('[{"name": "a"}]', "missing required field `id`"),
        ('[{"id": 1, "name": "a"}', "cut off"),
        ("[]", "this trace has no operators"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, nodes: str, message: str) -> None:
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1", "pid": 1, "nodes": ' + nodes + "}")
    with pytest.raises(InputError, match=message):
        read(path)


def test_fields_of_another_type_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "et.json"
    fields = [
        {"parent": "x", "rf_id": [1], "dur": "x", "inputs": "x"},
        {"parent": True, "rf_id": 1 << 62, "dur": True, "input_shapes": [[1, [2]], 3]},
        {"attrs": [3, {"name": "x"}], "dur": -1, "inputs": {"shapes": 3}},
        {"attrs": 3, "dur": 1e308, "inputs": None},
    ]
    nodes = [{"id": i, "name": "a", **one} for i, one in enumerate(fields)]
    path.write_text(json.dumps({"schema": "1", "pid": 1, "nodes": nodes}))
    rows = read(path).rows
    assert set(rows["status"]) == {"no duration in the trace"}
    assert not {"parent", "record_function", "shape"} & set(rows.columns)


def test_a_large_trace_takes_little_more_than_itself(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    nodes = [node(i, f"kernel {i % 50}", 4, number(7, i % 90 + 1)) for i in range(30_000)]
    path = write(tmp_path, *nodes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(path).rows.height == 30_000
    if os.name == "posix":
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.shared
def test_the_samples(shared_data: Path) -> None:
    folder = shared_data / "tools" / "chakra"
    found = ingest(folder)
    assert [one.name for one in found.skipped] == ["SOURCE.md"]
    ring = read(folder / "custom_ring_allreduce_8npus_1MB.0.et")
    assert ring.rows.height == 35
    assert ring.rows["measured"].drop_nulls().to_list() == [7.0] * 7
    # 14 steps of an eighth of 1 MiB, sent and received.
    moved = ring.rows.filter(level="collective")
    assert moved.height == 28
    assert set(moved["size_bytes"]) == {1048576 // 8}
    assert ring.graph is not None
    prediction = read_document(ring.graph())
    assert prediction.graph is not None
    assert (
        float(time_at(prediction.graph, {"COMP_NODE_tb0_step1": 7.0, **_terms(prediction)})) == 49
    )
    for path in sorted(folder.glob("all_reduce*.et")):
        rows = read(path).rows
        assert rows.select("collective", "size_bytes").rows() == [("all-reduce", 1048576)]
    traces = (
        (folder / "pytorch_et_simple_add.json.gz", 36),
        (
            shared_data / "tools" / "triosim" / "graph_vgg13-iter41.json.gz",
            900,
        ),
    )
    for path, n in traces:
        assert [one.name for one in recognise(Source(path))] == ["chakra-json"]
        rows = read(path).rows
        assert rows.height == n
        whole = json.loads(gzip.decompress(path.read_bytes()))["nodes"]
        assert rows["record_function"].to_list() == [one["rf_id"] for one in whole if one["rf_id"]]


def _terms(prediction: object) -> dict[str, float]:
    terms = prediction.terms  # type: ignore[attr-defined]
    return dict(zip(terms.ids, terms.value, strict=True))


def test_what_is_in_the_registry() -> None:
    assert [one.name for one in FORMATS] == ["chakra-et", "chakra-json"]


@pytest.mark.parametrize("block", [1, 2, 1 << 17])
@pytest.mark.parametrize("folder", ["good", "long_metadata", "workload"])
def test_nodes_decoded_together_are_those_decoded_one_by_one(
    folder: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (TRACES / folder).glob("*.et")
    monkeypatch.setattr(chakra, "_BLOCK", block)
    together = chakra.read_nodes(Source(path))
    monkeypatch.setattr(chakra, "_nodes_together", lambda content: None)
    assert together == chakra.read_nodes(Source(path))


def test_dependencies_packed_and_not_are_in_their_order(tmp_path: Path) -> None:
    several = number(5, 9) + text(5, varint(7) + varint(300)) + text(4, b"") + number(4, 2**64 - 1)
    path = write(tmp_path, node(2**63, "a", 4, several), node(1, "b", 4, text(8, text(2, "[2]"))))
    _, nodes = chakra.read_nodes(Source(path))
    assert [one.after for one in nodes] == [[9, 7, 300, 2**64 - 1], []]
    assert [(one.id, one.name, one.shapes) for one in nodes] == [(2**63, "a", ""), (1, "b", "[2]")]


def test_a_name_twice_in_a_node_of_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"schema": "1.0.2", "nodes": [{"id": 1, "name": "aten::mm", "id": 2}]}')
    with pytest.raises(InputError, match=r"an object names 'id' twice\. Copy the file again\."):
        chakra._decoded(Source(path))


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ('"input_shapes": [[8, 4], [], [2], 3, ["x"]]', "8x4;2"),
        ('"inputs": {"shapes": [[8, 4], [64]]}', "8x4;64"),
        ('"inputs": {"values": [[8, 4]]}', None),
        ('"inputs": 5', None),
        ('"x": 1', None),
    ],
)
def test_shapes_of_a_node_of_json(given: str, shape: str | None) -> None:
    node = msgspec.json.decode(f'{{"id": 1, "name": "x", {given}}}', type=chakra._JsonNode)
    assert chakra._shape(node) == shape
    for broken in (b"[[8, 4]", b"[" * 100_000):
        node.input_shapes = msgspec.Raw(broken)
        assert chakra._shape(node) is None
