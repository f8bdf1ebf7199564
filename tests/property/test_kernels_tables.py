"""Tables of kernels: sums, groups and selections whatever the rows; nothing but InputError."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import hypothesis
import numpy as np
import polars as pl
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers import kernels
from errcomp.tables import Kernels, Pairs

#: Each example takes 30 ms: half of them, but all where many are tried (`make simulations`).
FEW = hypothesis.settings(
    max_examples=hypothesis.settings.default.max_examples
    // (1 if hypothesis.settings.default.max_examples > 25 else 2)
)

NAMES = st.sampled_from(["a", "b", "a/b", "b#2", "a#2", "#2", "a/b#2"])
TIMES = st.floats(min_value=0, max_value=1e12)
ROWS = st.lists(
    st.tuples(NAMES, NAMES, st.integers(1, 10**6), TIMES, st.none() | TIMES),
    min_size=1,
    max_size=12,
)
COLUMNS = ("run", "kernel", "count", "predicted", "measured")
SCHEMA = {"count": pl.Int64, "predicted": pl.Float64, "measured": pl.Float64}


def frame_of(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row", schema_overrides=SCHEMA)


@hypothesis.given(ROWS)
def test_totals_are_the_sums_of_a_loop(rows: list[tuple[Any, ...]]) -> None:
    predicted: defaultdict[str, float] = defaultdict(float)
    measured: defaultdict[str, float] = defaultdict(float)
    for run, _, count, p, m in rows:
        predicted[run] += count * p
        measured[run] += np.nan if m is None else count * m
    found = Kernels(frame_of(rows))
    totals = found.totals()
    assert totals.run.tolist() == list(predicted) == list(found.runs)
    np.testing.assert_allclose(totals.predicted, list(predicted.values()), rtol=1e-12)
    np.testing.assert_allclose(totals.measured, list(measured.values()), rtol=1e-12)
    assert set(found.unmeasured) == {run for run, m in measured.items() if np.isnan(m)}
    assert len(set(found.ids)) == found.n


@hypothesis.given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[tuple[Any, ...]], random: Any) -> None:
    other = list(rows)
    random.shuffle(other)
    first, second = Kernels(frame_of(rows)).totals(), Kernels(frame_of(other)).totals()
    at = [second.run.tolist().index(run) for run in first.run]
    np.testing.assert_allclose(first.predicted, second.predicted[at], rtol=1e-12)
    assert first.instances.tolist() == second.instances[at].tolist()


@hypothesis.given(ROWS)
def test_splitting_a_row_in_two_changes_no_total(rows: list[tuple[Any, ...]]) -> None:
    split = [part for run, kernel, count, p, m in rows
             for part in ((run, kernel, 1, p, m), (run, kernel, count, p, m))]  # fmt: skip
    whole = [(run, kernel, count + 1, p, m) for run, kernel, count, p, m in rows]
    first, second = Kernels(frame_of(split)).totals(), Kernels(frame_of(whole)).totals()
    np.testing.assert_allclose(first.predicted, second.predicted, rtol=1e-12)
    assert first.instances.tolist() == second.instances.tolist()


KEYS = st.none() | st.integers(-2, 2) | st.sampled_from([0.5, float("nan")])


@hypothesis.given(st.lists(st.tuples(KEYS, NAMES), min_size=1, max_size=15))
def test_groups_are_those_of_a_loop(rows: list[tuple[Any, str]]) -> None:
    expected: dict[tuple[Any, ...], list[int]] = {}
    for i, (number, name) in enumerate(rows):
        missing = number is None or number != number
        key = (None if missing else float(number), name)
        expected.setdefault(key, []).append(i)
    order = sorted(expected, key=lambda k: (k[0] is None, k[0] or 0.0, k[1]))
    numbers = [None if number is None else float(number) for number, _ in rows]
    data = {"x": pl.Series(numbers, dtype=pl.Float64), "name": [name for _, name in rows]}
    data |= {"predicted": [1.0] * len(rows), "measured": [1.0] * len(rows), "kernel": "k"}
    for table in (Pairs(data), Kernels(data)):
        groups = table.groups(["x", "name"])
        assert [(tuple(g.key.values()), g.index.tolist()) for g in groups] == [
            (key, expected[key]) for key in order
        ]
        codes = table.codes("x", "name")
        places = list(expected)
        assert [places[code] for code in codes] == [
            key for i in range(len(rows)) for key in places if i in expected[key]
        ]


@FEW
@hypothesis.given(ROWS)
def test_what_is_written_is_read(tmp_path_factory: Any, rows: list[tuple[Any, ...]]) -> None:
    frame = frame_of(rows)
    folder = tmp_path_factory.mktemp("round", numbered=True)
    frame.write_csv(folder / "a.csv")
    frame.write_parquet(folder / "a.parquet")
    frame.write_ndjson(folder / "a.jsonl")
    expected = Kernels(frame)
    for path in sorted(folder.iterdir()):
        found = kernels.read(path)
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.count.tolist() == expected.count.tolist()
        np.testing.assert_array_equal(found.predicted, expected.predicted)
        np.testing.assert_array_equal(found.measured, expected.measured)


CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)


@hypothesis.given(st.fixed_dictionaries(
    {}, optional={name: st.lists(CELLS, min_size=2, max_size=2) for name in
                  (*COLUMNS, "kernel_class", "run_measured", "device", "status", "unit", "tool")}
))  # fmt: skip
def test_nothing_but_an_input_error_comes_out(data: dict[str, list[Any]]) -> None:
    try:
        found = Kernels({name: pl.Series(values, dtype=pl.Object) for name, values in data.items()})
        totals = found.totals()
    except InputError:
        return
    assert not np.isinf([totals.predicted, totals.measured]).any()
    assert (found.count >= 1).all()
    assert len(set(found.ids)) == found.n
