from __future__ import annotations

import pytest

from errcomp.report.tables.notes import Note, parsed


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (" a  Few pairs", Note("a", "Few pairs")),
        (" ‡  Interval", Note("‡", "Interval")),
        (" *  If", Note("*", "If")),
        ("[12] mean APE", Note("[12]", "mean APE")),
        (" · item", Note("·", "item")),
        ("a sentence", Note("", "a sentence")),
        ("[low, high]: interval", Note("", "[low, high]: interval")),
        (" ab  no legend", Note("", "ab  no legend")),
    ],
)
def test_a_mark_is_told_from_what_it_marks(line: str, note: Note) -> None:
    assert list(parsed([line])) == [note]


def test_items_belong_to_the_sentence_that_ends_with_a_colon() -> None:
    notes = [" · alone", "Why:", " · one", " · two", "", "Done.", " · after"]
    assert [(n.text, n.below) for n in parsed(notes)] == [
        ("alone", False),
        ("Why:", False),
        ("one", True),
        ("two", True),
        ("Done.", False),
        ("after", False),
    ]
