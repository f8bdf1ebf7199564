"""The map of what is predicted, without the layout that tests/report looks at."""

from __future__ import annotations

import pytest

from errcomp.claims.view.coverage import coverage_map


@pytest.mark.extras
def test_no_text_of_the_map_is_read_as_mathematics() -> None:
    pytest.importorskip("matplotlib")
    ax = coverage_map(
        {
            "predicted": [11.0, 12.0, 8.0],
            "measured": [10.0] * 3,
            "tool": ["$a$", "$a$", "b"],
            "model": ["$x_1$", "y", "y"],
        }
    )
    rows, columns = ax.get_yticklabels(), ax.get_xticklabels()
    assert [label.get_text() for label in columns] == ["$x_1$\nn=1", "y\nn=2"]
    assert [label.get_text() for label in rows] == ["$a$  n=2", "b  n=1"]
    cells = [text for text in ax.texts if "n=" in text.get_text()]
    assert [text.get_text() for text in cells] == ["10.0 %\nn=1", "20.0 %\nn=1", "20.0 %\nn=1"]
    assert not any(text.get_parse_math() for text in [*rows, *columns, *cells])
