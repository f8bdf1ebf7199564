from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import errcomp as ec
from errcomp.errors import InputError
from errcomp.halflife.panel import HalfLife
from errcomp.halflife.results import HalfLives
from errcomp.halflife.view.figures import FIGURES, draw
from errcomp.halflife.view.fit import answers_of, written
from errcomp.halflife.view.parts import half_life_text, timed


def histories(**slow_from: int) -> dict[str, list[Any]]:
    """Eight series of each group under twelve versions; a group becomes slow at its version."""
    rng = np.random.default_rng(0)
    rows = [
        (
            f"1.{version}",
            name,
            str(shape),
            1.0,
            (2.0 if version >= at else 1.0) * rng.normal(1, 0.01),
        )
        for name, at in slow_from.items()
        for shape in range(8)
        for version in range(12)
    ]
    names = ("version", "op", "shape", "predicted", "measured")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


@pytest.fixture(scope="module")
def half_lives() -> HalfLives:
    return ec.half_life(histories(Conv=99, Gelu=8), by="op", error=0.05)


def test_a_half_life_is_written_with_its_interval() -> None:
    half_life = HalfLife("turnbull", 6.0, 2.0, 32.0, 0.95, "releases", 8, 0.5)
    assert written(half_life) == "6 [2, 32]"
    assert written(replace(half_life, high=math.inf)) == "6 [2, ∞]"
    assert written(replace(half_life, half_life=math.inf, high=math.inf)) == "> 2"
    assert written(replace(half_life, half_life=None, refused="why")) == "cannot be determined"
    assert written(None) == "–"


def test_one_of_a_unit_is_singular() -> None:
    assert (timed(1.0, "months"), timed(1.04, "months")) == ("1 month", "1 month")
    assert (timed(0.5, "releases"), timed(120.0, "releases")) == ("0.5 releases", "120 releases")


def test_what_is_asked_first_stands_first_and_beside_it_what_explains_it(
    half_lives: HalfLives,
) -> None:
    (table,) = half_lives.view().tables_for("text")[:1]
    heads = [column.header for column in table.columns]
    assert heads[3:6] == ["RMS error doubled", "Median survival", "Possibly still valid"]
    shown = {
        group.key["op"]: [column.cell(group).text for column in table.columns]
        for group in table.rows
    }
    for group in half_lives.groups:
        trajectory, turnbull = (group.estimate(m, "releases") for m in ("trajectory", "turnbull"))
        assert trajectory is not None
        assert turnbull is not None
        assert shown[group.key["op"]][3:5] == [written(trajectory), written(turnbull)]
    assert shown["Gelu"][3].startswith("8 [")
    assert shown["Conv"][3] == "> 11"
    assert shown["Conv"][4].startswith("> ")
    assert shown["Conv"][5] == "100 %"
    notes = " ".join(note.text for note in half_lives.view().tables_for("text")[0].remarks())
    assert (
        "> 12: the half-life is beyond the end of the record; its interval starts at 12."
    ) in notes


def test_the_answer_is_when_the_error_doubles_else_when_half_expire(half_lives: HalfLives) -> None:
    conv, gelu = half_lives.groups
    assert [answer.method for answer in answers_of(gelu, half_lives.clocks)] == ["trajectory"]
    without = [estimate for estimate in gelu.estimates if estimate.method != "trajectory"]
    refused = replace(gelu, estimates=tuple(without))
    assert [answer.method for answer in answers_of(refused, half_lives.clocks)] == ["turnbull"]
    assert answers_of(replace(conv, estimates=()), half_lives.clocks) == []


def test_a_single_series_beside_groups_answers_in_the_same_columns() -> None:
    columns = histories(Conv=99, Gelu=8)
    rows = [i for i, (op, shape) in enumerate(zip(columns["op"], columns["shape"], strict=True))
            if op == "Conv" or shape == "0"]  # fmt: skip
    half_lives = ec.half_life(
        {k: [v[i] for i in rows] for k, v in columns.items()}, by="op", error=0.05
    )
    table = half_lives.view().tables_for("text")[0]
    gelu = [column.cell(table.rows[1]).text for column in table.columns]
    (expiry,) = answers_of(half_lives.groups[1], half_lives.clocks)
    assert expiry.method == "expiry"
    assert gelu[3] == gelu[4] == written(expiry)


@pytest.mark.parametrize("missing", ["half_life", "low", "high"])
def test_a_half_life_without_a_bound_is_none(missing: str) -> None:
    half_life = HalfLife("variogram", 6.0, 2.0, 32.0, 0.95, "releases", 8, 0.5, refused="why")
    assert half_life_text(half_life) == "6 releases [2,\N{NO-BREAK SPACE}32]"
    unknown = replace(half_life, **{missing: None})
    assert half_life_text(unknown) == "cannot be determined: why"


def test_a_figure_that_does_not_exist_is_refused(half_lives: HalfLives) -> None:
    available = r"Available: errors, survival, variogram, heat\.$"
    with pytest.raises(InputError, match=rf"unknown figure 'heatmap' of half-lives\. {available}"):
        draw(half_lives, "heatmap")


def test_several_groups_are_drawn_as_a_heat_map_and_one_as_its_errors(
    half_lives: HalfLives, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(FIGURES):
        monkeypatch.setitem(FIGURES, name, lambda _, ax, name=name: (name, ax))
    one = replace(half_lives, groups=half_lives.groups[:1])
    assert half_lives.view().draw() == ("heat", None)
    assert one.view().draw() == ("errors", None)
    assert one.view().draw(figure="survival", ax="there") == ("survival", "there")
