"""Where the store is tested: a file, and a PostgreSQL server if there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest


@pytest.fixture
def server() -> Iterator[str]:
    """URL of an empty schema on the server for tests."""
    url = os.environ.get("ERRCOMP_TEST_POSTGRES")
    if not url:
        pytest.skip("ERRCOMP_TEST_POSTGRES names no server (tests/halflife/postgres.sh starts one)")
    psycopg = pytest.importorskip("psycopg")
    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{url}?options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.extras)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store can be made, of both kinds."""
    if request.param == "file":
        return str(tmp_path / "history.db")
    return str(request.getfixturevalue("server"))
