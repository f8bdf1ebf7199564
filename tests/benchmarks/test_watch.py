"""The gate of the watch, on ratios that are made up around the reference."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

Script = Callable[[str], ModuleType]


@pytest.fixture
def watch(script: Script) -> Any:
    return script("watch")


def today(watch: Any, factors: dict[str, float], runs: int = 1) -> list[dict[str, Any]]:
    """Return the ratios of one run of the reference, some of them multiplied."""
    return [
        row
        | {
            "version": "999",
            "date": "2999-01-01",
            # Equal in all digits would be carried over.
            "measured": 1.0001 * float(row["measured"]) * factors.get(row["series"], 1.0),
        }
        for row in watch.read(watch.HISTORY)
        if int(row["repeat"]) <= runs * watch.TODAY
    ]


def test_the_reference_has_repeats_of_every_series(watch: Any) -> None:
    rows = watch.read(watch.HISTORY)
    assert {*rows[0]} == {*watch.COLUMNS}
    for series in {row["series"] for row in rows}:
        own = [row for row in rows if row["series"] == series]
        assert len({(row["version"], row["repeat"]) for row in own}) == len(own) >= watch.REFERENCE
        # One goal for each series, whatever its ratio becomes.
        assert len({row["predicted"] for row in own}) == 1


@pytest.mark.core
def test_as_fast_as_before_or_faster_passes(watch: Any) -> None:
    assert watch.check(today(watch, {"grouped summary": 0.5})) == 0


@pytest.mark.core
def test_slower_is_found(watch: Any, capfd: pytest.CaptureFixture[str]) -> None:
    slower = {"grouped summary": 2.0, "start-up": 0.5}
    assert watch.check(today(watch, slower)) == 1
    (line,) = [x for x in capfd.readouterr().out.splitlines() if "repeat  " in x]
    assert line.startswith("grouped")
    # An alarm is measured again, and both measurements decide.
    assert watch.check(today(watch, slower, runs=2)) == 1
    (line,) = [x for x in capfd.readouterr().out.splitlines() if "error grew  " in x]
    assert line.startswith("grouped summary")


def test_what_raised_an_alarm_is_measured_once_more(
    watch: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A disturbance that is gone by then is none; what stays is."""
    factors = iter([{"bootstrap": 3.0}, {}])
    monkeypatch.setattr(watch, "measured", lambda *_: today(watch, next(factors)))
    calls: list[int] = []
    monkeypatch.setattr(
        watch, "check", lambda rows: calls.append(len(rows)) or int(len(calls) == 1)
    )
    assert watch.compare() == 0
    assert calls[1] == 2 * calls[0]
    assert "measured again" in capfd.readouterr().out
