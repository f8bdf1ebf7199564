"""Statements about what moves the error, as data, and the one rule that judges them."""

from __future__ import annotations

from typing import Any

import numpy as np

from errcomp.drivers.contrasts import compare
from errcomp.drivers.design import level_text
from errcomp.drivers.inference import MIN_CLUSTERS, share_interval
from errcomp.drivers.matching import Question, Table, match
from errcomp.drivers.results import Contrast, Statement, StatementVerdict, VerdictWord
from errcomp.results import Estimate, format_fraction, format_number

__all__ = ["RULE", "STATEMENTS", "judge"]

_SURVEY = (
    "A Survey of High-Level Modeling and Simulation Methods for Modern Machine Learning Workloads, "
    "second edition"
)

#: What the survey says moves NeuSight's error.
STATEMENTS = (
    Statement(
        "batch-doubling",
        "Doubling the batch often doubles the error.",
        _SURVEY,
        factor="batch",
        quantity="share_doubled",
        stated=0.5,
        reading='"often": in more than half of the pairs; "doubles": APE at least twice as large',
    ),
    Statement(
        "fusion",
        "Fused kernels err more.",
        _SURVEY,
        factor="variant",
        level_a="base",
        level_b="fusion",
        quantity="ape_ratio",
        stated=1.0,
        reading='"more": the geometric mean of APE fused over APE unfused exceeds 1',
    ),
    Statement(
        "amd-training",
        "AMD training errs more than inference.",
        _SURVEY,
        factor="mode",
        level_a="inference",
        level_b="training",
        quantity="ape_ratio",
        stated=1.0,
        reading='"more": the geometric mean of APE in training over APE in inference exceeds 1',
        where={"vendor": "AMD"},
    ),
)

RULE = (
    "supported: the interval lies above the stated value; contradicted: it lies below; "
    "undecided: it contains the stated value; not decidable: the keys are missing, nothing "
    "matches, or fewer than three independent clusters leave no interval"
)


def judge(
    table: Table, statement: Statement, *, level: float, rng: np.random.Generator
) -> StatementVerdict:
    """Judge one statement by the interval of the effect it speaks of.

    Definition: the effect is estimated on configurations that agree in everything else (see
    :func:`errcomp.drivers.contrasts.compare`); ``RULE`` turns its interval into a word. Each
    statement is judged at the level given, uncorrected: the statements were fixed beforehand.
    """
    missing = _missing(table, statement)
    if missing:
        return _undecided(statement, missing)
    question = _question(table, statement)
    contrast = compare(table, question, level=level, rng=rng)
    if contrast is None:
        return _undecided(statement, "no two configurations agree in everything else")
    if statement.quantity == "share_doubled":
        estimate, evidence = _share_doubled(table, question, level=level)
    else:
        estimate, evidence = contrast.effect, {}
    evidence |= _evidence(contrast)
    verdict = _word(estimate, statement.stated)
    why = _why(statement, estimate, contrast)
    return StatementVerdict(statement, verdict, why, RULE, estimate, contrast, evidence)


def _undecided(statement: Statement, why: str) -> StatementVerdict:
    return StatementVerdict(statement, "not decidable", f"{why[0].upper()}{why[1:]}.", RULE)


def _missing(table: Table, statement: Statement) -> str:
    """Say which key or level the table lacks; empty where it has all."""
    needed: dict[str, tuple[str, ...]] = {k: (v,) for k, v in statement.where.items()}
    levels = tuple(v for v in (statement.level_a, statement.level_b) if v)
    needed[statement.factor] = levels
    for key, wanted in needed.items():
        if key not in table.pairs.keys:
            return f"the table has no key {key!r}"
        present = {level_text(v) for v in table.pairs.column(key).tolist()}
        absent = [v for v in wanted if v not in present]
        if absent:
            return f"no row has {key}={absent[0]}"
    values = table.pairs.column(statement.factor)
    if statement.quantity == "share_doubled" and values.dtype.kind not in "iuf":
        return f"{statement.factor!r} does not hold a number in every row"
    return ""


def _question(table: Table, statement: Statement) -> Question:
    if statement.quantity == "share_doubled":
        return Question(statement.factor, fold=2, where=statement.where)
    values = {level_text(v): v for v in table.pairs.column(statement.factor).tolist()}
    a, b = values[statement.level_a], values[statement.level_b]
    return Question(statement.factor, a, b, where=statement.where)


def _share_doubled(
    table: Table, question: Question, *, level: float
) -> tuple[Estimate, dict[str, Any]]:
    part = table.where(question.where)
    matched = None if part is None else match(part, question)
    assert part is not None  # compare() found pairs in the same table
    assert matched is not None
    change = matched.differences(part.outcomes.log_ape)
    # A ratio of exactly 2 counts as doubled whatever the last bit of its logarithm.
    hits = change >= np.log(2.0) - 1e-12
    value, low, high = float(np.mean(hits)), None, None
    method = f"none: fewer than {MIN_CLUSTERS} independent clusters"
    if len(set(matched.clusters)) >= MIN_CLUSTERS:
        value, low, high = share_interval(hits, matched.clusters, level=level)
        method = "Clopper-Pearson at the effective sample size of the clusters"
    estimate = Estimate(
        "share_doubled",
        value,
        low=low,
        high=high,
        level=None if low is None else level,
        method=method,
        n=matched.n,
        definition="share of matched pairs whose APE at least doubled",
    )
    _, plain_low, plain_high = share_interval(hits, range(matched.n), level=level)
    return estimate, {
        "n_doubled": int(hits.sum()),
        "share_grew": float(np.mean(change > 0)),
        "share_low_if_pairs_were_independent": plain_low,
        "share_high_if_pairs_were_independent": plain_high,
    }


def _evidence(contrast: Contrast) -> dict[str, Any]:
    effect = contrast.effect
    return {
        "ape_ratio": effect.value,
        "ape_ratio_low": effect.low,
        "ape_ratio_high": effect.high,
        "signed_log": contrast.effect_signed.value,
        "signed_log_low": contrast.effect_signed.low,
        "signed_log_high": contrast.effect_signed.high,
        "p_value": contrast.p_value,
        "p_check": contrast.p_check,
        "matched_mean_ape_a": contrast.ape_a,
        "matched_mean_ape_b": contrast.ape_b,
        "naive_mean_ape_a": contrast.naive_a,
        "naive_mean_ape_b": contrast.naive_b,
    }


def _word(estimate: Estimate, stated: float) -> VerdictWord:
    if estimate.low is None or estimate.high is None:
        return "not decidable"
    if estimate.low > stated:
        return "supported"
    return "contradicted" if estimate.high < stated else "undecided"


def _why(statement: Statement, estimate: Estimate, contrast: Contrast) -> str:
    on = (
        f"{contrast.n_pairs} matched pairs, {contrast.clusters} independent {contrast.cluster_key}s"
    )
    if statement.quantity == "share_doubled":
        text = (
            f"APE at least doubled in {estimate.format()} of the pairs (read as: more than "
            f"{format_fraction(statement.stated)}); on average it changed by a factor of "
            f"{contrast.effect.format()}"
        )
    else:
        text = (
            f"APE changed by a factor of {estimate.format()} (read as: more than "
            f"{format_number(statement.stated)})"
        )
    text = f"{text}; {on}"
    if contrast.naive_a is not None and contrast.naive_b is not None:
        text += (
            f"; mean APE of all rows differs by {100 * (contrast.naive_b - contrast.naive_a):+.2f} "
            f"points, of matched ones by {100 * (contrast.ape_b - contrast.ape_a):+.2f}"
        )
    note = f" ({contrast.note})" if contrast.note else ""
    return f"{text}{note}."
