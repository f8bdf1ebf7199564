"""An audit as test cases and as a summary: the claims that the pairs contradict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from errcomp.caveats import remedies
from errcomp.claims.verdict import lacks_aggregation
from errcomp.claims.view.audit import brackets_note, is_an_error, stayed
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
    """One claim: what it is about, the word that counts, and what there is to know of it."""

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

    One test case for each group that a claim is about, and for each claim about all pairs; a group
    without a claim is none. With several claims what counts is the verdict at the level that holds
    for all of them together (`Audit.joint_level`, Bonferroni), not that of each by itself, which
    the table of the audit shows: a check of many true claims must not fail because they are many.
    A case fails where its verdict is one of `fail_on`, and is skipped where the pairs cannot
    decide the claim. It passes where the claim was not shown to be wrong, which does not show that
    it is right.

    If all claims are true, they together raise a false alarm in at most ``1 - level`` of all
    audits, as far as intervals cover what they promise (docs/intervals.md). Only one end of an
    interval can make a claim overstated, so that half of that is to be expected.

    Parameters
    ----------
    result : Audit
    fail_on : sequence of str
        From "overstated", "understated" and "not verifiable".
    name : str
        Of the suite, and class of its test cases.
    title : str
        Of the summary; names the table by default.

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
        raise InputError(f"an audit fails on {', '.join(CONDITIONS)}, got {unknown or 'nothing'}")
    judged = _claims(result)
    failed = [one for one in judged if one.word in fail_on]
    words = Counter(one.word for one in judged)
    verdict = _sentence(judged, failed)
    heading = title or f"Accuracy audit: {result.source or 'the table given'}"
    lines = [
        *head(heading, verdict),
        *_table(result, judged),
        *_do(judged, failed),
        *_footer(result, judged),
    ]
    return CheckReport(
        name,
        tuple(_case(result, one, fail_on) for one in judged),
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
    found = []
    for row in result.rows:
        # Without keys the row is that of all pairs, whose claims follow.
        if row.verdict.claim is None or not row.key:
            continue
        key = ", ".join(f"{name}={value}" for name, value in row.key.items())
        found.append(
            _Judged(
                f"{row.tool}, {key}" if several and row.tool else key,
                row.verdict,
                row.verdict.together,
                row.n,
                row.caveats,
            )
        )
    overall = {id(row.verdict): row for row in result.overall}
    for verdict in result.claims:
        claim = verdict.claim
        assert claim is not None  # these verdicts are made from claims
        about = ", ".join(f"{name}={value}" for name, value in claim.subset.items()) or "all pairs"
        named = f"{claim.tool}, {about}" if several and claim.tool else about
        row_of_all = overall.get(id(verdict))
        figure = verdict.recomputed
        found.append(
            _Judged(
                f"{named}, claim {claim.shown}" if claim.printed else f"{named}, no figure",
                verdict,
                verdict.together,
                None if figure is None else figure.n,
                () if row_of_all is None else row_of_all.caveats,
            )
        )
    return found


def _case(result: Audit, one: _Judged, fail_on: Sequence[str]) -> Case:
    if one.word in fail_on:
        text = one.verdict.reason
        lines = [text, *(caveat.message for caveat in one.caveats)]
        return Case(one.name, "failure", f"{one.word}: {text}", one.word, "\n".join(lines))
    if one.word == "not verifiable":
        return Case(one.name, "skipped", one.verdict.reason)
    return Case(one.name)


def _sentence(judged: Sequence[_Judged], failed: Sequence[_Judged]) -> str:
    if not judged:
        return "Nothing was checked: no claim is known of these pairs."
    n = f"{len(judged)} claim{'' if len(judged) == 1 else 's'}"
    if not failed:
        decided = sum(one.word != "not verifiable" for one in judged)
        if not decided:
            return f"Nothing could be checked: the pairs decide none of {n}."
        return f"Pass: none of {n} was found wrong; {decided} could be decided."
    parts = []
    for word in dict.fromkeys(one.word for one in failed):
        names = [one.name for one in failed if one.word == word]
        errors = all(is_an_error(one.verdict) for one in failed if one.word == word)
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
    # What failed or was decided comes first, whatever was found: a long table is cut.
    order = {"overstated": 0, "understated": 1, "consistent": 2, "not verifiable": 3}
    for one in sorted(judged, key=lambda one: (order[one.word], order[one.verdict.word])):
        claim, figure = one.verdict.claim, one.verdict.recomputed
        rows.append(
            (
                one.name,
                "" if one.n is None else str(one.n),
                "" if claim is None else claim.shown,
                "" if figure is None else figure.format(),
                one.verdict.shown,
            )
        )
    names = ["claim about", "n", "claimed", f"recomputed [{100 * result.level:g} %]", "verdict"]
    if not rows:
        return []
    brackets = brackets_note(result, (one.verdict for one in judged))
    told = paragraph(brackets) if brackets else []
    return [*table(names, rows, right=(1, 2, 3)), *told]


def _do(judged: Sequence[_Judged], failed: Sequence[_Judged]) -> list[str]:
    """Say what to do: about what failed, and about what could not be decided."""
    if not judged:
        return paragraph("What to do: give a figure to judge, e.g. --claim 5% --aggregation mean.")
    words = {one.word for one in failed}
    lines = []
    if "overstated" in words:
        lines.append(
            "Overstated: look for what changed in the predictor or in the measurements; or quote "
            "the recomputed figure with its interval and say which runs it is about."
        )
    if "understated" in words:
        lines.append("Understated: the predictor is better than claimed. Quote the new figure.")
    lines += [*_undecided(judged), *remedies({one.name: one.caveats for one in failed})]
    return items("What to do:", lines) if lines else paragraph("What to do: nothing.")


def _undecided(judged: Sequence[_Judged]) -> list[str]:
    """Say what would decide the claims that the pairs do not: they did not fail, nor pass."""
    remedy: dict[str, list[str]] = {}
    for one in judged:
        if one.word != "not verifiable":
            continue
        figure = one.verdict.recomputed
        if lacks_aggregation(one.verdict):
            what = (
                "The claim does not say how it was averaged: say which it is with "
                "--aggregation mean (or another average)."
            )
        elif figure is not None and figure.low is None:
            what = "Measure more configurations: there are too few for an interval."
        else:
            what = one.verdict.reason
        remedy.setdefault(what, []).append(one.name)
    lines = [f"Not verifiable ({_listed(names)}): {what}" for what, names in remedy.items()]
    return lines[:_NAMED]


def _listed(names: Sequence[str]) -> str:
    return "; ".join(names[:_NAMED]) + ("; …" if len(names) > _NAMED else "")


def _footer(result: Audit, judged: Sequence[_Judged]) -> list[str]:
    """Say at what level claims are judged, and how often true ones fail."""
    if not any(one.verdict.recomputed for one in judged):
        return []
    percent, n = f"{100 * result.level:g} %", result.judged_together
    text = f"Judged at {percent}."
    if n > 1:
        text = (
            f"{n} claims are judged at {100 * result.joint_level:.4g} % each, so that {percent} "
            "hold for all of them together."
        )
    alarms = f"{100 * (1 - result.level):g} %"
    text += f" If all claims were true, this would fail in at most {alarms} of audits."
    if not result.cluster_keys:
        text += " Every pair counts as independent, as no key says which ones err alike."
    return [line(" ".join([text, *stayed(result)]))]
