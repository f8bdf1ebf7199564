"""The terms that tables use are found and explained, by the same sentences everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errcomp.metrics import FIGURES
from errcomp.report.html import page
from errcomp.report.model import Column, Report, Table, heading_of
from errcomp.report.terms import _CONCEPTS, explained, term_of, terms, terms_in

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]


def table(*headers: str, title: str = "All", notes: tuple[str, ...] = ()) -> Table:
    columns = [
        Column(header, lambda row, i=i: row[i], key=i == 0)  # type: ignore[misc]
        for i, header in enumerate(headers)
    ]
    return Table(title, columns, [tuple("comonotonic" for _ in headers)], notes)


def names(*tables: Table) -> list[str]:
    return [term.name for term in terms_in(tables)]


def test_terms_are_found_in_heads_keys_titles_and_notes() -> None:
    assert names(table("Device", "Growth", "Effective number")) == [
        "Comonotonic",
        "Effective number",
        "Growth",
    ]
    # A word of the user's in a column that does not name the rows is no term.
    other = Table("All", [Column("Device", lambda row: row)], ["comonotonic"])
    assert names(other) == []
    assert names(table("Device", notes=("MAPE of the WAPE",)))[1:] == ["MAPE", "WAPE"]
    assert names(table("Device", title="Half-life by group"))[1:] == ["Half-life"]


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("Look 5 of this gate: level 0.001", "Look"),
        ("false alarms over all looks", "Look"),
        ("p (Holm)", "Holm correction"),
        ("pairs are clustered by model", "Cluster"),
        ("intraclass correlation 0.3", "ICC"),
        ("MAPE of the most confident 80 %", "Most confident 80 %"),
        ("leave-device-out: each device left out", "Leave-model-out"),
        ("noise of one validation: 2 %", "Noise floor"),
        ("claimed and recomputed: overstated", "Verdict"),
    ],
)
def test_a_note_uses_a_term_in_its_own_form(text: str, term: str) -> None:
    assert term in names(Table(text, (), ()))


@pytest.mark.parametrize(
    "text", ["have a look at the devices", "the level of a test", "growing", "recovery", "map"]
)
def test_a_common_word_is_not_taken_for_a_term(text: str) -> None:
    assert names(Table(text, (), ())) == []


def test_terms_that_readers_ask_for_are_explained() -> None:
    known = {term.name.lower() for term in terms()}
    assert {
        *("growth", "effective number", "comonotonic", "look", "most confident 80 %", "cr2"),
        *("median survival", "half-life", "icc", "pinball loss", "crps", "pit", "exchangeable"),
        *("conformal", "cluster", "wape", "gmape", "log-ratio", "noise floor", "pooled", "macro"),
        *("composition gap", "claim", "level", "reference", "mape", "kernel class", "promise"),
    } <= known


def test_each_term_is_one_sentence_and_has_one_entry() -> None:
    for term in terms():
        assert re.fullmatch(r"[A-Z|l].*\.", term.text), term
        assert ". " not in term.text.removesuffix("."), term
    every = [term.name.lower() for term in terms()]
    assert len(every) == len(set(every))


def test_metrics_have_the_sentences_of_their_definitions() -> None:
    term = term_of("MAPE [95 %]")
    assert term is not None
    assert term.text == FIGURES["mape"].definition


def test_a_page_explains_at_the_head_of_a_column_and_at_its_end() -> None:
    text = page([Report("R", tables=[table("Device", "Growth")])], title="R", made_by="y")
    sentence = "relative error of the run divided by"
    head, _, end = text.rpartition("Terms in these tables")  # the contents name them, too
    assert re.search(rf'<th [^>]*title="Growth factor: {sentence}[^"]*">Growth</th>', head)
    assert f"<dt>Growth</dt><dd>Growth factor: {sentence}" in end
    plain = page([Report("R", tables=[Table("G", [], [])])], title="R", made_by="y")
    assert "Terms in these tables" not in plain


def test_a_command_explains_below_its_tables(run: Run) -> None:
    ran = run("metrics", "neusight", "--figures", "mape,wape")
    more = run("metrics", "neusight", "--figures", "mape,wape", "--explain")
    assert more.code == 0
    assert more.out.startswith(ran.out.rstrip())
    below = more.out.removeprefix(ran.out.rstrip())
    lines = " ".join(below.split())
    assert lines.startswith("Terms in these tables · ")
    for name in ("MAPE", "WAPE"):
        term = term_of(name)
        assert term is not None
        assert f"· {name}: {term.text}" in lines
    assert "CRPS" not in lines


def test_a_document_has_nothing_to_explain(run: Run) -> None:
    ran = run("metrics", "neusight", "--json", "--explain")
    assert ran.code == 2
    assert "not allowed with argument --json" in ran.err


def test_terms_are_explained_in_the_order_of_the_alphabet() -> None:
    notes = [note.text for note in explained([table("WAPE", "MAPE", "CRPS")]).remarks()]
    assert [text.partition(":")[0] for text in notes] == ["Comonotonic", "CRPS", "MAPE", "WAPE"]


def test_terms_are_sorted_by_section_and_metrics_come_last_in_theirs() -> None:
    found = terms.__wrapped__()
    sections = [term.section for term in found]
    assert list(dict.fromkeys(sections)) == list(dict.fromkeys(one.section for one in _CONCEPTS))
    assert sections == sorted(sections, key=[*dict.fromkeys(sections)].index)
    metrics = [term.name for term in found if term not in _CONCEPTS]
    assert [name for name in metrics if not name.startswith("Approx.")] == [
        heading_of(figure.label)
        for figure in FIGURES.values()
        if not figure.label.startswith("approx.")
    ]
    mape = next(term for term in found if term.name == "MAPE")
    assert mape.text.startswith("Arithmetic mean over pairs")
    assert mape.page.endswith("#all-figures")
    assert term_of("MAPE [95 %]") == mape
