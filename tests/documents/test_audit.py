"""The document of an audit, read again."""

from __future__ import annotations

import json
from pathlib import Path

import errcomp as ec
from errcomp.claims.registry import user_claim
from errcomp.documents import read

DATA = {"predicted": [1.1, 1.2, 0.9, 1.3], "measured": [1.0] * 4, "rack": ["A", "A", "B", "B"]}


def test_what_was_unchecked_and_judged_together_is_read_again(tmp_path: Path) -> None:
    audit = ec.audit(DATA, by=["rack"], claims=[user_claim("0.05")])
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({"schema": "errcomp.audit/1", **audit.to_dict()}))
    _, _, found = read(path)
    assert found.cluster_keys == ()
    assert found.judged_together == audit.judged_together == 3
    assert [v.claim.printed for v in found.claims] == ["0.05"]
    assert [v.jointly for v in found.claims] == [v.jointly for v in audit.claims]
