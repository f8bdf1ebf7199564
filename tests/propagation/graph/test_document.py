from __future__ import annotations

import json
import math
import re
import time
from pathlib import Path

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.propagation.graph import (
    LAYERS,
    Collective,
    Constant,
    Dag,
    Input,
    Kernel,
    Node,
    Prediction,
    Provenance,
    Quantity,
    Serial,
    attach,
    read_document,
    read_graph,
    schema,
    time_at,
    to_document,
    write_document,
)
from errcomp.propagation.graph import document as module
from errcomp.propagation.terms import Level, Terms

DATA = Path(__file__).parent / "data"
MADE = Provenance(
    "predictor", "1.2", "2025-01-31T12:00:00Z", (Input("trace.0.et", "0" * 63 + "a"),), "a note"
)


def terms(**changes) -> Terms:
    values = {
        "ids": np.array(["gemm", "softmax", "layernorm"]),
        "classes": np.array(["linear", "pointwise", "pointwise"]),
        "value": np.array([1.5, 0.25, 0.1]),
        "count": np.array([32, 32, 64]),
        "bias": np.array([0.0, -0.05, 0.1]),
        "spread": np.array([0.1, 0.3, 0.3]),
        "levels": (
            Level("device", np.array([0, 0, 0]), 0.2),
            Level("class", np.array([0, 1, 1]), 0.3),
        ),
        "unit": "ms",
    }
    return Terms(**{**values, **changes})


GRAPH = Serial(
    [
        Kernel("gemm", 32, chakra_node=7),
        Kernel("softmax", 32),
        Collective("all-reduce", 8, 1e8, 5e-6, Quantity("link", 3e11, 0.1), unit="ms"),
    ]
)


def prediction(graph: Node | None = GRAPH, **changes) -> Prediction:
    return Prediction("iteration", "ms", "model", terms(**changes), MADE, graph)


def valid() -> dict:
    """Return the document afresh, as parsed from its text."""
    return json.loads(json.dumps(to_document(prediction())))


def assert_same_terms(a: Terms, b: Terms) -> None:
    for key in ("ids", "classes", "value", "count", "bias", "spread"):
        np.testing.assert_array_equal(getattr(a, key), getattr(b, key))
        assert getattr(a, key).dtype.kind == getattr(b, key).dtype.kind
    assert (a.kind, a.df, a.unit) == (b.kind, b.df, b.unit)
    assert [(v.name, v.share, v.codes.tolist()) for v in a.levels] == [
        (v.name, v.share, v.codes.tolist()) for v in b.levels
    ]
    if a.matrix is None:
        assert b.matrix is None
    else:
        np.testing.assert_array_equal(a.matrix, b.matrix)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"levels": ()},
        {"df": 4.5},
        {"kind": "relative"},
        {"kind": "absolute", "value": np.array([-1.0, 0.0, 2.0])},
        {"levels": (), "matrix": np.array([[1, 0.5, 0], [0.5, 1, -0.25], [0, -0.25, 1.0]])},
    ],
    ids=["levels", "independent", "t", "relative", "absolute", "matrix"],
)
def test_what_is_written_is_read(tmp_path: Path, changes) -> None:
    given = prediction(None if changes.get("kind") else GRAPH, **changes)
    path = tmp_path / "p.json"
    write_document(given, path)
    found = read_document(path)
    assert_same_terms(found.terms, given.terms)
    assert (found.name, found.unit, found.level) == ("iteration", "ms", "model")
    assert found.graph == given.graph
    assert found.provenance == MADE
    again = tmp_path / "again.json"
    write_document(found, again)
    assert again.read_bytes() == path.read_bytes()


def test_numbers_survive_to_the_last_bit(tmp_path: Path) -> None:
    value = np.array([1 / 3, math.pi * 1e-300, np.nextafter(1.0, 2.0)])
    write_document(prediction(None, value=value), tmp_path / "p.json")
    np.testing.assert_array_equal(read_document(tmp_path / "p.json").terms.value, value)


def test_a_result_becomes_a_leaf_of_the_next_layer(tmp_path: Path) -> None:
    step = Quantity("iteration", 412.0, spread=0.06, bias=0.02)
    made = Prediction.single(step, unit="ms", level="model", provenance=MADE, df=5.0)
    write_document(made, tmp_path / "step.json")
    below = read_document(tmp_path / "step.json")
    assert below.graph is None
    assert below.terms.df == 5.0
    job = Serial([Kernel(below.name, 1000), Quantity("restart", 6e4, 0.5)])
    assert attach(below.terms, job).ids.tolist() == ["iteration", "restart"]


def test_archived_documents_of_version_1_are_read() -> None:
    found = read_document(DATA / "prediction-v1.json")
    assert_same_terms(found.terms, terms())
    assert found.graph == GRAPH
    assert found.provenance == MADE
    assert read_graph(DATA / "prediction-v1.json") == GRAPH
    dag = read_graph(DATA / "graph-v1.json")
    assert isinstance(dag, Dag)
    assert float(time_at(dag, {"k1": 2.0, "k2": 3.0})) == 6.0


def test_optional_keys_may_be_missing() -> None:
    document = valid()
    del document["graph"]
    document["correlation"] = {"levels": []}
    document["terms"] = [{"id": "a", "class": "b", "value": 1}]
    document["distribution"] = {"kind": "log-ratio"}
    document["provenance"] = {"tool": "t", "tool_version": "", "created": "2025-01-31"}
    found = read_document(document)
    assert found.graph is None
    assert_same_terms(
        found.terms,
        Terms(
            np.array(["a"]),
            np.array(["b"]),
            np.ones(1),
            np.ones(1, dtype=int),
            np.zeros(1),
            np.zeros(1),
            unit="ms",
        ),
    )


def test_groups_are_numbered_anew() -> None:
    document = valid()
    for row, groups in zip(document["terms"], ([9, 40], [9, 7], [9, 7]), strict=True):
        row["groups"] = groups
    assert [v.codes.tolist() for v in read_document(document).terms.levels] == [
        [0, 0, 0],
        [1, 0, 0],
    ]


def put(*path_and_value):
    *path, last, value = path_and_value

    def change(document: dict) -> None:
        place = document
        for key in path:
            place = place[key]
        place[last] = value

    return change


def drop(*path):
    def change(document: dict) -> None:
        place = document
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


WRONG = [
    (drop("format"), "format: must be 'errcomp-prediction', got none"),
    (put("format", "chakra"), "format: must be 'errcomp-prediction', got 'chakra'"),
    (
        put("version", 2),
        "version: the document has version 2, but this errcomp reads versions up to 1.",
    ),
    (put("version", 0), "version: must be a whole number of at least 1, got 0"),
    (put("version", "1"), "version: must be a whole number"),
    (drop("version"), "missing key 'version'"),
    (drop("terms"), "missing key 'terms'"),
    (put("term", []), "unknown key 'term'. Known here: format, version, name"),
    (put("name", ""), "name: must be a name"),
    (put("unit", None), "unit: must be text, got None"),
    (put("level", "chip"), "level: must be one of hardware, kernel, model, system, service, got"),
    (put("distribution", "kind", "normal"), "distribution.kind: must be one of log-ratio, rel"),
    (put("distribution", "df", 0), "distribution.df: must be a finite number greater than 0"),
    (put("distribution", "dof", 3), "distribution: unknown key 'dof'. Known here: kind, df"),
    (put("distribution", []), r"distribution: must be an object, got \[\]"),
    (put("terms", {}), "terms: must be a list of at least one term, got {}"),
    (put("terms", []), "terms: must be a list of at least one term"),
    (put("terms", 1, 5), r"terms\[1\]: must be an object, got 5"),
    (put("terms", 2, "spread", -0.1), r"terms\[2\].spread: must be a finite number of at least 0,"),
    (put("terms", 2, "spread", float("nan")), r"terms\[2\].spread: .*, got nan"),
    (put("terms", 1, "bias", float("inf")), r"terms\[1\].bias: must be a finite number, got inf"),
    (put("terms", 1, "bias", 10**400), r"terms\[1\].bias: must be a finite number, got 1000"),
    (put("terms", 1, "value", 0), r"terms\[1\].value: must be greater than 0 for log-ratio errors"),
    (put("terms", 1, "value", "1"), r"terms\[1\].value: must be a finite number, got '1'"),
    (put("terms", 1, "value", True), r"terms\[1\].value: must be a finite number, got True"),
    (put("terms", 0, "count", 0), r"terms\[0\].count: must be a whole number of at least 1, got 0"),
    (put("terms", 0, "count", 1.5), r"terms\[0\].count: must be a whole number"),
    (put("terms", 2, "id", "gemm"), r"terms\[2\].id: 'gemm' is also the id of terms\[0\]"),
    (put("terms", 0, "id", "a\0"), r"terms\[0\].id: must be a name"),
    (put("terms", 0, "Spread", 1), r"terms\[0\]: unknown key 'Spread'"),
    (drop("terms", 1, "class"), r"terms\[1\]: missing key 'class'"),
    (put("terms", 1, "groups", [0]), r"terms\[1\].groups: must have one group for each of the 2 "),
    (drop("terms", 1, "groups"), r"terms\[1\].groups: must have one group for each of the 2"),
    (put("terms", 1, "groups", 0), r"terms\[1\].groups: must be a list of group numbers, got 0"),
    (put("terms", 1, "groups", [0, -1]), r"terms\[1\].groups\[1\]: must be a whole number"),
    (put("terms", 2, "groups", [1, 1]), r"terms\[[12]\].groups: its 'class' group lies in several"),
    (put("correlation", {}), "correlation: needs either levels or a matrix, got neither"),
    (put("correlation", "matrix", []), "needs either levels or a matrix, got 'levels', 'matrix'"),
    (put("correlation", {"levels": {}}), "correlation.levels: must be a list, got {}"),
    (put("correlation", "levels", 0, "share", 1.2), r"correlation.levels\[0\].share: must be a fi"),
    (
        put("correlation", "levels", 0, "share", 0.8),
        "the shares sum to 1.1, but must sum to at most 1",
    ),
    (put("correlation", "levels", 1, "name", "device"), r"levels\[1\].name: two levels are named"),
    (drop("correlation", "levels", 1, "name"), r"correlation.levels\[1\]: missing key 'name'"),
    (put("graph", {}), "graph.node: must be one of"),
    (put("graph", 3), r"graph: must be a graph node \(an object\), got 3"),
    (put("graph", "children", 0, "name", "x"), "graph: no kernel or quantity is named 'x'"),
    (put("graph", "children", 0, "count", -1), r"graph.children\[0\].count: must be a whole"),
    (
        put("unit", "s"),
        r"graph: the time of collective all-reduce is in ms, but the terms are in s. Use one",
    ),
    (put("provenance", None), "provenance: must be an object, got None"),
    (drop("provenance", "tool"), "provenance: missing key 'tool'"),
    (put("provenance", "tool", ""), "provenance.tool: must be a name"),
    (put("provenance", "created", "31.1.2025"), "provenance.created: must be an ISO 8601 date"),
    (put("provenance", "created", 2025), "provenance.created: must be text, got 2025"),
    (put("provenance", "inputs", {}), "provenance.inputs: must be a list, got {}"),
    (
        put("provenance", "inputs", 0, "sha256", "A" * 64),
        r"inputs\[0\].sha256: must be 64",
    ),
    (put("provenance", "inputs", 0, "sha256", "a" * 64 + "\n"), "sha256: must be 64 hexadecimal"),
    (drop("provenance", "inputs", 0, "name"), r"provenance.inputs\[0\]: missing key 'name'"),
    (put("provenance", "author", "x"), "provenance: unknown key 'author'"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_path(change, message: str, tmp_path: Path) -> None:
    document = valid()
    change(document)
    with pytest.raises(InputError, match=message):
        read_document(document)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"{path}: ")


MATRIX = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (3, "correlation.matrix: must be 3 lists of 3 numbers, one for each term, got 3"),
        ([[1, 0], [0, 1]], "correlation.matrix: must be 3 lists of 3 numbers"),
        ([*MATRIX[:2], [0, 0]], "correlation.matrix: must be 3 lists of 3 numbers"),
        (
            [*MATRIX[:2], [0, 1.5, 1]],
            r"correlation.matrix\[2\]\[1\]: must be a finite number",
        ),
        ([*MATRIX[:2], [0, 0.3, 1]], "correlation.matrix: .*symmetric"),
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "correlation.matrix: .*definite"),
    ],
)
def test_matrices_that_are_wrong(matrix, message: str) -> None:
    document = to_document(prediction(levels=()))
    document["correlation"] = {"matrix": MATRIX}
    assert read_document(document).terms.matrix is not None
    document["correlation"] = {"matrix": matrix}
    with pytest.raises(InputError, match=message):
        read_document(document)


def test_not_an_object() -> None:
    for value in ([], 3, None, "x"):
        with pytest.raises(InputError, match="must be an object"):
            module._read(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not strict JSON"),
        (b"{", "is not strict JSON"),
        (b'{"format": 1, "format": 2}', "is not strict JSON .*names 'format' twice"),
        (b"[" * 100_000, "is not strict JSON .*nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "is not strict JSON"),
        (b"\xff\xfe{}", "is not valid UTF-8"),
        (b"[]", "must be an object"),
    ],
)
@pytest.mark.parametrize("read", [read_document, read_graph])
def test_files_that_are_no_strict_json(tmp_path: Path, read, content: bytes, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(valid()), encoding="utf-8-sig")
    assert read_document(path).name == "iteration"


@pytest.mark.parametrize("name", ["missing.json", ".", "zero\0byte"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_document(tmp_path / name)


def test_constants_that_are_no_json_are_refused_with_their_path(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    for text in ("NaN", "Infinity", "-Infinity", "1e999"):
        path.write_text('{"node": "constant", "value": ' + text + "}")
        with pytest.raises(InputError, match="graph.value: must be a finite number of at least 0"):
            read_graph(path)


def test_graphs_alone_and_within_predictions(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps(GRAPH.to_dict()))
    assert read_graph(path) == GRAPH
    path.write_text(json.dumps(valid()))
    assert read_graph(str(path)) == GRAPH
    path.write_text(json.dumps(to_document(prediction(None))))
    with pytest.raises(InputError, match="graph: this prediction has no graph"):
        read_graph(path)
    path.write_text('{"node": "kernel"}')
    with pytest.raises(InputError, match="g.json: graph: missing key 'name'"):
        read_graph(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"spread": np.array([0.1, -0.3, 0.3])}, r"terms\[1\].spread: must be"),
        ({"value": np.array([1.0, np.nan, 0.3])}, r"terms\[1\].value: must be"),
        ({"unit": "us"}, "unit: the prediction is in ms, but its terms are in us"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, changes, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_text("before")
    with pytest.raises(InputError, match=message):
        write_document(prediction(**changes), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        write_document(prediction(), tmp_path)


def big_dag(n: int) -> dict:
    return {
        "node": "dag",
        "nodes": [{"id": f"n{i}", "kernel": "gemm", "stream": str(i % 8)} for i in range(n)],
        "edges": [[f"n{i}", f"n{i + 5}"] for i in range(n - 5)],
    }


@pytest.mark.slow
def test_large_graphs_load_in_seconds(tmp_path: Path) -> None:
    document = valid()
    document["graph"] = big_dag(100_000)
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    begun = time.perf_counter()
    graph = read_graph(path)
    assert time.perf_counter() - begun < 20
    assert len(graph.durations) == 100_000  # type: ignore[attr-defined]


# --- the published schema ---------------------------------------------------------------------


def problems(value, rule, root, path="$") -> list[str]:
    """Check a value against the keywords that the schema uses; raises KeyError at others."""
    found = []
    for key, wanted in rule.items():
        found += KEYWORDS[key](value, wanted, root, path, rule)
    return found


def said(ok: bool, path: str, what: str) -> list[str]:
    return [] if ok else [f"{path}: {what}"]


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "number": is_number,
    "integer": lambda v: is_number(v) and v == int(v),
    "null": lambda v: v is None,
}


def _ref(value, wanted, root, path, rule):
    place = root
    for part in wanted.removeprefix("#/").split("/"):
        place = place[part]
    return problems(value, place, root, path)


def _properties(value, wanted, root, path, rule):
    items = value.items() if isinstance(value, dict) else ()
    return [p for k, v in items if k in wanted for p in problems(v, wanted[k], root, f"{path}.{k}")]


def _items(value, wanted, root, path, rule):
    rest = value[len(rule.get("prefixItems", ())) :] if isinstance(value, list) else []
    if wanted is False:
        return said(not rest, path, "too long")
    return [p for i, v in enumerate(rest) for p in problems(v, wanted, root, f"{path}[{i}]")]


def _prefix_items(value, wanted, root, path, rule):
    pairs = zip(value, wanted, strict=False) if isinstance(value, list) else ()
    return [p for v, r in pairs for p in problems(v, r, root, path)]


def _one_of(value, wanted, root, path, rule):
    matches = sum(not problems(value, each, root, path) for each in wanted)
    return said(matches == 1, path, f"matches {matches} of {len(wanted)}")


def _nothing(value, wanted, root, path, rule):
    return []


def bound(compare):
    return lambda v, w, root, path, rule: said(not is_number(v) or compare(v, w), path, "bound")


KEYWORDS = {
    "$schema": _nothing,
    "title": _nothing,
    "description": _nothing,
    "$defs": _nothing,
    "$ref": _ref,
    "type": lambda v, w, root, path, rule: said(TYPES[w](v), path, f"no {w}"),
    "const": lambda v, w, root, path, rule: said(v == w, path, f"not {w}"),
    "enum": lambda v, w, root, path, rule: said(v in w, path, f"not in {w}"),
    "properties": _properties,
    "required": lambda v, w, root, path, rule: said(
        not isinstance(v, dict) or all(k in v for k in w), path, f"not all of {w}"
    ),
    "additionalProperties": lambda v, w, root, path, rule: said(
        not isinstance(v, dict) or set(v) <= set(rule["properties"]), path, "unknown key"
    ),
    "items": _items,
    "prefixItems": _prefix_items,
    "minItems": lambda v, w, root, path, rule: said(
        not isinstance(v, list) or len(v) >= w, path, "too short"
    ),
    "minLength": lambda v, w, root, path, rule: said(
        not isinstance(v, str) or len(v) >= w, path, "too short"
    ),
    "maxLength": lambda v, w, root, path, rule: said(
        not isinstance(v, str) or len(v) <= w, path, "too long"
    ),
    "pattern": lambda v, w, root, path, rule: said(
        not isinstance(v, str) or bool(re.search(w.replace("$", r"\Z"), v)), path, "pattern"
    ),
    "minimum": bound(lambda v, w: v >= w),
    "maximum": bound(lambda v, w: v <= w),
    "exclusiveMinimum": bound(lambda v, w: v > w),
    "exclusiveMaximum": bound(lambda v, w: v < w),
    "oneOf": _one_of,
}


def test_the_published_schema_is_made_of_the_tables_that_reading_checks() -> None:
    published = Path(module.__file__).with_name("prediction.schema.json")
    assert published.read_text(encoding="utf-8") == json.dumps(schema(), indent=2) + "\n"


def test_documents_written_fit_the_schema(every_node) -> None:
    for node in every_node:
        document = {**valid(), "graph": json.loads(json.dumps(node.to_dict()))}
        assert problems(document, schema(), schema()) == []
    assert problems(valid(), schema(), schema()) == []
    assert problems(to_document(prediction(None, df=3.0)), schema(), schema()) == []
    matrix = to_document(prediction(levels=(), matrix=np.eye(3)))
    assert problems(matrix, schema(), schema()) == []


#: What a schema cannot say, or says of numbers that JSON does not have.
UNSAID = [
    r"terms\[1\].bias: must be a finite number, got inf",
    r"terms\[1\].bias: must be a finite number, got 1000",
    r"terms\[1\].value: must be greater than 0 for log-ratio errors",
    r"terms\[2\].id: 'gemm' is also the id of terms\[0\]",
    r"terms\[0\].id: must be a name",
    r"terms\[1\].groups: must have one group for each of the 2 ",
    r"terms\[1\].groups: must have one group for each of the 2",
    r"terms\[[12]\].groups: its 'class' group lies in several",
    "the shares sum to 1.1, but must sum to at most 1",
    r"levels\[1\].name: two levels are named",
    "graph: no kernel or quantity is named 'x'",
    r"graph: the time of collective all-reduce is in ms, but the terms are in s. Use one",
    "provenance.created: must be an ISO 8601 date",
]


def test_the_schema_refuses_what_reading_refuses() -> None:
    accepted = []
    for change, message in WRONG:
        document = valid()
        change(document)
        if not problems(document, schema(), schema()):
            accepted.append(message)
    assert accepted == UNSAID


def test_every_layer_is_one() -> None:
    for layer in LAYERS:
        assert read_document({**valid(), "level": layer}).level == layer
    assert read_document({**valid(), "graph": Constant(1.0).to_dict()}).graph == Constant(1.0)
