"""The section of an audit: what holds of all claims, how they are written, what is unchecked."""

from __future__ import annotations

import pytest

import errcomp as ec
from errcomp.claims.auditing import Audit
from errcomp.claims.registry import user_claim
from errcomp.claims.view.audit import audit_view


@pytest.fixture(scope="module")
def judged() -> Audit:
    """Two devices: of A the claim is just beyond the interval, of B far off."""
    errors = [0.02 + 0.01 * i for i in range(12)] + [0.4 + 0.01 * i for i in range(12)]
    data = {
        "predicted": [1 + e for e in errors],
        "measured": [1.0] * 24,
        "rack": ["A"] * 12 + ["B"] * 12,
        "tool": ["mine"] * 24,
    }
    pairs = ec.Pairs(data, source="pairs.csv")
    return ec.audit(pairs, by=["rack"], claims=[user_claim("0.052", aggregation="mean")])


def test_the_title_says_which_is_the_tool(judged: Audit) -> None:
    assert audit_view(judged).title == "Does the claimed accuracy hold? pairs.csv, tool mine"


def test_claims_are_told_in_per_cent(judged: Audit) -> None:
    made = audit_view(judged)
    assert "0.052" not in str((made.verdicts, made.advice, made.notes))
    assert "B (5.2 % claimed, " in str(made.verdicts)
    table = made.tables_for("page")[0]
    (claimed,) = (column for column in table.columns if column.header == "Claim")
    assert {claimed.cell(row).text for row in table.rows} == {"5.2 %"}


def test_all_claims_are_told_with_what_holds_of_them_together(judged: Audit) -> None:
    (a, b), (everything,) = (row.verdict for row in judged.rows), judged.claims
    assert (a.word, a.together) == ("overstated", "consistent")
    assert b.together == everything.together == "overstated"
    heads = [one.head for one in audit_view(judged).verdicts]
    assert heads == ["Overstated", "Maybe overstated", "Overstated"]
    method = dict(audit_view(judged).method)
    assert method["Coverage after correcting for all claims"] == "98.33 % each, for 3 claims"


def test_that_nobody_looked_for_dependence_is_told(judged: Audit) -> None:
    (note,) = audit_view(judged).notes[-1:]
    assert note.startswith("Every pair counts as independent, because no column shows which")
