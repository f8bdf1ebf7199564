"""Small tables and few draws: what is compared, left out, listed, refused and said.

Probabilities are not looked at here, so the samplers stop after a few draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.decisions import compare_kinds
from errcomp.decisions.comparing import Comparison
from errcomp.decisions.results import Decisions, Duel, TopK, Way
from errcomp.decisions.view.figures import reliability, tournament
from errcomp.documents import json_schema
from errcomp.errors import InputError, NotDefinedError
from errcomp.tables import Kernels
from tests.decisions.draws import fewer

NAN = math.nan


@pytest.fixture(scope="module", autouse=True)
def few_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        fewer(patch, 4, 10)
        yield


def table(rows: Mapping[tuple[str, int], tuple[float, float]], **more: Any) -> dict[str, Any]:
    """Return a table of (device, batch): (predicted, measured)."""
    return {
        "device": [device for device, _ in rows],
        "batch": [batch for _, batch in rows],
        "predicted": [predicted for predicted, _ in rows.values()],
        "measured": [measured for _, measured in rows.values()],
        **more,
    }


#: A tie of B and C, one wrong choice, and a batch size with a single measurement.
ROWS = {
    **{("A", 1): (1.0, 1.0), ("B", 1): (2.0, 3.0), ("C", 1): (4.0, 3.0)},
    **{("A", 2): (1.0, 2.0), ("B", 2): (2.0, NAN), ("C", 2): (4.0, NAN)},
    **{("A", 3): (2.0, 4.0), ("B", 3): (1.0, 5.0), ("C", 3): (3.0, NAN)},
}
#: Batch size 1 was measured, and of batch size 2 device A.
OPEN = {
    **{("A", 1): (1.0, 1.1), ("B", 1): (10.0, 11.0), ("C", 1): (100.0, 120.0)},
    **{("A", 2): (2.0, 2.3), ("B", 2): (20.0, NAN), ("C", 2): (200.0, NAN)},
}


def evaluated(data: Any, between: str = "device", **how: Any) -> Decisions:
    found = ec.compare(data, between, evaluate=True, **how)
    assert isinstance(found, Decisions)
    return found


def compared(data: Any, between: str = "device", **how: Any) -> Comparison:
    found = ec.compare(data, between, evaluate=False, **how)
    assert isinstance(found, Comparison)
    return found


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    return evaluated(table(ROWS))


def test_what_was_measured_is_evaluated(decisions: Decisions) -> None:
    assert (decisions.n, decisions.ties, decisions.choices, decisions.alternatives) == (3, 1, 2, 3)
    assert (decisions.seed, decisions.level, decisions.left_out) == (0, 0.9, "conditions")
    assert decisions.right.value == pytest.approx(2 / 3)
    assert decisions.best.value == 0.5
    chosen = [(row.condition["batch"], row.n, row.chosen, row.best) for row in decisions.rows]
    assert chosen == [(1, 3, "A", "A"), (3, 2, "B", "A")]
    assert [row.regret for row in decisions.rows] == pytest.approx([0, 0.25])
    assert (decisions.regret.value, decisions.regret_max) == pytest.approx((0.125, 0.25))
    assert decisions.top == (
        TopK(1, 2, 0.5, pytest.approx(0.125), pytest.approx(0.25)),  # type: ignore[arg-type]
        TopK(2, 1, 1.0, 0.0, 0.0),
    )
    assert decisions.duels == (Duel("A", "B", 2, 1), Duel("A", "C", 1, 1))
    assert decisions.table().equals(decisions.to_frame())
    assert decisions.table()["best"].to_list() == ["A", "A"]


def test_the_notes_say_what_was_left_out_and_averaged(decisions: Decisions) -> None:
    found = replace(decisions, repeated=2, share_called=0.5)
    notes = found.view().tables[0].notes
    assert (
        notes[1]
        == "3 comparisons of two alternatives and 2 choices of device, each at equal batch."
    )
    assert notes[-2:] == [
        "1 comparison not counted: the measured times are equal",
        "2 rows repeat another row; their measurements are averaged",
    ]
    batches = replace(found, between=("batch",), ties=0, repeated=0)
    whole = "Whole batches are compared. For the time of one item: --per batch."
    assert batches.view().tables[0].notes[-1] == whole
    items = replace(batches, per="batch").view().tables[0].notes
    assert items[-1] == "Times are divided by batch."
    assert whole not in items


def test_a_difference_that_is_needed_may_be_without_end(decisions: Decisions) -> None:
    def said(**changed: Any) -> tuple[str, str]:
        first, second, *_ = replace(decisions, **changed).view().verdicts
        return first.text, second.text

    never = "No predicted difference is large enough for its order to be right 9 times in 10."
    assert said(needed=math.inf)[1] == never
    some = {"needed": 0.2, "needed_low": 0.1}
    right = "for its order to be right 9 times in 10."
    assert said(**some, needed_high=math.inf)[1] == (
        f"A predicted difference must be at least 20 % [10, ∞] {right}"
    )
    assert said(**some, needed_high=0.4)[1].endswith(f"[10, 40] {right}")
    for low, high, ends in ((0.5, 0.75, "[50, 75] "), (None, 0.75, ""), (0.5, None, "")):
        share = replace(decisions.right, low=low, high=high)
        assert said(right=share)[0] == f"{ends}of 3 comparisons of two alternatives (device)."


def test_a_single_condition_has_no_probabilities() -> None:
    data = table({("A", 1): (1.0, 1.0), ("B", 1): (2.0, 4.0), ("C", 1): (3.0, 3.0)})
    found = evaluated(data)
    assert (found.left_out, found.assumptions, found.calibration, found.sure) == ("", (), (), 0)
    assert math.isnan(found.share_called)
    assert math.isnan(found.wrong_when_sure)
    report = found.view()
    told = "not computed: too few alternatives and conditions to leave some out"
    assert dict(report.method)["Probabilities"] == told
    assert not any(one.head.endswith("alibrated") for one in report.verdicts)
    with pytest.raises(NotDefinedError, match="^reliability cannot be drawn: no comparison has a"):
        reliability(found)
    assert report.draw is not None
    draw: Any = report.draw
    with pytest.raises(InputError, match="^no figure 'bars'. Figures: reliability, regret, tourna"):
        draw("bars")
    with pytest.raises(
        InputError, match=r"^every row is measured, and all rows have the same condition, so"
    ):
        compared(data)


@pytest.mark.parametrize(("count", "duels"), [(60, 60 * 59 // 2), (61, 0)])
def test_pairs_of_more_than_sixty_alternatives_are_not_listed(count: int, duels: int) -> None:
    times = np.exp(np.random.default_rng(0).normal(size=(2, count))).T.tolist()
    found = evaluated(table({(f"D{i:02}", 1): (p, m) for i, (p, m) in enumerate(times)}))
    assert (found.n, len(found.duels)) == (count * (count - 1) // 2, duels)
    names = [figure.name for figure in found.view().figures]
    assert names == ["reliability", "regret", *["tournament"] * bool(duels)]
    if not duels:
        with pytest.raises(NotDefinedError, match="there are more than 60 alternatives"):
            tournament(found)


def test_other_tools_are_on_the_comparisons_that_both_can_make() -> None:
    """Tool b has no two alternatives under equal conditions, and no data sheet lists A, B and C."""
    tools: dict[str, dict[tuple[str, int], tuple[float, float]]] = {
        "a": {
            **{("A", 1): (1.0, 1.0), ("B", 1): (2.0, 2.0), ("C", 1): (3.0, 1.5)},
            **{("A", 2): (2.0, 1.0), ("B", 2): (1.0, 2.0), ("C", 2): (3.0, 3.0)},
        },
        "b": {("A", 1): (1.0, 1.0), ("B", 2): (1.0, 2.0)},
        "c": {
            **{("A", 1): (5.0, 1.0), ("B", 1): (6.0, 2.0), ("C", 1): (4.0, 1.5)},
            **{("A", 2): (1.0, 1.0), ("B", 2): (3.0, 2.0)},
        },
    }
    parts = [table(rows, tool=[name] * len(rows)) for name, rows in tools.items()]
    together = {key: [value for part in parts for value in part[key]] for key in parts[0]}
    found = evaluated(together, tool="a")
    assert (found.tool, found.n) == ("a", 6)
    near: Any = pytest.approx
    assert found.ways == (
        Way("c", 4, 2, 0.75, near(0.25), near(0.5), 0.5, near(0.5)),
        Way("at random", 6, 2, 0.5, near(0.75), near(1.0), near(4 / 6), near(0.5)),
    )


def test_conditions_can_be_named() -> None:
    """Every row has its own sequence length: only without it are rows compared."""
    data = {
        "device": [*"ABC"] * 2,
        "model": [*"xxxyyy"],
        "seq_len": [1, 2, 3, 4, 5, 6],
        "predicted": [1.0, 2.0, 3.0, 2.0, 4.0, 6.0],
        "measured": [1.0, 2.1, 3.0, 2.2, 4.0, 6.1],
    }
    with pytest.raises(InputError, match="Rows agree without seq_len: leave it out with --within"):
        compared(data)
    found = compared(data, within="model")
    assert (found.within, len(found), found.level, found.seed) == (("model",), 6, 0.9, 0)
    assert found.to_json() == compared(data, within=["model"]).to_json()


def kernels(run_measured: list[float]) -> Kernels:
    """Return two kernels in each of six runs, with the end-to-end times of the runs."""
    at = np.arange(12)
    return Kernels(
        {
            "run": [f"r{i // 2}" for i in at],
            "device": [["A", "B", "C"][i // 2 % 3] for i in at],
            "model": [["x", "y"][i // 6] for i in at],
            "kernel": [["k", "l"][i % 2] for i in at],
            "count": [2, 1] * 6,
            "predicted": (1.0 + at).tolist(),
            "measured": (2.0 + at**2).tolist(),
            "run_measured": np.repeat(run_measured, 2).tolist(),
        }
    )


def test_the_runs_of_a_table_of_kernels_are_compared() -> None:
    first = np.arange(0, 12, 2)
    predicted, summed = 2 * (1.0 + first) + 2 + first, 2 * (2.0 + first**2) + 2 + (first + 1) ** 2
    for times in ([3.0, 5.0, 4.0, 8.0, 7.0, 9.0], [NAN] * 6):
        runs = {
            "device": [*"ABC"] * 2,
            "model": [*"xxxyyy"],
            "predicted": predicted.tolist(),
            "measured": times if times[0] == 3 else summed.tolist(),
        }
        one, two = compared(kernels(times)), compared(runs)
        assert one.measured_ratio == pytest.approx(two.measured_ratio)
        assert one.to_dict()["rows"] == two.to_dict()["rows"]
        assert len(one) == 6
    # A run without an end-to-end time is a choice to make, though its kernels were measured.
    found = ec.compare(kernels([3.0, 5.0, 4.0, 8.0, 7.0, NAN]), "device")
    assert isinstance(found, Comparison)
    assert [choice.condition for choice in found.choices] == [{"model": "y"}]


def test_every_kind_that_can_be_evaluated_is() -> None:
    each = [(k, batch) for k in (1, 2) for batch in (1, 2, 4)]
    rows = {("AB"[k - 1], batch): (k * batch, k * batch + 0.1 * k * k) for k, batch in each}
    found = compare_kinds(table(rows, tool=["t"] * 6))
    counts = [(row.between, row.per, row.alternatives, row.n, row.choices) for row in found.rows]
    assert counts == [("device", "", 2, 3, 3), ("batch", "batch", 3, 6, 2)]
    assert (found.tool, found.seed) == ("t", 0)
    row = replace(found.rows[0], needed=0.4, needed_low=0.2, needed_high=0.7)
    needed = found.view().tables[0].columns[3]
    assert needed.cell(row).text == "40 % [20, 70]"
    assert needed.cell(replace(row, needed=math.inf)).text == "–"
    endless = replace(row, needed=0.5, needed_low=0.25, needed_high=math.inf)
    assert needed.cell(endless).text == "50 % [25, ∞]"
    few = "only 2 comparisons of two measured alternatives under equal conditions"
    with pytest.raises(InputError) as refused:
        compare_kinds(table({key: times for key, times in rows.items() if key[1] < 4}))
    assert str(refused.value) == (
        f"no choices to evaluate: {few} (batch); at least 3 are needed to evaluate; {few} "
        "(device); at least 3 are needed to evaluate. Name what you choose between: --between "
        "KEY. Keys: device, batch"
    )


def test_the_first_kind_may_be_refused() -> None:
    """Of two devices with two batch sizes in common, one has four batch sizes."""
    with pytest.raises(InputError, match="none of device, batch, variant, .* has several values"):
        compare_kinds({"predicted": [1.0, 2.0], "measured": [1.0, 2.0], "model": ["x", "y"]})
    two = {(device, batch): (1.0 * batch, batch + 0.1) for device in "AB" for batch in (1, 2)}
    more = {("A", 4): (4.0, 4.3), ("A", 8): (8.0, 8.1)}
    assert [row.between for row in compare_kinds(table({**two, **more})).rows] == ["batch"]


def test_only_open_conditions_are_listed_where_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = ec.compare(table(OPEN), "device")
    assert isinstance(found, Comparison)
    assert (found.every, len(found), found.taught) == (True, 3, 3)
    monkeypatch.setattr("errcomp.decisions.comparing._LISTED", 0)
    listed = ec.compare(table(OPEN), "device")
    assert isinstance(listed, Comparison)
    assert listed.choices[0].chosen == "A"
    assert not listed.every
    assert {*zip(listed.first, listed.second, strict=True)} == {("A", "B"), ("A", "C")}
    assert [listed.conditions[at] for at in listed.condition] == [{"batch": 2}] * 2


def test_an_alternative_to_choose_needs_a_price() -> None:
    rent = [1.0, None, 1.0, None, 2.0, 1.0]
    with pytest.raises(InputError) as refused:
        ec.compare(table(OPEN, rent=rent), "device", price="rent")
    assert str(refused.value) == (
        "an alternative under batch=2 has no price (rent). Fill in column rent in each of these "
        "rows."
    )
    found = ec.compare(table(OPEN, rent=[1.0, None, 1.0, 3.0, 2.0, 1.0]), "device", price="rent")
    assert found.word == "cheaper"  # type: ignore[union-attr]


def test_bands_need_measured_conditions() -> None:
    unknown = {key: (p, NAN if key[1] == 2 else m) for key, (p, m) in OPEN.items()}
    for rows, known in ((OPEN, True), (unknown, False)):
        report = ec.compare(table(rows), "device").view()
        (shown,) = (one for one in report.tables if one.title == "Alternatives by device")
        band = "Likely: band that holds the true value with a probability of 90 %."
        few = (
            "Too few conditions were measured to estimate values: only differences between "
            "alternatives are known."
        )
        assert shown.notes == [band if known else few]
        assert ("Likely" in [column.header for column in shown.columns]) == known


def test_the_schema_of_a_comparison_names_the_columns_of_its_rows() -> None:
    rows = json_schema("comparison")["properties"]["rows"]
    number = {"type": ["number", "null"]}
    assert rows == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "first": {"type": "string"},
                "second": {"type": "string"},
                "predicted_ratio": number,
                "measured_ratio": number,
                "p_faster": {"type": "number", "minimum": 0.0, "maximum": 1.0},
                "word": {"type": "string"},
            },
            "required": [
                *("first", "second", "predicted_ratio", "measured_ratio", "p_faster", "word"),
            ],
            "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
        },
    }
