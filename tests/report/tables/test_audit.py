"""An audit as a table: what is said of all claims together."""

from __future__ import annotations

from dataclasses import replace

import pytest

import errcomp as ec
from errcomp.claims.auditing import Audit
from errcomp.claims.registry import user_claim
from errcomp.claims.verdict import Word
from errcomp.report.tables.audit import audit_tables, claim_line


@pytest.fixture(scope="module")
def judged() -> Audit:
    data = {
        "predicted": [1.2 + 0.01 * (i % 5) for i in range(24)],
        "measured": [1.0] * 24,
        "gpu": ["A", "B"] * 12,
    }
    return ec.audit(data, by=["gpu"], claims=[user_claim("<5%", aggregation="mean")])


def said(audit: Audit) -> str:
    (table,) = audit_tables(audit)
    return next(note for note in table.notes if "claims are judged" in note)


def with_words(audit: Audit, word: Word, jointly: Word) -> Audit:
    row = audit.rows[0]
    changed = replace(row, verdict=replace(row.verdict, word=word, jointly=jointly))
    return replace(audit, rows=(changed, *audit.rows[1:]))


def test_groups_and_claims_about_all_pairs_are_counted_and_named(judged: Audit) -> None:
    assert said(judged) == (
        "3 claims are judged, each at 95 %. At the level that holds for all of them together, "
        "overstated: A, B, all."
    )
    assert "overstated: B, all." in said(with_words(judged, "overstated", "consistent"))


def test_understated_claims_are_named_where_there_are_any(judged: Audit) -> None:
    kept = with_words(judged, "understated", "understated")
    assert said(kept).endswith("overstated: B, all; understated: A.")
    lost = with_words(judged, "understated", "consistent")
    assert said(lost).endswith("overstated: B, all; understated: none.")


def test_a_claim_that_is_wrong_only_alone_is_told_so(judged: Audit) -> None:
    (verdict,) = judged.claims
    assert "<5 % (given by the user): overstated. " in claim_line(verdict)
    alone = replace(verdict, jointly="consistent")
    assert "<5 % (given by the user): overstated if judged alone. " in claim_line(alone)


def test_a_single_claim_is_judged_by_itself() -> None:
    data = {"predicted": [1.2, 1.3, 1.4], "measured": [1.0] * 3}
    (table,) = audit_tables(ec.audit(data, claims=[user_claim("5%")]))
    assert not any("claims are judged" in note for note in table.notes)
