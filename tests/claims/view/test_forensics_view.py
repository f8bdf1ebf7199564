"""The report of the forensics: order, proofs, and what a page says only once."""

from __future__ import annotations

import pytest

from errcomp.claims.forensics import forensics
from errcomp.errors import InputError

FIGURES = {
    "group": ["A", "A", "B", "B", "C", "C"],
    "quantity": ["mean", "max"] * 3,
    "value": ["5.0%", "9%", "5.0%", "50%", "2.0%", "50%"],
    "n": ["", "", "", "", "20", "20"],
}


def test_the_impossible_comes_first_with_its_proof() -> None:
    found = forensics(FIGURES)
    (table,) = found.view().tables
    assert [(row.group, row.verdict) for row in table.rows] == [
        ("C", "impossible"), ("A", "possible only if"), ("B", "possible only if"),
    ]  # fmt: skip
    assert [column.header for column in table.columns] == ["Table", "n", "Figures", "Verdict"]
    assert found.view().line == ["1 impossible", "2 possible only if", "3 sets of figures"]
    text = str(found)
    assert " · C: Of the errors, 1 of 20 is at least 49.5 % (max 50%)" in text
    assert " · B: possible only if n is at least 10. With n = 9: " in text
    assert "A misprint, another" in text


def test_a_page_has_the_proofs_as_verdicts_alone() -> None:
    view = forensics(FIGURES).view()
    heads = [(one.head, one.tone) for one in view.verdicts]
    assert heads[:2] == [("Impossible", "bad"), ("Possible only if", "doubt")]
    assert view.verdicts[2].text.startswith("— B: n is at least 10. With n = 9: ")
    (page,) = view.tables_for("page")
    assert [note.text.partition(":")[0] for note in page.remarks()] == ["Impossible"]


def test_figures_without_tables_and_conflicts_need_few_words() -> None:
    found = forensics({"quantity": ["mean", "max"], "value": ["5%", "9%"], "n": [9, 9]})
    (table,) = found.view().tables
    assert [column.header for column in table.columns] == ["n", "Figures", "Verdict"]
    assert table.remarks() == []
    assert found.view().line == ["1 set of figures"]


@pytest.mark.extras
def test_excluded_figures_are_drawn_with_what_the_others_allow() -> None:
    pytest.importorskip("matplotlib")
    found = forensics(FIGURES)
    assert [one.name for one in found.view().figures] == ["figure"]
    ax = found.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["C: mean 2.0%"]
    (low,) = {line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2}
    assert low == pytest.approx(2.475)
    nothing = forensics({"quantity": ["mean"], "value": ["5%"]})
    assert nothing.view().figures == []
    with pytest.raises(InputError, match="nothing to draw"):
        nothing.plot()
