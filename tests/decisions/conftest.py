"""Fixtures of the tests of comparisons."""

from __future__ import annotations

import pytest

from tests.decisions.draws import fewer


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw little from the error model."""
    fewer(monkeypatch)
