"""An audit as a table: what is said of all claims together."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import errcomp as ec
from errcomp.claims.auditing import Audit
from errcomp.claims.registry import user_claim
from errcomp.claims.verdict import Word
from errcomp.claims.view.audit import audit_view, claim_line
from errcomp.report.model import Note


@pytest.fixture(scope="module")
def judged() -> Audit:
    data = {
        "predicted": [1.2 + 0.01 * (i % 5) for i in range(24)],
        "measured": [1.0] * 24,
        "rack": ["A", "B"] * 12,
    }
    return ec.audit(data, by=["rack"], claims=[user_claim("<5%", aggregation="mean")])


def said(audit: Audit) -> str:
    (table,) = audit_view(audit).tables_for("text")
    return next(note.text for note in table.remarks() if "claims are checked" in note.text)


def words(audit: Audit) -> list[str]:
    (table,) = audit_view(audit).tables_for("text")
    column = next(column for column in table.columns if column.header == "Verdict")
    return [column.cell(row).text for row in table.rows]


def with_words(audit: Audit, word: Word, jointly: Word) -> Audit:
    row = audit.rows[0]
    changed = replace(row, verdict=replace(row.verdict, word=word, jointly=jointly))
    return replace(audit, rows=(changed, *audit.rows[1:]))


def test_groups_and_claims_about_all_pairs_are_counted_and_named(judged: Audit) -> None:
    assert said(judged) == (
        "3 claims are checked, each at 95 % confidence. Correcting for the number of "
        "claims changes no verdict."
    )
    assert words(judged) == ["overstated"] * 3


@pytest.mark.parametrize("word", ["overstated", "understated"])
def test_verdicts_that_hold_only_alone_have_a_word_for_it(judged: Audit, word: Word) -> None:
    lost = with_words(judged, word, "consistent")
    assert words(lost) == [f"maybe {word}", "overstated", "overstated"]
    assert said(lost) == (
        '3 claims are checked, each at 95 % confidence. A verdict with "maybe" is not significant '
        "after correcting for 3 claims."
    )
    assert words(with_words(judged, word, word))[0] == word


def test_no_claim_that_is_decided_needs_no_word_of_all_together(judged: Audit) -> None:
    verdict = replace(judged.claims[0], word="consistent", jointly="consistent")
    rows = tuple(replace(row, verdict=verdict) for row in judged.rows)
    even = replace(judged, rows=rows, claims=(verdict,))
    assert said(even) == "3 claims are checked, each at 95 % confidence."


def test_a_claim_that_is_wrong_only_alone_is_told_so(judged: Audit) -> None:
    (verdict,) = judged.claims
    assert "<5 % (given by the user): overstated. " in claim_line(verdict)
    alone = replace(verdict, jointly="consistent")
    assert "<5 % (given by the user): maybe overstated. " in claim_line(alone)


def test_a_single_claim_is_judged_by_itself() -> None:
    data = {"predicted": [1.2, 1.3, 1.4], "measured": [1.0] * 3}
    (table,) = audit_view(ec.audit(data, claims=[user_claim("5%")])).tables_for("text")
    assert not any("claims are checked" in note.text for note in table.remarks())


def test_an_undecided_group_is_told_what_would_decide_it(judged: Audit) -> None:
    own = replace(user_claim("5%"), aggregation="not stated")
    row = judged.rows[0]
    row = replace(row, verdict=replace(row.verdict, word="not verifiable", claim=own))
    (table,) = audit_view(replace(judged, rows=(row, *judged.rows[1:]))).tables_for("text")
    (note,) = [note.text for note in table.remarks() if "--aggregation" in note.text]
    assert note.startswith("A: not verifiable, because the claim does not say how it was averaged")


def test_a_figure_without_an_interval_says_why() -> None:
    """Two models are too few to represent others."""
    error = [0.1 + 0.1 * (i // 20) + 0.0005 * (i % 20) for i in range(40)]
    data = {
        "predicted": [1 + e for e in error],
        "measured": [1.0] * 40,
        "model": [f"m{i // 20}" for i in range(40)],
    }
    found = ec.audit(data, by=[], claims=[user_claim("20%", aggregation="mean")])
    row = found.overall
    assert row.verdict.word == "not verifiable"
    (table,) = audit_view(found).tables_for("text")
    shown = [column.cell(table.rows[0]).text for column in table.columns]
    assert row.figures["mape"].format() in shown
    reason = "no interval: 2 models are too few to represent others; at least 3 are needed"
    assert (
        Note(f"{reason} (for results about only these 2, use --cluster none)", "–") in table.notes
    )
    assert not any("whole clusters" in note.text for note in table.remarks())


@pytest.mark.parametrize(("n", "told"), [(1, "1 row, "), (2, "2 rows, ")])
def test_rows_that_are_not_used_are_counted(n: int, told: str) -> None:
    data = {
        "predicted": [1.0, 1.1, 1.2, 1.3, 1.4],
        "measured": [1.0] * 5,
        "status": ["ok"] * (5 - n) + ["out of memory"] * n,
    }
    found = ec.audit(data)
    assert [one.n for one in found.dropped] == [n]
    (table,) = audit_view(found).tables_for("text")
    assert any(note.text.startswith(f"Not used: {told}") for note in table.remarks())
    assert any(note.startswith(f"Not used: {told}") for note in found.view().notes)


@pytest.mark.extras
def test_tools_beyond_those_drawn_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("errcomp.claims.view.figures._MOST_ROWS", 3)
    tools = [f"t{i:02}" for i in range(5) for _ in range(3)]
    data = {"predicted": [1.1] * 15, "measured": [1.0] * 15, "tool": tools}
    ax = ec.audit(data, by=[]).plot()
    told = [text.get_text() for text in ax.texts] + [ax.get_title(loc="left")]
    assert any("not drawn: 2 tools" in text for text in told), told


def two_tools() -> dict[str, list[float] | list[str]]:
    """Twelve pairs of x, 1 to 12 % too high, and ten of y, 30 and 40 % too high."""
    return {
        "predicted": [*(101.0 + i for i in range(12)), *[130.0, 140.0] * 5],
        "measured": [100.0] * 22,
        "tool": ["x"] * 12 + ["y"] * 10,
        "batch": [*map(str, (*range(12), *range(10)))],
    }


def remarks(audit: Audit) -> list[str]:
    table = audit_view(audit).tables_for("text")[0]
    return [note.text for note in table.remarks()]


def test_what_compares_tools_stands_below_what_each_hides() -> None:
    found = ec.audit(two_tools(), by=[], resamples=99)
    told = remarks(found)
    at = told.index("Comparing these tools:")
    assert told[at + 1] == (
        "Of 12 configurations, x has 12 and y 10; on the 10 that all tools have, the MAPE of x is "
        "5.50 % instead of 6.50 %."
    )
    assert "What the MAPE of all 12 pairs hides (tool x):" in told[:at]
    assert audit_view(found).line == ["2 tools", "n=22"]
    how = [text for text in told if text.startswith("To read a row's caveats in full: ")]
    assert how == ["To read a row's caveats in full: errcomp audit TABLE --tool x"]
    alone = ec.audit(two_tools(), by=[], tool="x", resamples=99)
    assert "Comparing these tools:" not in remarks(alone)
    assert remarks(alone)[-1] == "Other tools in the table, to audit with --tool NAME: y"
    assert audit_view(alone).notes[-1] == "Other tools in the table, to audit with --tool NAME: y."


def test_a_share_that_is_overstated_is_lower_than_claimed() -> None:
    data = {name: values for name, values in two_tools().items() if name != "tool"}
    share = ec.audit(data, by=[], claims=[user_claim("95%", metric="share within 10%")])
    assert remarks(share)[0] == "Overstated: the pairs give a lower value than claimed."
    error = ec.audit(data, by=[], claims=[user_claim("<2%", aggregation="mean")])
    assert remarks(error)[0] == "Overstated: the error is larger than claimed."


def test_pairs_of_an_engine_say_what_was_not_checked() -> None:
    data = two_tools()
    found = ec.audit(pl.LazyFrame(data), by=[], tool="x")
    (note,) = [text for text in remarks(found) if text.startswith("The pairs stayed in")]
    codes = ", ".join(found.not_looked_for)
    assert "duplicated-configurations" in codes
    assert note == (
        "The pairs stayed in Polars; errcomp read only sums and counts. Medians are approximate, "
        f"within 0.5 % of their exact values. These caveats need single pairs and were not "
        f"checked: {codes}."
    )
    assert note in audit_view(found).notes
    plot = (
        "To plot individual pairs, make the report from the table instead of this result: errcomp "
        "report TABLE."
    )
    assert plot not in audit_view(found).notes
    inside = ec.audit(data, by=[], tool="x", resamples=99)
    assert audit_view(inside).notes[0] == plot
    assert not any("stayed" in text for text in remarks(inside))


@pytest.mark.extras
def test_the_figure_of_groups_has_a_row_for_each_device() -> None:
    pytest.importorskip("matplotlib")
    pairs = ec.Pairs(
        {
            "predicted": [102.0, 103.0, 104.0, 120.0, 130.0, 140.0],
            "measured": [100.0] * 6,
            "device": ["A", "A", "A", "B", "B", "B"],
            "model": ["x", "y", "z"] * 2,
        }
    )
    figures = {one.name: one for one in audit_view(ec.audit(pairs, resamples=99), pairs).figures}
    groups = figures["groups"]
    assert groups.caption == "The errors of each device: each point is one pair."
    rows = [label.get_text() for label in groups.draw().get_yticklabels()]
    assert rows == ["B  n=3", "A  n=3"]


@pytest.mark.extras
def test_repeated_measurements_are_a_figure_of_their_own() -> None:
    pytest.importorskip("matplotlib")
    error = [0.1, 0.2, 0.05, 0.3, 0.15, 0.25]
    data = {
        "predicted": [(1 + one) for one in error for _ in range(3)],
        "measured": [1.0 + 0.01 * (k - 1) for _ in error for k in range(3)],
        "batch": [i for i in range(6) for _ in range(3)],
        "repeat": [*range(3)] * 6,
    }
    found = ec.audit(data, by=[], resamples=99)
    side = found.measurements
    assert side is not None
    assert [tool.tool for tool in side.tools] == [""]
    figures = {one.name: one for one in audit_view(found).figures}
    assert [*figures] == ["claimed", "noise"]
    ax = figures["noise"].draw()
    mape = 100 * found.overall.figures["mape"].value
    assert pytest.approx(mape) in [
        float(x) for line in ax.lines for x in line.get_xdata() if len(line.get_xdata()) == 1
    ]
    with_pairs = [one.name for one in audit_view(found, ec.Pairs(data)).figures]
    assert with_pairs == ["claimed", "noise", "predicted", "ecdf", "size"]
    (plain,) = audit_view(replace(found, measurements=None)).figures
    assert plain.name == "claimed"
