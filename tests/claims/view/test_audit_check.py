"""An audit as a check: which claims are cases, at what level they fail, what is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import errcomp as ec
from errcomp.claims.auditing import Audit, audit
from errcomp.claims.registry import user_claim
from errcomp.claims.view.audit_check import report_audit
from errcomp.errors import InputError


def pairs(errors):
    """Pairs by device; errors as given, all predictions too high."""
    rows = [(name, e) for name, values in errors.items() for e in values]
    return ec.Pairs(
        {
            "predicted": [1 + e for _, e in rows],
            "measured": [1.0] * len(rows),
            "device": [name for name, _ in rows],
        },
        source="results.csv",
    )


SMALL = tuple(0.04 + 0.001 * i for i in range(12))
LARGE = tuple(0.2 + 0.01 * i for i in range(12))


@pytest.fixture(scope="module")
def mixed() -> Audit:
    """Device A as claimed, B far off, C with too few pairs for an interval."""
    claim = user_claim("5%", aggregation="mean")
    return audit(pairs({"A": SMALL, "B": LARGE, "C": (0.05,)}), claims=[claim], cluster="none")


def outcomes(report):
    return {case.name: case.outcome for case in report.cases}


def test_one_case_for_each_claim(mixed, schema):
    report = report_audit(mixed)
    assert outcomes(report) == {
        "device=A": "passed",
        "device=B": "failure",
        "device=C": "skipped",
        "all pairs, claim 5 %": "failure",
    }
    assert report.failed
    root = schema(report.junit())
    failure = root.find(".//failure")
    assert failure.get("message").startswith("overstated: 25.50 % [")
    assert "the whole interval is above 5 %" in failure.text
    assert root.find(".//skipped").get("message").startswith("No interval from 1 pair: at least 4")
    assert report.properties["fail.on"] == "overstated"
    assert report.properties["claims.overstated"] == "2"


def test_what_fails_is_chosen(mixed):
    found = outcomes(report_audit(mixed, fail_on=["not verifiable"]))
    assert [name for name, word in found.items() if word == "failure"] == ["device=C"]
    both = report_audit(mixed, fail_on=["overstated", "not verifiable"])
    assert sum(case.outcome == "failure" for case in both.cases) == 3
    assert "; 1 of 4 claims is not verifiable (device=C)." in both.verdict
    assert not report_audit(mixed, fail_on=["understated"]).failed


def test_an_understated_claim():
    claim = user_claim("50%", aggregation="mean")
    found = audit(pairs({"A": SMALL}), claims=[claim], by=[], resamples=999)
    report = report_audit(found, fail_on=["understated"])
    assert outcomes(report) == {"all pairs, claim 50 %": "failure"}
    assert "is understated: the error is smaller than claimed" in report.verdict
    assert not report_audit(found).failed


@pytest.mark.parametrize("fail_on", [[], ["bad"], ["consistent"]])
def test_what_can_be_failed_on_is_listed(mixed, fail_on):
    with pytest.raises(
        InputError, match="fail_on must be one or more of overstated, understated, not"
    ):
        report_audit(mixed, fail_on=fail_on)


def test_groups_fail_only_where_the_claim_fails_for_all_together(mixed):
    b = next(i for i, row in enumerate(mixed.rows) if row.key == {"device": "B"})
    rows = list(mixed.rows)
    assert rows[b].verdict.jointly == "overstated"
    rows[b] = replace(rows[b], verdict=replace(rows[b].verdict, jointly="consistent"))
    report = report_audit(replace(mixed, rows=tuple(rows)))
    assert outcomes(report)["device=B"] == "passed"
    assert "| device=B | 12 | 5 % |" in report.markdown
    assert "| maybe overstated |" in report.markdown
    note = 'A verdict with "maybe" is not significant after correcting for 4 claims.'
    assert note in report.markdown.splitlines()
    assert "maybe" not in report_audit(mixed).markdown
    # It stands between what failed and what is consistent by itself.
    words = [line.split(" | ")[-1] for line in report.markdown.splitlines()[6:10]]
    assert words == ["overstated |", "maybe overstated |", "consistent |", "not verifiable |"]


def test_so_do_claims_about_all_pairs(mixed):
    (verdict,) = mixed.claims
    assert verdict.jointly == "overstated"
    alone = replace(verdict, jointly="consistent")
    report = report_audit(replace(mixed, claims=(alone,)))
    assert outcomes(report)["all pairs, claim 5 %"] == "passed"
    assert report.properties["claims.overstated"] == "1"


def test_that_every_pair_counts_as_independent_is_told(mixed):
    clustered = replace(mixed, cluster_keys=("device",))
    assert "Every pair counts as independent" in report_audit(mixed).markdown
    assert "Every pair counts as independent" not in report_audit(clustered).markdown


def test_a_group_without_a_claim_is_no_case():
    report = report_audit(audit(pairs({"A": SMALL}), resamples=999))
    assert report.cases == ()
    assert not report.failed
    assert "**Nothing was checked: no claim about these pairs is known.**" in report.markdown
    assert "What to do: give a figure to check" in report.markdown


def test_nothing_that_could_be_decided():
    claim = user_claim("5%")
    report = report_audit(audit(pairs({"C": (0.05,)}), claims=[claim], by=[], resamples=999))
    assert report.verdict == "Nothing could be checked: the pairs cannot decide the claim."
    assert not report.failed


def test_summary(mixed):
    text = report_audit(mixed).markdown
    lines = text.splitlines()
    assert lines[0] == "## Accuracy audit: results.csv"
    assert lines[2] == (
        "**2 of 4 claims are overstated: the error is larger than claimed (device=B; all pairs, "
        "claim 5 %).**"
    )
    assert lines[4] == "| claim about | n | claimed | recomputed \\[95 %\\] | verdict |"
    # What failed comes first.
    assert [line.split(" | ")[0] for line in lines[6:10]] == [
        "| device=B", "| all pairs, claim 5 %", "| device=A", "| device=C",
    ]  # fmt: skip
    assert "- Overstated: find what changed in the predictor" in text
    assert "If a factor helps, multiply predictions by a factor fitted on other" in text
    few = (
        "- Not verifiable (device=C): Measure more configurations: there are too few for an "
        "interval."
    )
    assert few in text
    assert len(lines) < 60
    assert (
        "4 claims are checked at 98.75 % confidence each, so that all verdicts together hold"
        in text
    )
    assert "If all claims were true, this check would fail in at most 5 % of audits." in text


def test_summary_of_a_pass():
    claim = user_claim("5%", aggregation="mean")
    report = report_audit(audit(pairs({"A": SMALL}), claims=[claim], by=[], resamples=999))
    assert report.verdict == "Pass: the claim was not refuted."
    assert "What to do: nothing." in report.markdown
    assert (
        "checked at 95 % confidence. If all claims were true, this check would fail in at most 5 %"
        in (report.markdown)
    )


def test_a_pass_with_undecided_claims_says_what_would_decide_them():
    """The mean of A is 15 %, its median 4 %: without an average 4 % is neither right nor wrong."""
    two_kinds = (0.03, 0.04, 0.041, 0.05, 0.4, 0.042, 0.45, 0.043, 0.35, 0.039, 0.038, 0.38)
    table = pairs({"A": two_kinds, "B": SMALL})
    open_claim = report_audit(audit(table, claims=[user_claim("4%")], resamples=999))
    assert not open_claim.failed
    assert outcomes(open_claim)["device=A"] == "skipped"
    assert "Name the average with --aggregation mean" in open_claim.cases[0].message
    assert "What to do: nothing" not in open_claim.markdown
    assert "- Not verifiable (device=A" in open_claim.markdown
    assert "name the average with --aggregation mean" in open_claim.markdown
    said = audit(table, claims=[user_claim("4%", aggregation="mean")], resamples=999)
    assert outcomes(report_audit(said))["device=A"] == "failure"


def test_what_else_cannot_be_decided_is_told_with_its_reason():
    pairs = ec.datasets.load("neusight").where({"device": ["H100", "V100"], "tool": "neusight"})
    told = report_audit(audit(pairs, by=["mode"], resamples=999)).markdown
    assert "- Not verifiable (all pairs, claim 2.3 %): The claim is about" in told


@pytest.mark.parametrize("models", [2, 3])
def test_clusters_that_say_too_little_skip_the_case_everywhere(models, schema):
    rng = np.random.default_rng(0)
    model = np.repeat(np.arange(models), 20)
    error = 0.1 + 0.3 * model + 0.01 * rng.random(20 * models)
    table = {"predicted": 1 + error, "measured": np.ones(20 * models), "model": model.astype(str)}
    found = audit(table, claims=[user_claim("5%", aggregation="mean")], by=[])
    report = report_audit(found)
    reason = found.claims[0].reason
    assert "are too few" in reason or "differ so much" in reason
    assert not report.failed
    assert report.cases[0].message == reason
    assert schema(report.junit()).find(".//skipped").get("message") == reason
    assert found.to_dict()["claims"][0]["verdict"] == "not verifiable"


def test_several_tools_are_told_apart():
    table = ec.Pairs(
        {
            "predicted": [1.05] * 8,
            "measured": [1.0] * 8,
            "device": ["A", "B"] * 4,
            "tool": ["x"] * 4 + ["y"] * 4,
        }
    )
    report = report_audit(audit(table, claims=[user_claim("5%")], resamples=999))
    assert [case.name for case in report.cases][:4] == [
        "x, device=A", "x, device=B", "y, device=A", "y, device=B",
    ]  # fmt: skip


def test_any_name_is_escaped(mixed, nasty, schema, rendered):
    rows = tuple(replace(row, key={nasty or "k": nasty}) for row in mixed.rows)
    report = report_audit(replace(mixed, rows=rows, source=nasty))
    schema(report.junit())
    html = rendered(report.markdown)
    assert html.count("<tr>") == 5
    assert html.count("<td") == 4 * 5
    assert "<script" not in html


def test_the_same_result_gives_the_same_bytes(mixed):
    one, other = report_audit(mixed), report_audit(mixed)
    assert one.junit() == other.junit()
    assert one.markdown == other.markdown
