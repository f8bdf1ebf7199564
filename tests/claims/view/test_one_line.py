"""A column of the audit's table is one line in one place: every medium shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from errcomp.claims.view import audit as view
from errcomp.report import forms
from errcomp.report.model import Column


@pytest.mark.core
def test_a_column_that_is_added_is_shown_by_every_medium(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from errcomp.cli import main

    made = view._groups

    def with_column(audit):
        table = made(audit)
        added = Column("Dummy", lambda row: row.n / 8, forms.fixed(3))
        return replace(table, columns=[*table.columns, added])

    monkeypatch.setattr(view, "_groups", with_column)
    # The column is in no picture.
    monkeypatch.setattr("errcomp.report.html.pictures", lambda figures: ([], []))
    path = tmp_path / "table.csv"
    rows = [f"{'AB'[i % 2]},{10 + i % 3},{10 + i % 5}" for i in range(18)]
    path.write_text("\n".join(["device,predicted,measured", *rows]), encoding="utf-8")
    for form in ("text", "md", "tex"):
        main(["audit", str(path), "--by", "device", "--format", form])
        shown = capsys.readouterr().out
        assert "Dummy" in shown
        assert "1.125" in shown  # 9 pairs of each device
    page = tmp_path / "page.html"
    main(["audit", str(path), "--by", "device", "-o", str(page)])
    assert 'data-value="1.125"' in page.read_text(encoding="utf-8")
