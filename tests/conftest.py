"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
