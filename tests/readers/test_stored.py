"""All that is read from each fixture, and the sums of what is read from real files, as stored."""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from errcomp.errors import InputError
from errcomp.readers.collectives import chakra
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output

FIXTURES = Path(__file__).parents[1] / "data" / "readers"

#: Folders of `shared/data/tools`.
SAMPLES = (
    *("accel-sim", "aiconfigurator", "amali", "archgym", "astra-sim", "blis", "chakra"),
    *("echo", "frontier", "gem5", "gpgpu-sim", "granite", "habitat", "help", "jax", "kineto"),
    *("litepred", "llmcompass", "llmservingsim", "maestro", "nccl-tests", "ncu", "nn-meter"),
    *("nsys", "onnxruntime", "paleo", "pytorchsim", "rocprof", "scale-sim", "sim-to-real"),
    *("simai", "simumax", "sparseloop", "timeloop", "tracelens", "triosim", "tvm", "vidur"),
)

Stored = Callable[[str, Any], None]


def held(path: Path) -> dict[str, Any]:
    """Return all that is read of a file or folder, or why nothing is."""
    try:
        found = ingest(path)
    except InputError as error:
        return {"error": str(error).replace(str(path.parent), "…")}
    return {
        "report": found.report.splitlines(),
        "files": found.files,
        "dropped": [(drop.n, drop.reason) for drop in found.dropped],
        "rows": [shown(row) for row in found.rows.iter_rows(named=True)],
        "tables": {name: table_of(found, name) for name in ("pairs", "kernels", "runs", "history")},
        "graph": found.graph and found.graph(),
    }


def shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def table_of(found: Output, name: str) -> Any:
    """Return how many rows a table of what was read has, or why there is none."""
    try:
        return len(getattr(found, name).rows)
    except InputError as error:
        return str(error)


@pytest.fixture(autouse=True)
def _the_same_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs made of Chakra traces, which hold no date, carry that of their making."""

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
            return cls(2026, 1, 31, tzinfo=tz)

    monkeypatch.setattr(chakra, "datetime", SimpleNamespace(datetime=Clock, UTC=datetime.UTC))


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir()))
def test_fixtures(name: str, stored: Stored) -> None:
    folders = sorted((FIXTURES / name).iterdir())
    stored(f"readers/{name}", {folder.name: held(folder) for folder in folders})


def sums(column: pl.Series) -> list[Any]:
    """Return what tells a column from others: values, kinds of them, a sum that minds the order."""
    there = column.drop_nulls()
    if column.dtype.is_numeric():
        order = pl.Series(range(1, len(there) + 1), dtype=pl.Float64)
        weighted = (there.cast(pl.Float64) * order).sum() / max(1, len(there))
        return [len(there), there.n_unique(), float(there.cast(pl.Float64).sum()), weighted]
    text = "\n".join(map(str, there.to_list()))
    return [len(there), there.n_unique(), zlib.crc32(text.encode())]


@pytest.mark.shared
@pytest.mark.parametrize("tool", SAMPLES)
def test_samples(tool: str, shared_data: Path, stored: Stored) -> None:
    found = {}
    for path in sorted((shared_data / "tools" / tool).rglob("*")):
        if path.is_file():
            try:
                read = ingest(path)
            except InputError:  # not the output of a tool, or read along with another
                continue
            found[path.name] = {
                "formats": read.formats,
                "rows": len(read.rows),
                "columns": {column.name: sums(column) for column in read.rows},
                "dropped": [(drop.n, drop.reason) for drop in read.dropped],
                "notes": read.notes,
            }
    stored(f"readers/samples/{tool}", found)
