"""The reader that docs/readers.md shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from errcomp.readers.core.ingest import ingest

ROOT = Path(__file__).resolve().parents[2]


def test_a_reader_of_your_own(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "readers.md").read_text(encoding="utf-8")
    (block,) = [
        b for b in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "FORMATS" in b
    ]
    known: dict[str, Any] = {}
    exec(compile(block, "readers.md", "exec"), known)
    path = tmp_path / "sim.csv"
    path.write_text("sim_us\n1.5\nn/a\n")
    found = ingest(path, among=known["FORMATS"])
    assert found.rows["predicted"].to_list() == [1.5, None]
    assert found.rows["status"].to_list() == [None, "no value"]
