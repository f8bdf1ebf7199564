"""Tests of which parts made a whole slower or faster."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

from errcomp import datasets
from errcomp.documents import load
from errcomp.errors import InputError
from errcomp.halflife.steps.blame import blame
from errcomp.halflife.view.blame import blame_view, sentence
from errcomp.tables import History

VERSIONS = [f"1.{k}" for k in range(12)]


def table(times, *, versions=None, **more):
    """Return a history of wholes and their parts: {(network, operator or None): times}."""
    columns = {"version": [], "level": [], "model": [], "op": [], "measured": []}
    for (model, op), values in times.items():
        for version, value in zip(versions or VERSIONS, values, strict=True):
            if value is None:
                continue
            columns["version"].append(version)
            columns["level"].append("network" if op is None else "operator")
            columns["model"].append(model)
            columns["op"].append(op)
            columns["measured"].append(float(value))
    return History({**columns, **more}, unit="ms")


def noise(seed, n=12, size=0.002):
    return np.exp(size * np.random.default_rng(seed).standard_normal(n))


LATER = np.arange(12) >= 6


def one_network(**changes):
    """Return a network of 10 ms: Conv 6, Gelu 1, 3 elsewhere; Conv -0.5 and Gelu +0.2 at 1.6."""
    conv = (6 - changes.get("conv", 0.5) * LATER) * noise(1)
    gelu = (1 + changes.get("gelu", 0.2) * LATER) * noise(2)
    rest = (3 + changes.get("rest", 0.0) * LATER) * noise(3)
    whole = conv + gelu + rest
    return {("net", None): whole, ("net", "Conv"): conv, ("net", "Gelu"): gelu}


def test_points_add_up_to_the_change():
    [event] = blame(table(one_network())).events
    assert (event.whole, event.version, event.last_version) == ("net", "1.6", "1.5")
    assert (event.n_before, event.n_after) == (6, 6)
    times = one_network()
    before, after = (times["net", None][which].mean() for which in (~LATER, LATER))
    assert (event.before, event.after) == pytest.approx((before, after))
    assert event.change == pytest.approx(after / before - 1)
    conv, gelu = event.parts
    assert (conv.name, gelu.name) == ("Conv", "Gelu")
    assert conv.points == pytest.approx(
        (times["net", "Conv"][LATER].mean() - times["net", "Conv"][~LATER].mean()) / before
    )
    assert conv.change == pytest.approx(-0.083, abs=0.005)
    assert gelu.change == pytest.approx(0.2, abs=0.01)
    assert conv.points + gelu.points + event.rest.points == pytest.approx(event.change)
    assert event.listed == pytest.approx(0.7, abs=0.01)
    assert event.explained == pytest.approx((conv.points + gelu.points) / event.change)
    assert all(one.low < one.points < one.high for one in (*event.parts, event.rest))
    assert all(one.p < 0.001 for one in event.parts)
    assert event.rest.p > 0.05
    assert math.isnan(event.rest.change)


def test_the_sentence():
    [event] = blame(table(one_network())).events
    head, text = sentence(event)
    assert head == "net has taken 3.0 % less time since 1.6:"
    assert text == (
        "Conv (-8.3 %) takes off 5.0 points; Gelu (+20.0 %) adds 2.0 points; time outside "
        "the parts: 0.0 points. The parts make up 70 % of the time of net."
    )


def test_changes_that_cancel_are_an_event_of_the_parts():
    [event] = blame(table(one_network(conv=0.2, gelu=0.2))).events
    assert event.p > 0.05
    assert math.isnan(event.explained)
    assert [round(100 * part.points) for part in event.parts] in ([-2, 2], [2, -2])
    assert sentence(event)[0].startswith(
        "The time of net has not changed significantly since 1.6 ("
    )


def test_a_change_that_no_part_has_is_in_the_rest():
    [event] = blame(table(one_network(conv=0, gelu=0, rest=1.0))).events
    assert event.change == pytest.approx(0.1, abs=0.005)
    assert event.rest.points == pytest.approx(0.1, abs=0.005)
    assert event.rest.p < 0.001
    assert all(part.p > 0.05 for part in event.parts)
    assert "2 parts, none significant: " in sentence(event)[1]


def test_parts_that_come_and_go():
    times = one_network(conv=0, gelu=0)
    gone = times["net", "Gelu"]
    times["net", "Gelu"] = [*gone[:6], *[None] * 6]
    times["net", "FastGelu"] = [*[None] * 6, *(0.4 * gone[6:])]
    times["net", None] = times["net", None] - np.where(LATER, 0.6 * gone, 0)
    [event] = blame(table(times)).events
    listed = {part.name: part for part in event.parts}
    assert (listed["Gelu"].listed, listed["FastGelu"].listed) == ("before", "after")
    assert listed["Gelu"].points == pytest.approx(-0.1, abs=0.002)
    assert listed["FastGelu"].points == pytest.approx(0.04, abs=0.002)
    assert math.isnan(listed["Gelu"].change)
    assert listed["Gelu"].after == listed["FastGelu"].before == 0
    total = sum(part.points for part in event.parts) + event.rest.points
    assert total == pytest.approx(event.change)
    text = sentence(event)[1]
    assert "Gelu (no longer listed) takes off 10.0 points" in text
    assert "FastGelu (newly listed) adds 4.0 points" in text


def test_a_part_that_misses_a_version_keeps_its_mean():
    times = one_network()
    whole = blame(table(times)).events[0]
    times["net", "Gelu"] = [*times["net", "Gelu"][:3], None, *times["net", "Gelu"][4:]]
    [event] = blame(table(times)).events
    gelu = next(part for part in event.parts if part.name == "Gelu")
    of_all = next(part for part in whole.parts if part.name == "Gelu")
    assert gelu.listed == "both"
    assert gelu.points == pytest.approx(of_all.points, abs=0.0005)


def test_groups_of_parts():
    times = one_network()
    times["net", "Conv/1"] = times["net", "Conv"] / 3
    times["net", "Conv/2"] = times.pop(("net", "Conv")) * 2 / 3
    of_each = blame(table(times)).events[0]
    assert [part.name for part in of_each.parts] == ["Conv/2", "Gelu", "Conv/1"]
    history = table(times)
    kind = ["Conv" if "Conv" in str(op) else "other" for op in history.column("op").tolist()]
    grouped = table(times, kind=kind)
    [event] = blame(grouped, by="kind").events
    assert [(part.name, part.n) for part in event.parts] == [("Conv", 2), ("other", 1)]
    assert event.parts[0].points == pytest.approx(
        sum(part.points for part in of_each.parts if "Conv" in part.name)
    )


def test_count_multiplies_the_times_of_parts():
    times = one_network()
    times["net", "Conv"] = times["net", "Conv"] / 3
    history = table(times)
    count = [3 if op == "Conv" else 1 for op in history.column("op").tolist()]
    [event] = blame(table(times, count=count)).events
    assert event.listed == pytest.approx(0.7, abs=0.01)
    [alone] = blame(history).events
    assert alone.listed == pytest.approx(0.3, abs=0.01)
    count[-1] = 2
    series = ["/".join(filter(None, row)) for row in zip(
        history.column("model").tolist(), [op or "" for op in history.column("op").tolist()],
        strict=True,
    )]  # fmt: skip
    with pytest.raises(
        InputError, match=r"no value for 'net/Gelu/operator', or not the same value in"
    ):
        blame(table(times, count=count, series=series))
    for wrong in ("often", "-1", "inf", "0"):
        texts = [wrong if op == "Conv" else "1" for op in history.column("op").tolist()]
        with pytest.raises(InputError, match=r"count of .*Conv.* must be a number above 0, got"):
            blame(table(times, count=texts))


def test_several_networks_and_their_versions():
    times = one_network()
    other = one_network(conv=0, gelu=0)
    times |= {("other", op): values for (_, op), values in other.items()}
    found = blame(table(times))
    assert found.n_wholes == 2
    assert [event.whole for event in found.events] == ["net"]
    explained = blame(table(times), version="1.6").events
    assert sorted(event.whole for event in explained) == ["net", "other"]
    assert explained[0].whole == "net"
    report = blame_view(blame(table(times | {("third", op): v for (_, op), v in
                                             one_network().items()})))  # fmt: skip
    by_version = report.tables[1]
    [row] = by_version.rows
    values = {column.header: column.value(row) for column in by_version.columns}
    assert (values["Since"], values["With an event"], values["Clearly changed"]) == ("1.6", 2, 2)
    assert values["Last before"] == "1.5"
    assert report.line == ["level network, n=3 series", "parts of level operator", "1.0 to 1.11"]
    parts = report.tables[0]
    assert [column.header for column in parts.columns if column.key] == ["Network", "Since"]
    assert [column.value(parts.rows[0]) for column in parts.columns[:3]] == ["net", "1.6", "Conv"]
    assert len(blame_view(blame(table(times), version="1.6")).tables) == 2
    assert len(blame_view(blame(table(one_network()))).tables) == 1
    assert values["Mean change of these"] == pytest.approx(-0.03, abs=0.002)
    assert values["Largest part"] == "Conv: -5.0 points in 2"


def test_one_version_is_explained_whether_or_not_it_has_a_step():
    found = blame(table(one_network()), version="1.3")
    [event] = found.events
    assert (event.version, event.n_before, event.n_after) == ("1.3", 3, 3)
    assert abs(event.change) < 0.01
    [last] = blame(table(one_network()), version="1.11").events
    assert (last.n_before, last.n_after) == (5, 1)
    assert math.isfinite(last.low)


def test_two_versions_with_repeats_and_without():
    rng = np.random.default_rng(5)
    rows = {"version": [], "level": [], "model": [], "op": [], "repeat": [], "measured": []}
    for version, factor in (("1.0", 1.0), ("1.1", 1.5)):
        for repeat in range(5):
            wobble = np.exp(0.01 * rng.standard_normal(2))
            for level, op, value in (
                ("run", None, 10 * wobble[0] + 2 * (factor - 1)),
                ("kernel", "Conv", 2 * factor * wobble[1]),
            ):
                for name, one in zip(rows, (version, level, "net", op, repeat, value), strict=True):
                    rows[name].append(one)
    [event] = blame(History(rows), version="1.1").events
    assert event.parts[0].points == pytest.approx(0.1, abs=0.01)
    assert event.parts[0].low > 0.05
    assert event.low < event.change < event.high
    single = {name: values[:2] + values[10:12] for name, values in rows.items()}
    [unknown] = blame(History(single), version="1.1").events
    assert math.isnan(unknown.low)
    assert math.isnan(unknown.parts[0].p)
    head, text = sentence(unknown)
    assert head.startswith("net has taken ")
    assert "Conv (+5" in text
    document = json.loads(json.dumps(blame(History(single), version="1.1").to_dict()))
    assert document["events"][0]["low"] is None


def test_the_stack_of_both_versions():
    times = one_network()
    history = table(times)
    cuda = ["12.4" if int(v[2:]) >= 6 else "12.1" for v in history.column("version").tolist()]
    [event] = blame(table(times, stack_cuda=cuda, stack_driver=["550"] * history.n)).events
    assert event.stack == ("cuda 12.1 to 12.4",)
    assert sentence(event)[1].endswith("Also changed at that version: cuda 12.1 to 12.4.")
    assert blame(history).events[0].stack is None


def test_nothing_changed():
    found = blame(table(one_network(conv=0, gelu=0)))
    assert found.events == ()
    report = found.view()
    assert report.verdicts[0].head == "No change found"
    assert not report.figures
    with pytest.raises(InputError, match="nothing to draw"):
        found.plot()


def test_parts_that_overlap_are_told():
    times = one_network()
    times["net", "Conv"] = 2 * times["net", "Conv"]
    notes = [str(note) for note in blame(table(times)).view().tables[0].notes]
    assert any("add up to more than their network" in note for note in notes)


def test_a_document_can_be_read():
    found = blame(table(one_network()))
    document = json.loads(json.dumps(found.to_dict()))
    assert document["schema"] == "errcomp.half-life-blame/1"
    again = load(document)
    assert again.events == found.events
    assert again.to_dict() == found.to_dict()


@pytest.mark.extras
def test_the_plot_shows_every_part():
    found = blame(table(one_network()))
    ax = found.plot()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:1] == ["net"]
    assert {"Conv", "Gelu", "rest"} <= set(names)


def test_the_built_in_history():
    found = blame(datasets.load("ort-releases"))
    assert (found.whole, found.part, found.n_wholes) == ("run", "kernel", 33)
    first = found.events[0]
    assert (first.whole, first.version) == ("layernorm/t256w512", "1.30.0")
    assert first.parts[0].name == "SkipLayerNormalization"
    assert first.change == pytest.approx(3.34, abs=0.01)
    # One call of each operator is listed, and the network has several.
    assert first.listed == pytest.approx(0.16, abs=0.01)


class TestWhatBelongsTogether:
    def test_a_single_whole_needs_no_name(self):
        columns = {
            "version": ["1.0", "1.1"] * 2,
            "level": ["run"] * 2 + ["kernel"] * 2,
            "op": [None] * 2 + ["Conv"] * 2,
            "measured": [9.0, 9.1, 4.0, 4.1],
        }
        [event] = blame(History(columns), version="1.1").events
        assert (event.whole, event.parts[0].name) == ("run", "Conv")

    def test_by_the_beginning_of_names(self):
        columns = {"version": [], "level": [], "series": [], "measured": []}
        for k in range(6):
            for level, name, value in (
                ("run", "net/b1", 10.0),
                ("run", "net/b16", 20.0),
                ("kernel", "net/b1 Conv", 4.0),
                ("kernel", "net/b16 Conv", 9.0),
                ("kernel", "elsewhere Conv", 1.0),
            ):
                for column, one in zip(
                    columns, (f"1.{k}", level, name, value + 0.01 * (k % 3)), strict=True
                ):
                    columns[column].append(one)
        found = blame(History(columns), version="1.3")
        events = {event.whole: event for event in found.events}
        assert sorted(events) == ["net/b1", "net/b16"]
        assert all([part.name for part in event.parts] == ["Conv"] for event in found.events)
        assert events["net/b1"].listed == pytest.approx(0.4, abs=0.01)
        assert events["net/b16"].listed == pytest.approx(0.45, abs=0.01)
        assert found.notes[-1] == "1 series of level kernel belong to no run: left out"

    @pytest.mark.parametrize(
        ("change", "options", "message"),
        [
            ({"level": None}, {}, r"no column 'level'\. It must say .*--column level=COLUMN"),
            ({}, {"whole": "model"}, r"no level 'model' in the history\. Levels: .*--whole LEVEL"),
            ({"level": "gpu"}, {}, r"no level 'run' or 'network' or 'model' in.*Levels: gpu"),
            (
                {},
                {"whole": "operator", "part": "operator"},
                r"the level of wholes and the level of parts are both 'operator'",
            ),
            (
                {},
                {"version": "1.0"},
                r"version '1\.0' is the first, with no earlier one to compare",
            ),
            ({}, {"version": "9"}, r"version '9' is not in the history"),
            ({}, {"by": "nothing"}, r"nothing"),
        ],
    )
    def test_what_is_missing_is_said(self, change, options, message):
        columns = {
            "version": ["1.0", "1.1"] * 2,
            "level": ["network"] * 2 + ["operator"] * 2,
            "op": [None] * 2 + ["Conv"] * 2,
            "measured": [9.0, 9.1, 4.0, 4.1],
        }
        for name, value in change.items():
            columns[name] = [value] * 4
            if value is None:
                del columns[name]
        with pytest.raises(InputError, match=message):
            blame(History(columns), **options)

    def test_parts_of_no_whole_and_of_several(self):
        columns = {
            "version": ["1.0", "1.1"] * 3,
            "level": ["network"] * 4 + ["operator"] * 2,
            "model": ["a", "a", "b", "b", "c", "c"],
            "measured": [9.0, 9.1, 4.0, 4.1, 3.0, 3.1],
        }
        with pytest.raises(InputError, match=r"none of the 1 series of level 'operator' belongs"):
            blame(History(columns))
        columns["series"] = ["x", "x", "y", "y", "x", "x"]
        columns["model"] = ["a"] * 6
        columns["level"] = ["network"] * 4 + ["operator"] * 2
        found = blame(History(columns), version="1.1")
        assert [event.whole for event in found.events] == ["x"]

    @pytest.mark.parametrize("source", ["", "h.csv"])
    def test_a_part_of_two_wholes_of_one_name_is_refused(self, source):
        columns = {
            "version": ["1.0", "1.1"] * 3,
            "level": ["network"] * 4 + ["operator"] * 2,
            "model": ["net", "net", None, None, "net", "net"],
            "variant": [None, None, "net", "net", None, None],
            "op": [None] * 4 + ["Conv"] * 2,
            "measured": [9.0, 9.1, 4.0, 4.1, 3.0, 3.1],
        }
        with pytest.raises(InputError) as refused:
            blame(History(columns, source=source))
        assert str(refused.value) == (
            f"{source + ': ' if source else ''}'net/Conv' may be a part of net, net. Add a column "
            "that has the same value in a whole and in its parts, e.g. input."
        )
        columns["input"] = ["a", "a", "b", "b", "b", "b"]
        [event] = blame(History(columns, source=source), version="1.1").events
        assert (event.whole, event.before) == ("b/net", 4.0)

    def test_rates_do_not_add_up(self):
        columns = {
            "version": ["1.0", "1.1"] * 2,
            "level": ["network"] * 2 + ["operator"] * 2,
            "op": [None] * 2 + ["Conv"] * 2,
            "measured": [9.0, 9.1, 4.0, 4.1],
        }
        with pytest.raises(
            InputError, match=r"history is in GB/s, and such values of parts do not add up to"
        ):
            blame(History(columns, unit="GB/s"))

    def test_no_whole_with_two_versions(self):
        columns = {
            "version": ["1.0", "1.1"] * 2,
            "level": ["network", "operator", "operator", "network"],
            "op": [None, "Conv", "Conv", None],
            "measured": [9.0, 4.1, 4.0, 9.2],
        }
        columns["version"] = ["1.0", "1.1", "1.2", "1.3"]
        with pytest.raises(
            InputError,
            match=r"no network has two versions under which both it and its parts \(level 'o",
        ):
            blame(History(columns))

    def test_one_version(self):
        columns = {
            "version": ["1.0"] * 2,
            "level": ["network", "operator"],
            "op": [None, "Conv"],
            "measured": [9.0, 4.0],
        }
        with pytest.raises(InputError, match="under one version"):
            blame(History(columns))


@pytest.mark.shared
def test_a_real_history_with_all_operators(shared_data):
    """Networks and operator types in 21 releases of ONNX Runtime."""
    folder = shared_data / "longitudinal" / "ort_cpu_preview"
    networks = pl.read_csv(folder / "e2e.csv").select(
        "version", "model", repeat="round", released="build_date", measured="e2e_median_us",
        level=pl.lit("network"),
    )  # fmt: skip
    operators = pl.read_csv(folder / "ops.csv").select(
        "version", "model", repeat="round", released="build_date", op="op_type",
        measured=pl.col("sum_median_us").cast(pl.Float64), level=pl.lit("operator"),
    )  # fmt: skip
    operators = operators.filter(pl.col("measured") > 0)
    found = blame(History(pl.concat([networks, operators], how="diagonal_relaxed"), unit="us"))
    assert found.n_wholes == 2
    events = {event.version: event for event in found.events if event.whole == "tfm"}
    fused, slower, gelu = events["1.21.1"], events["1.30.0"], events["1.25.1"]
    assert slower.change == pytest.approx(0.19, abs=0.005)
    assert slower.p < 0.01
    assert slower.parts[0].name == "SkipLayerNormalization"
    assert slower.parts[0].points == pytest.approx(0.173, abs=0.002)
    assert slower.listed == pytest.approx(0.98, abs=0.01)
    # One operator takes the place of another, and the network takes as long as before.
    assert fused.p > 0.5
    assert [(part.name, part.listed) for part in fused.parts[:2]] == [
        ("Gemm", "after"), ("MatMul", "both")
    ]  # fmt: skip
    assert fused.parts[0].points + fused.parts[1].points == pytest.approx(0.025, abs=0.005)
    assert gelu.parts[1].name == "Gelu"
    assert gelu.parts[1].change == pytest.approx(-0.49, abs=0.01)
    assert gelu.parts[1].p < 0.001
