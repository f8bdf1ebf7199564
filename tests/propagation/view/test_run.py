"""Tables for people: what they say, and that they fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp import Kernels, datasets
from errcomp.propagation import (
    ClassError,
    ErrorModel,
    fit_errors,
    given_errors,
    propagate,
    validate,
)
from errcomp.propagation.graph import Dag, Kernel, Queue, Scaled
from errcomp.propagation.view.run import flat_outcomes
from errcomp.report.text import WIDTH, render

Run = Callable[..., Any]


def texts(found: Any, source: str = "kernels.csv") -> list[str]:
    """Return the tables as they are printed."""
    return [render(table) for table in replace(found, source=source).view().tables_for("text")]


def flowing(text: str) -> str:
    """Return the text without its line breaks."""
    return " ".join(text.split())


def header(text: str) -> list[str]:
    """Return the lines between the title and the rule."""
    lines = text.splitlines()
    rule = next(i for i, line in enumerate(lines) if set(line) == {"─"})
    return [line for line in lines[1:rule] if line]


def kernels(n: int = 1, classes: int = 2, **columns: Any) -> Kernels:
    """Return runs of one kernel for each class."""
    names = [f"k{i}" for i in range(classes)]
    data = {
        "run": np.repeat([f"run{i}" for i in range(n)], classes),
        "kernel": names * n,
        "kernel_class": names * n,
        "count": [3] * (n * classes),
        "predicted": np.linspace(1.0, 2.0, n * classes),
    } | columns
    return Kernels(data, unit="ms")


@pytest.fixture(scope="module")
def neusight() -> Any:
    whole = datasets.load("neusight-kernels")
    name = "H100/gpt3_27/inference/2048/2"
    return propagate(whole.where({"run": name}), errors=fit_errors(whole.take(whole.run != name)))


# --- one run ---


def test_one_run_of_the_embedded_table(neusight: Any) -> None:
    outcomes, budget, shared = texts(neusight, "dataset neusight-kernels")
    assert outcomes.splitlines()[0] == (
        "Sum of kernel times of H100/gpt3_27/inference/2048/2 of dataset neusight-kernels"
    )
    for name in ("estimated", "independent", "comonotonic", "unknown"):
        assert re.search(rf"^{name} ", outcomes, re.M)
    assert re.search(r"^unknown +– +– +– +– +\d", outcomes, re.M)
    said = flowing(outcomes)
    assert "Predicted: 671 ms. Measured: 686.2 ms. Kernel errors (sd" in said
    assert re.search(
        r'Under "estimated" the error falls from .* to .*: errors cancel as much as among \d[\d.]* '
        r"independent kernels",
        said,
    )
    assert "below the prediction" in said
    assert 'Sources of the error under "estimated"' in budget
    assert re.search(r"^\(not modelled\) +\d\.\d\d %", budget, re.M)
    assert "(not modelled): kernels that are predicted as 0" in flowing(budget)
    assert "Correlation of kernel errors, estimated from 86 runs on 8 devices" in shared
    assert re.search(r"^the run and the class +0\.\d\d +0\.\d\d … 0\.\d\d$", shared, re.M)
    assert "Intervals: 90 %, by leaving out each device in turn." in shared


def test_all_lines_fit(neusight: Any) -> None:
    for text in texts(neusight, "a table with a name that is rather long " * 3):
        assert max(map(len, text.splitlines())) <= WIDTH


def test_headers_break_between_words_of_some_length(neusight: Any) -> None:
    for text in texts(neusight):
        lines = header(text)
        assert len(lines) <= 2
        assert "\x1b" not in text
    assert header(texts(neusight)[0])[1].split() == [
        "Assumption", "Mean", "sd", "Growth", "number", "50", "%", "band", "90", "%", "band", "95",
        "%", "band",
    ]  # fmt: skip


def test_large_and_small_times_fit() -> None:
    for factor in (1e-9, 1e12):
        found = propagate(kernels(predicted=[factor, 3 * factor]), errors=given_errors(0.3))
        for text in texts(found):
            assert max(map(len, text.splitlines())) <= WIDTH


def test_where_the_error_comes_from() -> None:
    model = ErrorModel({"k0": ClassError(0, 0.1), "k1": ClassError(0, 0.2)}, kind="relative")
    found = propagate(kernels(), errors=model, correlation="repeats")
    _, budget = texts(found)
    # 3 ± 0.3 and 6 ± 1.2: 1.44 of 1.53 of the variance; without it 0.3 of √1.53 remain.
    assert re.search(r"^k1 +66\.67 % +94\.12 % +75\.75 %$", budget, re.M)
    assert re.search(r"^k0 +33\.33 % +5\.88 % +2\.99 %$", budget, re.M)
    assert header(budget)[-1].split() == ["Kernel", "class", "of", "time", "variance", "saved"]


@pytest.mark.parametrize(("classes", "note"), [(9, "1 more class with"), (11, "3 more classes wi")])
def test_a_long_budget_is_cut(classes: int, note: str) -> None:
    found = propagate(kernels(classes=classes), errors=given_errors(0.1), correlation="repeats")
    budget = texts(found)[1]
    assert note in budget
    assert len(re.findall(r"^k\d+ ", budget, re.M)) == 8


def test_a_short_budget_is_whole() -> None:
    found = propagate(kernels(classes=8), errors=given_errors(0.1), correlation="repeats")
    assert "more class" not in texts(found)[1]


def test_without_error_there_is_no_budget() -> None:
    found = propagate(kernels(), errors=given_errors(0.0), correlation=["repeats", "unknown"])
    (outcomes,) = texts(found)
    assert "Effective" not in outcomes
    assert "Kernel errors (sd, weighted by time): 0.00 %." in outcomes


def test_bias_is_said_in_words() -> None:
    for bias, direction in ((0.1, "above"), (-0.1, "below")):
        model = given_errors(0.01, bias, kind="relative")
        text = texts(propagate(kernels(), errors=model, correlation="repeats"))[0]
        assert re.search(
            rf"expected time of the run is 10\.0+ % {direction} the prediction", flowing(text)
        )
    nothing = given_errors(0.01, 0.0001, kind="relative")
    assert "Bias" not in texts(propagate(kernels(), errors=nothing, correlation="repeats"))[0]


@pytest.mark.parametrize(
    ("assumption", "why"),
    [
        ("independent", "errors cancel as much as among 5.4 independent kernels of equal error"),
        ("comonotonic", "almost nothing cancels, because the errors share their causes"),
    ],
)
def test_why_the_error_shrinks(assumption: str, why: str) -> None:
    model = given_errors(0.1, kind="relative")
    text = texts(propagate(kernels(), errors=model, correlation=assumption))[0]
    assert why in flowing(text)


# --- graphs ---


def of_graph(graph: Any, assumption: Any = "repeats") -> Any:
    return propagate(kernels(), errors=given_errors(0.1), correlation=assumption, graph=graph)


def test_a_graph_has_no_effective_number() -> None:
    text = texts(of_graph(Scaled(Kernel("k0"), 2.0)))[0]
    assert "Effective" not in text
    assert len(header(text)) == 1


def test_a_graph_that_amplifies() -> None:
    text = flowing(texts(of_graph(Queue(Kernel("k0"), 0.4)))[0])
    assert "the graph amplifies errors" in text


def test_a_graph_in_which_errors_cancel() -> None:
    dag = Dag({"a": "k0", "b": 0.9}, edges=[("a", "b")])
    outcomes, critical = texts(of_graph(dag))
    assert "errors cancel in part" in flowing(outcomes)
    assert re.search(r"^a +100\.0 %", critical, re.M)


def test_saturation_is_said_once_and_infinite_ends_are_shown() -> None:
    text = texts(of_graph(Queue(Kernel("k0"), 0.9)))[0]
    assert "… ∞" in text
    assert len(re.findall("infinite|A queue is saturated", text)) == 1


def test_a_long_critical_path_is_cut() -> None:
    names = [f"e{i}" for i in range(10)]
    dag = Dag(dict.fromkeys(names, "k0"), edges=list(pairwise(names)))
    critical = texts(of_graph(dag))[1]
    assert "2 more events." in critical
    assert len(re.findall(r"^e\d ", critical, re.M)) == 8


# --- what errors share ---


def measured(n: int, *, device: bool = True, seed: int = 1) -> Kernels:
    rng = np.random.default_rng(seed)
    table = kernels(n)
    where = [f"d{i // 2}" for i in range(2 * n)] if device else ["d"] * (2 * n)
    ratios = np.exp(0.1 * rng.standard_normal(2 * n))
    return kernels(n, device=where, measured=table.predicted * ratios)


def shared(table: Kernels) -> list[str]:
    found = propagate(kernels(), errors=fit_errors(table), correlation="estimated")
    return [text for text in texts(found) if text.startswith("Correlation of kernel errors")]


def test_runs_of_one_device_are_the_clusters() -> None:
    (text,) = shared(measured(6, device=False))
    assert text.splitlines()[0] == "Correlation of kernel errors, estimated from 6 runs"
    assert "leaving out each run in turn" in text
    assert "the device" not in text


def test_one_run_alone_has_no_interval() -> None:
    (text,) = shared(measured(1))
    assert "estimated from 1 run" in text.splitlines()[0]
    assert "Interval" not in text


def test_nothing_shared_is_no_table() -> None:
    table = Kernels(
        {"run": ["a", "b"], "device": ["x", "y"], "kernel": ["k0", "k0"],
         "predicted": [1.0, 1.0], "measured": [1.1, 0.9]}
    )  # fmt: skip
    assert shared(table) == []


# --- many runs ---


def test_several_runs_have_a_line_each() -> None:
    found = propagate(
        kernels(3, measured=[1.0] * 6), errors=given_errors(0.1), correlation=["comonotonic"]
    )
    (text,) = texts(found)
    assert text.splitlines()[0] == "Sum of kernel times of 3 runs of kernels.csv"
    assert re.search(r"^run1 +[\d.]+ +[\d.]+ +[\d.]+ … [\d.]+ +6$", text, re.M)
    assert 'Times in ms. Median and band under "comonotonic"' in text


def test_other_assumptions_as_distances_from_the_median() -> None:
    model = given_errors(0.1, kind="relative")
    found = propagate(kernels(2), errors=model, correlation=["independent", "comonotonic"])
    (text,) = texts(found)
    assert re.search(r"^run0 .* -16/\+16 %$", text, re.M)
    assert "Measured" not in text


def test_caveats_of_several_runs_are_said_once() -> None:
    found = propagate(
        kernels(3, predicted=[1.0, 0.0] * 3), errors=given_errors(0.1), correlation="repeats"
    )
    (text,) = texts(found)
    assert flowing(text).count("are predicted to take no time") == 1
    assert "(run run0 and 2 more)" in flowing(text)


def test_plain_rows_of_several_runs() -> None:
    found = propagate(kernels(2), errors=given_errors(0.1), correlation=["repeats", "unknown"])
    rows = flat_outcomes(found)
    assert [(row["run"], row["assumption"]) for row in rows] == [
        ("run0", "repeats"), ("run0", "unknown"), ("run1", "repeats"), ("run1", "unknown"),
    ]  # fmt: skip
    assert rows[0]["high_95"] == found.of().band(0.95).high
    assert all(isinstance(v, str | float | int | None) for row in rows for v in row.values())


# --- validation ---


def test_a_validation_fits_and_says_what_it_counts() -> None:
    table = kernels(
        4,
        device=np.repeat(list("wxyz"), 2),
        measured=[1.0, None, *[1.5] * 6],
        status=["ok"] * 6 + ["failed", "ok"],
    )
    found = validate(table, errors=given_errors(0.1))
    (text,) = [render(t) for t in replace(found, source="kernels.csv").view().tables_for("text")]
    assert text.splitlines()[0] == "Do the bands hold? kernels.csv, errors from another table"
    assert max(map(len, text.splitlines())) <= WIDTH
    said = flowing(text)
    assert "Per cent of 2 totals (sum of the measured kernels)" in said
    assert "one device as correlated (2 devices)" in said
    assert "Not evaluated: 2 runs without a measured or a predicted total (run0, run3)." in said


def test_headers_of_a_validation_are_even() -> None:
    rng = np.random.default_rng(3)
    measured = np.linspace(1.0, 2.0, 24) * np.exp(0.1 * rng.standard_normal(24))
    measured_kernels = kernels(12, device=np.repeat(list("wxyz"), 6), measured=measured)
    found = validate(measured_kernels, correlation=["independent"])
    (table,) = replace(found, source="dataset neusight-kernels").view().tables_for("text")
    text = render(table)
    assert (
        text.splitlines()[0] == "Do the bands hold? dataset neusight-kernels, each device held out"
    )
    assert header(text)[-1].split("  ")[0] == "Assumption"
    assert header(text)[-1].count("% band") == 4
    assert "Not judged" not in text
    assert re.search(r"^independent +\d+ \[\d+, \d+\]", text, re.M)


def test_many_runs_that_are_not_judged_are_counted() -> None:
    table = kernels(6, measured=[1.0, 1.0, *[None] * 10])
    found = validate(table, errors=given_errors(0.1), correlation="independent", leave_out="run")
    (table_shown,) = found.view().tables_for("text")
    said = flowing(render(table_shown))
    assert "Not evaluated: 5 runs without a measured or a predicted total (run1, run2, …)." in said
    assert "one run as correlated (1 run)" in said


def test_caveats_of_the_error_model_are_said() -> None:
    table = kernels(2, device=["x", "x", "y", "y"], measured=[1.0, 1.5, 1.5, 2.0])
    found = validate(table, errors=fit_errors(table), correlation=["estimated"])
    (shown,) = found.view().tables_for("text")
    assert "estimated from only 2 devices" in flowing(render(shown))


def test_help_fits(run: Run, tmp_path: Path) -> None:
    ran = run("propagate", "--help")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "propagate validate" in ran.out
