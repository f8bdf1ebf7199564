"""An audit as test cases and a summary: the claims that the pairs contradict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.caveats import remedies
from errcomp.claims.verdict import lacks_aggregation
from errcomp.claims.view.audit import INDEPENDENT, is_an_error, maybe_note, stayed
from errcomp.errors import InputError
from errcomp.report.junit import Case, CheckReport
from errcomp.report.markdown import head, items, line, paragraph, table

if TYPE_CHECKING:
    from errcomp.claims.auditing import Audit
    from errcomp.claims.verdict import Verdict
    from errcomp.results import Caveat

#: Verdicts that a check may fail on; the first is what it fails on by default.
CONDITIONS = ("overstated", "understated", "not verifiable")
#: Claims that are named in the verdict.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Judged:
    """One claim: what it is about, the verdict after correction, and its caveats."""

    name: str
    verdict: Verdict
    word: str
    n: int | None
    caveats: Sequence[Caveat]


def report_audit(
    result: Audit,
    *,
    fail_on: Sequence[str] = CONDITIONS[:1],
    name: str = "errcomp.audit",
    title: str = "",
) -> CheckReport:
    """Report an audit as a check: does any claim not hold?

    Each group with a claim is a test case, and so is each claim about all pairs; groups without a
    claim are not. With several claims, the verdict after correcting for their number decides
    (`Audit.joint_level`, Bonferroni), not the verdict on each claim alone: a check of many true
    claims must not fail because they are many. A case fails if its verdict is in `fail_on`, and is
    skipped if the pairs cannot decide the claim. It passes if the claim was not shown to be wrong,
    which does not show that it is right.

    If all claims are true, at most ``1 - level`` of all audits raise a false alarm, provided that
    the intervals cover as often as promised (docs/intervals.md). Only one end of an interval can
    make a claim overstated, so half of that is expected.

    Parameters
    ----------
    result : Audit
    fail_on : sequence of str
        From "overstated", "understated" and "not verifiable".
    name : str
        Name of the suite, and class of its test cases.
    title : str
        Title of the summary; names the table by default.

    Returns
    -------
    CheckReport

    Raises
    ------
    InputError
        A verdict to fail on does not exist.

    Examples
    --------
    >>> import errcomp as ec
    >>> from errcomp.claims.registry import user_claim
    >>> pairs = {"predicted": [1.0 + 0.1 * i for i in range(9)], "measured": [1.0] * 9}
    >>> found = report_audit(ec.audit(pairs, claims=[user_claim("5%", aggregation="mean")]))
    >>> print(found.verdict)
    1 of 1 claim is overstated: the error is larger than claimed (all pairs, claim 5 %).
    """
    unknown = [word for word in fail_on if word not in CONDITIONS]
    if unknown or not fail_on:
        raise InputError(
            f"fail_on must be one or more of {', '.join(CONDITIONS)}, got {unknown or 'nothing'}"
        )
    judged = _claims(result)
    failed = [claim for claim in judged if claim.word in fail_on]
    words = Counter(claim.word for claim in judged)
    verdict = _sentence(judged, failed)
    heading = title or f"Accuracy audit: {result.source or 'the given table'}"
    lines = [
        *head(heading, verdict),
        *_table(result, judged),
        *_what_to_do(judged, failed),
        *_footer(result, judged),
    ]
    return CheckReport(
        name,
        tuple(_case(result, claim, fail_on) for claim in judged),
        {
            "source": result.source,
            "fail.on": ", ".join(fail_on),
            "level": f"{result.level:.6g}",
            "level.joint": f"{result.joint_level:.6g}",
            "method": result.method,
            "seed": str(result.seed),
            **{f"claims.{word}": str(n) for word, n in sorted(words.items())},
        },
        verdict,
        "\n".join(lines) + "\n",
    )


def _claims(result: Audit) -> list[_Judged]:
    """Return every claim once: those about groups, then those about all pairs of a tool."""
    several = len({row.tool for row in result.rows}) > 1
    judged = []
    for row in result.rows:
        # Without grouping keys, the row is all pairs, whose claims follow.
        if row.verdict.claim is None or not row.key:
            continue
        key = ", ".join(f"{name}={value}" for name, value in row.key.items())
        judged.append(
            _Judged(
                f"{row.tool}, {key}" if several and row.tool else key,
                row.verdict,
                row.verdict.together,
                row.n,
                row.caveats,
            )
        )
    overall = {id(row.verdict): row for row in result.by_tool}
    for verdict in result.claims:
        claim = verdict.claim
        assert claim is not None  # these verdicts are made from claims
        about = ", ".join(f"{name}={value}" for name, value in claim.subset.items()) or "all pairs"
        named = f"{claim.tool}, {about}" if several and claim.tool else about
        row_of_all = overall.get(id(verdict))
        figure = verdict.recomputed
        judged.append(
            _Judged(
                f"{named}, claim {claim.shown}" if claim.printed else f"{named}, no figure",
                verdict,
                verdict.together,
                None if figure is None else figure.n,
                () if row_of_all is None else row_of_all.caveats,
            )
        )
    return judged


def _case(result: Audit, claim: _Judged, fail_on: Sequence[str]) -> Case:
    if claim.word in fail_on:
        text = claim.verdict.reason
        lines = [text, *(caveat.message for caveat in claim.caveats)]
        return Case(claim.name, "failure", f"{claim.word}: {text}", claim.word, "\n".join(lines))
    if claim.word == "not verifiable":
        return Case(claim.name, "skipped", claim.verdict.reason)
    return Case(claim.name)


def _sentence(judged: Sequence[_Judged], failed: Sequence[_Judged]) -> str:
    if not judged:
        return "Nothing was checked: no claim about these pairs is known."
    n = f"{len(judged)} claim{'' if len(judged) == 1 else 's'}"
    if not failed:
        decided = sum(claim.word != "not verifiable" for claim in judged)
        if not decided:
            return (
                "Nothing could be checked: the pairs cannot decide "
                f"{'the claim' if len(judged) == 1 else f'any of {n}'}."
            )
        if len(judged) == 1:
            return "Pass: the claim was not refuted."
        return f"Pass: none of {n} was refuted; the pairs could decide {decided} of them."
    parts = []
    for word in dict.fromkeys(claim.word for claim in failed):
        names = [claim.name for claim in failed if claim.word == word]
        errors = all(is_an_error(claim.verdict) for claim in failed if claim.word == word)
        parts.append(
            f"{len(names)} of {n} {'is' if len(names) == 1 else 'are'} {word}"
            f"{_MEANING[word] if errors else ''} ({_listed(names)})"
        )
    return "; ".join(parts) + "."


_MEANING: Mapping[str, str] = {
    "overstated": ": the error is larger than claimed",
    "understated": ": the error is smaller than claimed",
    "not verifiable": "",
}


def _table(result: Audit, judged: Sequence[_Judged]) -> list[str]:
    rows = []
    # Claims that failed or were decided come first, because a long table is cut.
    order = {"overstated": 0, "understated": 1, "consistent": 2, "not verifiable": 3}
    for claim in sorted(judged, key=lambda claim: (order[claim.word], order[claim.verdict.word])):
        given, figure = claim.verdict.claim, claim.verdict.recomputed
        rows.append(
            (
                claim.name,
                "" if claim.n is None else str(claim.n),
                "" if given is None else given.shown,
                "" if figure is None else figure.format(),
                claim.verdict.shown,
            )
        )
    names = ["claim about", "n", "claimed", f"recomputed [{100 * result.level:g} %]", "verdict"]
    if not rows:
        return []
    maybe = maybe_note(result, (claim.verdict for claim in judged))
    told = paragraph(maybe) if maybe else []
    return [*table(names, rows, right=(1, 2, 3)), *told]


def _what_to_do(judged: Sequence[_Judged], failed: Sequence[_Judged]) -> list[str]:
    """Say what to do about claims that failed and claims that could not be decided."""
    if not judged:
        return paragraph("What to do: give a figure to check, e.g. --claim 5% --aggregation mean.")
    words = {claim.word for claim in failed}
    lines = []
    if "overstated" in words:
        lines.append(
            "Overstated: find what changed in the predictor or in the measurements, or quote the "
            "recomputed error with its interval and say which runs it covers."
        )
    if "understated" in words:
        lines.append("Understated: the predictor is better than claimed. Quote the new error.")
    lines += [*_undecided(judged), *remedies({claim.name: claim.caveats for claim in failed})]
    return items("What to do:", lines) if lines else paragraph("What to do: nothing.")


def _undecided(judged: Sequence[_Judged]) -> list[str]:
    """Say what would decide the claims that neither failed nor passed."""
    remedy: dict[str, list[str]] = {}
    for claim in judged:
        if claim.word != "not verifiable":
            continue
        figure = claim.verdict.recomputed
        if lacks_aggregation(claim.verdict):
            text = (
                "The claim does not say how it was averaged: name the average with "
                "--aggregation mean (or another)."
            )
        elif figure is not None and figure.low is None:
            text = "Measure more configurations: there are too few for an interval."
        else:
            text = claim.verdict.reason
        remedy.setdefault(text, []).append(claim.name)
    lines = [f"Not verifiable ({_listed(names)}): {text}" for text, names in remedy.items()]
    return lines[:_NAMED]


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names[:_NAMED]) + ("; …" if len(names) > _NAMED else "")


def _footer(result: Audit, judged: Sequence[_Judged]) -> list[str]:
    """Say at what level claims are checked, and how often true ones fail."""
    if not any(claim.verdict.recomputed for claim in judged):
        return []
    percent, n = f"{100 * result.level:g} %", result.judged_together
    text = f"The claim is checked at {percent} confidence."
    if n > 1:
        text = (
            f"{n} claims are checked at {100 * result.joint_level:.4g} % confidence each, so that "
            f"all verdicts together hold at {percent} confidence."
        )
    alarms = f"{100 * (1 - result.level):g} %"
    text += f" If all claims were true, this check would fail in at most {alarms} of audits."
    if not result.cluster_keys:
        text += f" {INDEPENDENT}"
    return [line(" ".join([text, *stayed(result)]))]
