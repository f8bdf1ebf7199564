"""Values of a propagated total that contradict each other, in documents made by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from errcomp.documents import json_schema, load
from errcomp.propagation import ClassError, ErrorModel
from errcomp.propagation.errors.components import Components, Interval
from errcomp.propagation.outcome import Propagation
from errcomp.propagation.validation import Validation, ValidationRow
from errcomp.results import Caveat

UNKNOWN = Interval(float("nan"))
LEVELS = (Interval(0.2, 0.1, 0.3), Interval(0.5, 0.4, 0.6), Interval(0.5), Interval(1.0))


def outcome(run: str, assumption: str, sd: float) -> dict[str, Any]:
    """The time of a run that is predicted as 10 and takes 11 on average, kernels err by 40 %."""
    parts = [("gemm", 0.75, 0.9, 0.95), ("norm", 0.25, 0.1, 0.15)]
    budget = [
        dict(zip(("name", "share_of_time", "first_order", "total"), part, strict=True))
        for part in parts
    ]
    return {
        "run": run,
        "assumption": assumption,
        "prediction": 10.0,
        "mean": 11.0,
        "sd": sd,
        "median": 10.5,
        "bias": 0.1,
        "relative_sd": sd / 11.0,
        "kernel_sd": 0.4,
        "growth": sd / 11.0 / 0.4,
        "effective_number": 4.0,
        "bands": [
            {"level": 0.9, "low": 8.0, "high": 14.0},
            {"level": 0.5, "low": 9.0, "high": 12.0},
        ],
        "saturated": 0.0,
        "method": "by hand",
        "by_class": budget,
        "by_kernel": copy.deepcopy(budget),
        "critical": {},
        "measured": 12.0,
        "caveats": [],
    }


def propagation() -> dict[str, Any]:
    components = Components(
        LEVELS, UNKNOWN, UNKNOWN, scale=1.0, confidence=0.9, n=9, n_clusters=3, cluster="device"
    )
    classes = {"gemm": ClassError(0.0, 0.1, 6, 3), "norm": ClassError(0.0, 0.2, 3, 2)}
    model = ErrorModel(classes, components=components, n_runs=4, devices=("A", "B", "C"))
    caveats = (
        Caveat("in-sample", "one", {"n_runs": 4}),
        Caveat("few-clusters", "two", {"n_clusters": 3, "cluster": "device"}),
        Caveat("another", "three", {"n_runs": 1, "n_clusters": 1}),
    )
    document = Propagation((), model, "ms", 0, caveats).to_dict()
    rows = [
        outcome(run, assumption, sd)
        for run in ("a", "b")
        for assumption, sd in (("independent", 2.2), ("comonotonic", 4.4))
    ]
    return {**document, "rows": rows}


def validation() -> dict[str, Any]:
    rows = [
        ValidationRow(name, level, coverage, 0.2, 1.0, 4, 2, 0.3, 0.5)
        for name, covered in (("independent", (0.25, 0.75)), ("comonotonic", (0.5, 1.0)))
        for level, coverage in zip((0.5, 0.9), covered, strict=True)
    ]
    pit = {"independent": [0.1, 0.2, 0.5, 0.9]}
    document = Validation(
        tuple(rows), {}, ("a", "b", "c", "d"), "device", "sum", cluster="device"
    ).to_dict()
    return {**document, "pit": pit}


def test_what_agrees_is_read_as_it_is() -> None:
    for made in (propagation(), validation()):
        assert load(made).to_dict() == made


SINGLE = [
    ("rows.0.mean", 11.1, "rows[0].bias is 0.1, but must be 0.11, which follows from mean / "
     "prediction - 1"),
    ("rows.0.mean", None, "rows[0].sd is 2.2, but must be null, because there is no mean"),
    ("rows.0.bias", None, "rows[0].bias is null, but must be 0.1, which follows from mean / "
     "prediction - 1"),
    ("rows.0.sd", None, "rows[0].relative_sd is 0.2, but must be null, which follows from sd / "
     "mean"),
    ("rows.0.sd", 3.3, "rows[0].relative_sd is 0.2, but must be 0.3, which follows from sd / mean"),
    ("rows.0.kernel_sd", 0.8, "rows[0].growth is 0.5, but must be 0.25, which follows from "
     "relative_sd / kernel_sd"),
    ("rows.0.kernel_sd", 0.0, "rows[0].growth is 0.5, but must be null, which follows from "
     "relative_sd / kernel_sd"),
    ("rows.1.measured", 12.1, "rows[1].measured is 12.1, but must be 12, which follows from the "
     "other rows of this run"),
    ("rows.3.measured", None, "rows[3].measured is null, but must be 12, which follows from the "
     "other rows of this run"),
    ("rows.0.bands.0.high", 9.9, "rows[0].bands[0].high is 9.9, but must be at least 10.5: a band "
     "must contain the median"),
    ("rows.0.bands.0.low", 10.6, "rows[0].bands[0].low is 10.6, but must be at most 10.5: a band "
     "must contain the median"),
    ("rows.0.bands.0.low", 9.1, "rows[0].bands[0].low is 9.1, but must be at most 9: a band must "
     "contain the band of 0.5"),
    ("rows.0.bands.0.high", 11.9, "rows[0].bands[0].high is 11.9, but must be at least 12: a band "
     "must contain the band of 0.5"),
    ("rows.0.bands.0.high", None, "rows[0].bands[0].high is null, but must be a number, because no "
     "queue is saturated"),
    ("rows.0.bands.0.level", 0.5, "rows[0].bands[1].level is 0.5, but must be a level that no "
     "other band has"),
    ("rows.0.bands.0", {"level": 0.9, "low": 13.0, "high": 12.5}, "rows[0].bands[0].high must be "
     "at least the lower end, 13, got 12.5"),
    ("rows.0.by_class", None, "rows[0].by_class is null, but must be a list, because by_kernel is "
     "a list"),
    ("rows.0.by_kernel", None, "rows[0].by_kernel is null, but must be a list, because by_class is "
     "a list"),
    ("rows.0.by_class.1.share_of_time", 0.3, "rows[0].by_class: the values of share_of_time sum to "
     "1.05, but they are shares and must sum to 1. A part of the document was changed"),
    ("rows.0.by_kernel.0.first_order", 0.8, "rows[0].by_kernel: the values of first_order sum to "
     "0.9, but they are shares and must sum to 1. A part of the document was changed"),
    ("rows.0.by_class.1.total", 0.21, "rows[0].by_class[1].total is 0.21, but must be at most 0.2, "
     "the smaller of 1 and twice first_order"),
    ("rows.0.by_class.0.total", 1.1, "rows[0].by_class[0].total is 1.1, but must be at most 1, "
     "the smaller of 1 and twice first_order"),
    ("errors.components.n", 8, "errors.components.n is 8, but must be 9, the sum of n over all "
     "classes"),
    ("errors.components.n_clusters", 5, "errors.components.n_clusters is 5, but must be from 1 to "
     "n_runs, 4"),
    ("errors.components.n_clusters", 0, "errors.components.n_clusters is 0, but must be from 1 to "
     "n_runs, 4"),
    ("errors.classes.norm.n_clusters", 4, "errors.classes.norm.n_clusters is 4, but must be at "
     "most 3, the number of all clusters"),
    ("errors.components.levels.1.correlation", 0.1, "errors.components.levels[1].correlation is "
     "0.1, but must be from 0.2 to 1: correlations must not decrease from coarse to fine levels"),
    ("errors.components.levels.0.correlation", -0.1, "errors.components.levels[0].correlation is "
     "-0.1, but must be from 0 to 1: correlations must not decrease from coarse to fine levels"),
    ("errors.components.levels.3.correlation", 1.5, "errors.components.levels[3].correlation is "
     "1.5, but must be from 0.5 to 1: correlations must not decrease from coarse to fine levels"),
    ("caveats.0.evidence.n_runs", 5, "caveats[0].evidence.n_runs is 5, but must be 4, as in "
     "errors"),
    ("caveats.1.evidence.n_clusters", 4, "caveats[1].evidence.n_clusters is 4, but must be 3, as "
     "in errors"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "wanted"), SINGLE)
def test_a_value_that_contradicts_others_is_named(
    path: str, value: Any, wanted: str, changed: Any, refusal: Any
) -> None:
    said = refusal(changed(propagation(), path, value))
    assert said.removesuffix(": part of the document was changed") == wanted


def test_rows_are_complete_and_have_the_same_levels(changed: Any, refusal: Any) -> None:
    made = propagation()
    del made["rows"][3]
    assert refusal(made).startswith("rows must be one row for each run and assumption, got ")
    made = changed(propagation(), "rows.1.bands.0.level", 0.95)
    assert refusal(made).startswith("rows must be rows with bands of the same levels, got ")
    made = changed(propagation(), "rows.1.assumption", "independent")
    assert refusal(made).startswith("no outcome of run 'a' under 'comonotonic'. Runs: a, b; ")


def test_other_levels_of_correlation_are_refused(changed: Any, refusal: Any) -> None:
    made = changed(propagation(), "errors.components.levels.0.level", "device")
    wanted = "errors.components.levels must be the levels run, class, kernel, row, got "
    assert refusal(made).startswith(wanted)


def test_rounding_is_no_contradiction(changed: Any, refusal: Any) -> None:
    made = propagation()
    made = changed(made, "rows.0.bias", 0.1 + 5e-7)
    made = changed(made, "rows.0.bands.0.low", 9.008)
    made = changed(made, "rows.0.bands.0.high", 11.989)
    made = changed(made, "rows.0.by_class.0.share_of_time", 0.75 + 2e-6)
    made = changed(made, "rows.0.by_class.1.total", 0.2 + 1e-6)
    load(made)
    assert refusal(changed(propagation(), "rows.0.bias", 0.1 + 3e-6)).startswith("rows[0].bias is")
    for path, value in (("low", 9.01), ("high", 11.987)):
        made = changed(propagation(), f"rows.0.bands.0.{path}", value)
        assert refusal(made).startswith(f"rows[0].bands[0].{path} is")
    more = changed(propagation(), "rows.0.by_class.0.share_of_time", 0.75 + 5e-6)
    assert refusal(more).startswith("rows[0].by_class: the values of share_of_time sum to 1.00001,")
    more = changed(propagation(), "rows.0.by_class.1.total", 0.2 + 2e-6)
    assert refusal(more).startswith("rows[0].by_class[1].total is 0.200002,")


def test_a_saturated_queue_and_bounds_may_lack_values(changed: Any) -> None:
    made = propagation()
    made = changed(made, "rows.0.saturated", 0.1)
    made = changed(made, "rows.0.bands.0.high", None)
    assert load(made).outcomes[0].band(0.9).high == float("inf")
    made = propagation()
    for name in ("by_class", "by_kernel", "mean", "sd", "median", "bias", "relative_sd", "growth"):
        made = changed(made, f"rows.1.{name}", None)
    assert load(made).outcomes[1].median == float("inf")
    for row in made["rows"][1::2]:
        row["assumption"] = "unknown"
    assert load(made).outcomes[1].median is None
    assert load(made).outcomes[1].by_class is None


VALIDATIONS = [
    ("rows.1.n", 5, "rows[1].n is 5, but must be 4, the number of runs"),
    ("rows.1.n_clusters", 5, "rows[1].n_clusters is 5, but must be from 1 to n, 4"),
    ("rows.1.n_clusters", 0, "rows[1].n_clusters is 0, but must be from 1 to n, 4"),
    ("rows.0.coverage_low", 0.3, "rows[0].coverage is 0.25, but must be inside its interval "
     "[0.3, 1]"),
    ("rows.0.coverage_high", 0.2, "rows[0].coverage is 0.25, but must be inside its interval "
     "[0.2, 0.2]"),
    ("rows.1.coverage", 0.7, "rows[1].coverage is 0.7, but must be a number of runs divided by n, "
     "such as 3/4"),
    ("rows.0.coverage", 1.0, "rows[1].coverage is 0.75, but must be at least 1, the coverage at "
     "level 0.5"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "wanted"), VALIDATIONS)
def test_coverages_that_no_runs_give_are_named(
    path: str, value: Any, wanted: str, changed: Any, refusal: Any
) -> None:
    said = refusal(changed(validation(), path, value))
    assert said.removesuffix(": part of the document was changed") == wanted


def test_a_validation_has_the_same_levels_and_one_place_for_each_run(
    changed: Any, refusal: Any
) -> None:
    made = validation()
    del made["rows"][3]
    assert refusal(made).startswith("rows must be rows of every assumption at the same levels, got")
    made = changed(validation(), "pit.independent", [0.1, 0.2, 0.5])
    assert refusal(made).startswith("pit.independent must be one number for each of the 4 runs, go")


def test_the_schema_says_what_may_be_missing() -> None:
    names = json_schema("propagate")["$defs"]
    row = names["Outcome"]["properties"]
    assert row["median"]["type"] == ["number", "null"]
    budget, none = row["by_kernel"]["anyOf"]
    assert (budget["type"], none) == ("array", {"type": "null"})
    assert [*budget["items"]["properties"]] == ["name", "share_of_time", "first_order", "total"]
    levels = names["Components"]["properties"]["levels"]
    assert levels["type"] == "array"
    level = levels["items"]["properties"]
    assert level["level"] == {"enum": ["run", "class", "kernel", "row"]}
    assert level["share"] == {"type": "number"}
    assert [*level] == ["correlation", "low", "high", "level", "share"]
    assert levels["items"]["required"] == [*level]
