"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from errcomp.cli import main

# The same examples every time; `make simulations` tries more (--hypothesis-profile=thorough).
for _profile, _examples in (("quick", 25), ("thorough", 60)):
    hypothesis.settings.register_profile(
        _profile,
        max_examples=_examples,
        derandomize=True,
        database=None,
        # A busy machine is no defect.
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("quick")


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of third-party data beside the checkout: mandatory under CI, else skipped."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if path.is_dir():
        return path
    message = "the third-party data folder (../shared/data) is not beside this checkout"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the command line in this process."""

    def call(*argv: object) -> Ran:
        try:
            code = main([str(a) for a in argv])
        except SystemExit as leave:
            code = int(leave.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call
