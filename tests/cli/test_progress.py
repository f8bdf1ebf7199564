from __future__ import annotations

import io
import sys
import time

import pytest

from errcomp.cli import _progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_a_bar_appears_only_for_people_who_wait(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, shown: bool
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(_progress, "_PATIENCE_S", 0.01)
    with _progress.progress("searching", quiet=quiet) as report:
        report(1, 2)
        time.sleep(0.4)
    assert ("searching" in stream.getvalue()) is shown


def test_quick_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with _progress.progress("searching") as report:
        report(2, 2)
    assert "searching" not in stream.getvalue()
