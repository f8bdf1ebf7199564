from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import errcomp as ec
from errcomp.claims.registry import user_claim
from errcomp.cli.output import with_basis
from errcomp.documents import view_of_rows
from errcomp.errors import InputError
from errcomp.propagation import Outcome, Propagation
from errcomp.propagation.validation import Validation
from errcomp.report.html import page
from errcomp.report.model import Note, Report
from errcomp.results import format_fraction

PAIRS: Mapping[str, Any] = {
    "device": ["A"] * 12 + ["B"] * 12,
    "predicted": [10.0 + i for i in range(12)] * 2,
    "measured": [10.0] * 12 + [20.0 + i for i in range(12)],
}


def audited(**options: Any) -> tuple[Any, ec.Pairs]:
    pairs = ec.Pairs(PAIRS, unit="ms", source="pairs.csv")
    return ec.audit(pairs, by=["device"], **options), pairs


def cells(made: Report, table: int = 0) -> list[list[str]]:
    shown = made.tables_for("page")[table]
    return [[column.cell(row).text for column in shown.columns] for row in shown.rows]


def test_an_audit_shows_the_figures_of_its_rows() -> None:
    result, pairs = audited()
    made = result.view(pairs)
    assert [row[:2] for row in cells(made)] == [["A", "12"], ["B", "12"], ["all", "24"]]
    for shown, row in zip(cells(made), [*result.rows, *result.by_tool], strict=True):
        assert shown[2].removesuffix("‡") == row.figures["mape"].format()
        assert shown[3].startswith(format_fraction(row.figures["max_ape"].value))
    assert len(made.tables_for("page")[1].columns) == len(cells(made, 1)[0])
    assert dict(made.method)["Unit of the pairs"] == "ms"


def test_without_a_claim_the_figure_is_the_answer() -> None:
    result, _ = audited()
    (verdict,) = result.view().verdicts
    assert verdict.head == f"MAPE {result.overall.figures['mape'].format()}"
    assert verdict.tone == "plain"


def test_verdicts_of_groups_are_told_with_what_holds_of_all_together() -> None:
    result, _ = audited(claims=[user_claim("2%")])
    made = result.view()
    assert {row.verdict.jointly for row in result.rows} - {None}
    for row in result.rows:
        alone = row.verdict.jointly not in (None, row.verdict.word)
        (told,) = [one for one in made.verdicts if f" {row.key['device']} (2 % claimed" in one.text]
        assert told.head.lower().startswith(row.verdict.word)
        assert ("not significant" in told.head) == alone
        assert "of 2 groups with a claim" in told.text


def test_every_caveat_of_the_whole_comes_with_what_to_do() -> None:
    result, _ = audited()
    codes = [caveat.message for row in result.by_tool for caveat in row.caveats]
    made = result.view()
    assert codes
    assert [one.text for one in made.advice] == codes
    assert all(one.remedy for one in made.advice)


@pytest.mark.extras
def test_pairs_bring_their_figures_and_their_lack_is_told() -> None:
    pytest.importorskip("matplotlib")
    result, pairs = audited()
    assert [one.name for one in result.view().figures] == ["claimed"]
    assert any("errcomp report TABLE" in note for note in result.view().notes)
    names = [one.name for one in result.view(pairs).figures]
    assert names == ["claimed", "predicted", "ecdf", "size", "groups"]


@pytest.mark.extras
def test_propagated_bands_say_whether_they_hold_the_measurement(
    outcome: Callable[..., Outcome], propagation: Callable[..., Propagation]
) -> None:
    pytest.importorskip("matplotlib")
    inside = propagation(outcome()).view()
    (verdict,) = inside.verdicts
    assert (verdict.head, verdict.tone) == ("70 … 130 ms", "good")
    assert "inside the band" in verdict.text
    assert [one.name for one in inside.figures] == ["bands-1"]
    (verdict,) = propagation(outcome(measured=200.0)).view().verdicts
    assert verdict.tone == "doubt"
    assert "outside the band" in verdict.text


@pytest.mark.extras
def test_validated_bands_are_too_narrow_only_where_the_interval_says_so(
    validation: Validation,
) -> None:
    pytest.importorskip("matplotlib")
    made = validation.view()
    assert [(one.head, one.text.split()[1]) for one in made.verdicts] == [
        ("Not refuted", "estimated:"),
        ("Too narrow", "independent:"),
        ("Not refuted", "unknown:"),
    ]
    assert [one.name for one in made.figures] == ["coverage", "pit-1", "pit-2"]


def test_the_basis_names_every_input_by_its_checksum(tmp_path: Path) -> None:
    import hashlib

    (tmp_path / "a.csv").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.csv").write_text("y")
    made = with_basis(
        Report("A"), [str(tmp_path / "a.csv"), str(tmp_path / "folder"), "neusight", "db://x"]
    )
    text = dict(made.method)["Made from"]
    for content in ("x", "y"):
        assert hashlib.sha256(content.encode()).hexdigest() in text
    assert "neusight/" in text
    assert "db://" not in text
    assert "errcomp" in dict(made.method)["Made with"]


def test_rows_of_a_document_are_shown_and_nested_ones_named() -> None:
    document = {"schema": "errcomp.x/1", "rows": [{"a": 1.5, "b": None, "c": [1]}]}
    made = view_of_rows(document, "x.json")
    assert cells(made) == [["1.5", "–"]]
    assert made.tables[0].remarks() == [
        Note("Columns not shown, because their values are nested: c.")
    ]
    assert "1.5" in page([made], title="x", made_by="y")
    with pytest.raises(InputError, match=r"x\.json: the document has no rows"):
        view_of_rows({"rows": 3}, "x.json")


@pytest.mark.extras
def test_a_result_shows_itself_in_a_notebook() -> None:
    pytest.importorskip("matplotlib")
    found = ec.summarize(PAIRS, by="device")
    html = found._repr_html_()
    assert html.startswith('<div class="errcomp"><style>')
    assert found.pooled.figures["mape"].format() in html.replace("\N{NO-BREAK SPACE}", " ")
    assert "<svg" in html
    assert "<script>" not in html


@pytest.mark.extras
def test_a_notebook_folds_the_pictures_after_the_first() -> None:
    pytest.importorskip("matplotlib")
    kernels = ec.load("neusight-kernels")
    html = ec.propagate(kernels.where({"run": kernels.run[0]}))._repr_html_()
    open_, *_ = html.partition("<details")
    assert open_.count("<figure") == 1
    assert html.count("<figure") > 1
    assert ">Pictures<" in html
