"""Drivers of error: which factors change it, by how much, and published statements about it.

Contrasts and verdicts need only NumPy and SciPy; the regression needs the extra ``drivers``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.datasets.inputs import pairs_in_memory
from errcomp.drivers.inference import (
    MIN_CLUSTERS,
    Cells,
    EffectTest,
    between_test,
    check_level,
    cluster_means,
    corrected,
    effect_estimate,
    mean_test,
    share_interval,
)
from errcomp.drivers.matching import (
    MAX_LEVELS,
    Matched,
    Question,
    Table,
    choose_factors,
    level_text,
    match,
    merged_devices,
    outcomes_of,
    questions_for,
)
from errcomp.drivers.regression import regress
from errcomp.drivers.results import (
    Aliased,
    Contrast,
    Design,
    DriversResult,
    Regression,
    RegressionTerm,
    Statement,
    StatementVerdict,
    VerdictWord,
)
from errcomp.errors import InputError, MissingExtraError, describe_names
from errcomp.metrics.intervals import check_options
from errcomp.results import Caveat, Estimate, format_fraction, format_number
from errcomp.stats.significance import benjamini_hochberg, holm
from errcomp.tables import Missing, Pairs, Zeros

__all__ = [
    "STATEMENTS",
    "Aliased",
    "Contrast",
    "DriversResult",
    "Regression",
    "RegressionTerm",
    "Statement",
    "StatementVerdict",
    "benjamini_hochberg",
    "error_drivers",
    "holm",
]

_DEFINITIONS = {
    "ape_ratio": "geometric mean over matched configurations of APE at level b divided by APE at "
    "level a",
    "ape_points": "mean over matched configurations of APE at level b minus APE at level a",
    "signed_log": "mean over matched configurations of ln(predicted / measured) at level b minus "
    "ln(predicted / measured) at level a",
}
_WEIGHTS = {
    "paired": "every cluster counted once",
    "between": "configurations weighted by how many devices ran them at each of the two levels",
}


def _cells(
    table: Table, matched: Matched, values: NDArray[np.float64]
) -> tuple[Cells, NDArray[np.float64]]:
    """Mean of each device in each configuration, with the codes of both."""
    labels = table.unit_labels(str(matched.between))
    by_cell: dict[tuple[int, bool, str], list[float]] = {}
    for i, sides in enumerate(zip(matched.rows_a, matched.rows_b, strict=True)):
        for is_b, rows in zip((False, True), sides, strict=True):
            for row in rows.tolist():
                by_cell.setdefault((i, is_b, labels[row]), []).append(float(values[row]))
    # A device merged with a device of the other level stays separate: the two are compared.
    names = {name: code for code, name in enumerate(sorted({key[1:] for key in by_cell}))}
    cells = Cells(
        configuration=np.array([i for i, _, _ in by_cell], dtype=np.int64),
        unit=np.array([names[key[1:]] for key in by_cell], dtype=np.int64),
        is_b=np.array([is_b for _, is_b, _ in by_cell], dtype=bool),
    )
    return cells, np.array([np.mean(group) for group in by_cell.values()])


def compare(
    table: Table, question: Question, *, level: float, rng: np.random.Generator
) -> Contrast | None:
    r"""Compute one contrast; None if no configuration occurs at both levels.

    .. math:: d_i = y_i(b) - y_i(a), \quad \bar d_g = \mathrm{mean}_{i \in g}\, d_i, \quad
              \hat\delta = \mathrm{mean}_g\, \bar d_g

    Definition: y is ln APE (reported as the ratio :math:`e^{\hat\delta}`), APE, or
    ln(predicted / measured); i runs over configurations that agree in all matched keys, g over
    independent devices (or models). Student's t on the cluster means is the primary analysis, and
    the signed-rank test the check; :mod:`errcomp.drivers.inference` gives the reasons. A factor
    with one level per device (vendor, in_training) is compared between devices. Intervals of ratios
    and signed effects cover as often as promised. Differences in points of APE are skewed if
    devices differ much, and their 95 % intervals then cover in about 90 % of cases: prefer the
    ratio.

    Misleads where the matched configurations are not those of interest: ``naive_a`` and
    ``naive_b`` are the means of all rows, ``not_matched_on`` the keys that were not held equal.
    """
    part = table.where(question.where)
    matched = None if part is None else match(part, question)
    if part is None or matched is None:
        return None
    sides = {
        name: _test(part, matched, values, level=level, rng=rng)
        for name, values in (
            ("ape_ratio", part.outcomes.log_ape),
            ("ape_points", part.outcomes.ape),
            ("signed_log", part.outcomes.signed),
        )
    }
    ratio, signed = sides["ape_ratio"], sides["signed_log"]
    clusters, cluster_key = _cluster_count(part, matched)
    design: Design = "between" if matched.between else "paired"
    effects = {
        figure: effect_estimate(
            figure,
            (test.value, test.low, test.high),
            level=level,
            method=test.method,
            n=matched.n,
            definition=f"{_DEFINITIONS[figure]}, {_WEIGHTS[design]}",
        )
        for figure, test in sides.items()
    }
    return Contrast(
        question.name,
        question.factor,
        *question.labels,
        where=dict(question.where),
        design=design,
        n_pairs=matched.n,
        clusters=clusters,
        cluster_key=cluster_key,
        matched_on=matched.matched_on,
        not_matched_on=matched.not_matched_on,
        ape_a=_matched_ape(part, matched.rows_a),
        ape_b=_matched_ape(part, matched.rows_b),
        naive_a=_naive_ape(part, question, question.level_a),
        naive_b=_naive_ape(part, question, question.level_b),
        effect=effects["ape_ratio"],
        effect_points=effects["ape_points"],
        effect_signed=effects["signed_log"],
        p_value=ratio.p_value,
        p_check=ratio.p_check,
        p_signed=signed.p_value,
        p_signed_check=signed.p_check,
        note=_note(part, matched, ratio),
    )


def _test(
    table: Table,
    matched: Matched,
    values: NDArray[np.float64],
    *,
    level: float,
    rng: np.random.Generator,
) -> EffectTest:
    if matched.between:
        cells, averaged = _cells(table, matched, values)
        return between_test(cells, averaged, level=level, rng=rng)
    means = cluster_means(matched.differences(values), matched.clusters)
    return mean_test(means, level=level, rng=rng)


def _cluster_count(table: Table, matched: Matched) -> tuple[int, str]:
    if not matched.between:
        return len(set(matched.clusters)), matched.cluster_key
    cells, _ = _cells(table, matched, table.outcomes.ape)
    return min(cells.n_units), matched.between


def _matched_ape(table: Table, rows: Sequence[NDArray[np.int64]]) -> float:
    return float(np.mean([table.outcomes.ape[r].mean() for r in rows]))


def _naive_ape(table: Table, question: Question, wanted: object) -> float | None:
    """Mean APE of all rows at one level; None for a multiple of a number."""
    if question.fold is not None:
        return None
    values = table.pairs.column(question.factor).tolist()
    return float(table.outcomes.ape[[i for i, v in enumerate(values) if v == wanted]].mean())


def _note(table: Table, matched: Matched, test: EffectTest) -> str:
    parts = []
    if test.low is None:
        parts.append(f"no interval: {test.method.removeprefix('none: ')}")
    if not matched.between and matched.cluster_key == "model":
        parts.append("pairs are clustered by model, so the interval applies only to these devices")
    if not matched.between and matched.cluster_key == "pair":
        parts.append("no device or model to cluster by: pairs count as independent")
    if matched.stricter is not None:
        parts.append(_stricter_note(table, matched.stricter))
    elif "batch" in matched.not_matched_on:
        parts.append("batch sizes may differ within a pair")
    if "device" in table.pairs.keys:
        parts.append(_merged_note(table, matched))
    return "; ".join(filter(None, parts))


def _stricter_note(table: Table, stricter: Matched) -> str:
    means = cluster_means(stricter.differences(table.outcomes.log_ape), stricter.clusters)
    ratio = format_number(math.exp(float(np.mean(means))))
    pairs = f"{stricter.n} pair{'' if stricter.n == 1 else 's'}"
    clusters = f"{len(means)} independent cluster{'' if len(means) == 1 else 's'}"
    return (
        f"batch sizes may differ within a pair (with equal batch sizes the ratio is {ratio}, but "
        f"{pairs} in {clusters} {'is' if stricter.n == 1 else 'are'} too few for an interval)"
    )


def _merged_note(table: Table, matched: Matched) -> str:
    used = np.concatenate([*matched.rows_a, *matched.rows_b])
    names = {str(table.pairs.column("device")[int(i)]) for i in used}
    same = [" and ".join(group) for group in table.counted_as_one(sorted(names))]
    if not same:
        return ""
    verb = "each count" if len(same) > 1 else "count"
    return f"{', '.join(same)} {verb} as one device, because their predictions are equal"


def correct(contrasts: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Fill in the corrected p-values: one family of all contrasts and both questions.

    The family is the ratio of APE and the signed log error of every contrast with a test.
    Percentage points answer the first question on another scale and are not tested again.
    """
    adjusted = corrected([p for c in contrasts for p in (c.p_value, c.p_signed)])
    return tuple(
        replace(
            contrast,
            p_holm=size[0],
            p_bh=size[1],
            p_signed_holm=signed[0],
            p_signed_bh=signed[1],
        )
        for contrast, size, signed in zip(contrasts, adjusted[::2], adjusted[1::2], strict=True)
    )


_SURVEY = (
    "A Survey of High-Level Modeling and Simulation Methods for Modern Machine Learning Workloads, "
    "second edition"
)

#: The tool that the statements are about, and what the survey says about the drivers of its error.
_SUBJECT = "neusight"
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
        "Fused kernels have larger errors.",
        _SURVEY,
        factor="variant",
        level_a="base",
        level_b="fusion",
        quantity="ape_ratio",
        stated=1.0,
        reading='"larger": the geometric mean of APE fused / APE unfused exceeds 1',
    ),
    Statement(
        "amd-training",
        "On AMD devices, training has larger errors than inference.",
        _SURVEY,
        factor="mode",
        level_a="inference",
        level_b="training",
        quantity="ape_ratio",
        stated=1.0,
        reading='"larger": the geometric mean of APE in training / APE in inference exceeds 1',
        where={"vendor": "AMD"},
    ),
)

RULE = (
    "supported: the whole interval is above the stated value; contradicted: the whole interval is "
    "below the stated value; undecided: the interval contains the stated value; not decidable: "
    "keys are missing, no configurations match, or there are too few independent clusters for an "
    "interval (fewer than three)"
)


def judge(
    table: Table, statement: Statement, *, level: float, rng: np.random.Generator
) -> StatementVerdict:
    """Check a statement with the interval of its effect.

    Definition: the effect is estimated on configurations that agree in everything else (see
    :func:`errcomp.drivers.compare`); ``RULE`` gives the verdict. The level is not corrected for the
    number of statements, because the statements were fixed beforehand.
    """
    if missing := _missing(table, statement):
        return _undecided(statement, missing)
    question = _question(table, statement)
    contrast = compare(table, question, level=level, rng=rng)
    if contrast is None:
        return _undecided(statement, f"no two configurations differ in {statement.factor} alone")
    if statement.quantity == "share_doubled":
        estimate, evidence = _share_doubled(table, question, level=level)
    else:
        estimate, evidence = contrast.effect, {}
    evidence |= _evidence(contrast)
    verdict = _verdict_word(estimate, statement.stated)
    why = _reason(statement, estimate, contrast)
    return StatementVerdict(statement, verdict, why, RULE, estimate, contrast, evidence)


def _undecided(statement: Statement, why: str) -> StatementVerdict:
    return StatementVerdict(statement, "not decidable", f"{why[0].upper()}{why[1:]}.", RULE)


def _missing(table: Table, statement: Statement) -> str:
    """Say which key or level the table lacks; empty if it has all."""
    needed: dict[str, tuple[str, ...]] = {k: (v,) for k, v in statement.where.items()}
    needed[statement.factor] = tuple(v for v in (statement.level_a, statement.level_b) if v)
    for key, wanted in needed.items():
        if key not in table.pairs.keys:
            return f"the table has no key {key!r}"
        present = {level_text(v) for v in table.pairs.column(key).tolist()}
        if absent := [v for v in wanted if v not in present]:
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
    # A ratio of exactly 2 counts as doubled, whatever the last bit of its logarithm.
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


def _verdict_word(estimate: Estimate, stated: float) -> VerdictWord:
    if estimate.low is None or estimate.high is None:
        return "not decidable"
    if estimate.low > stated:
        return "supported"
    return "contradicted" if estimate.high < stated else "undecided"


def _reason(statement: Statement, estimate: Estimate, contrast: Contrast) -> str:
    if statement.quantity == "share_doubled":
        text = (
            f"APE at least doubled in {estimate.format()} of the pairs (the statement is taken to "
            f"mean more than {format_fraction(statement.stated)}); on average APE changed by a "
            f"factor of {contrast.effect.format()}"
        )
    else:
        text = (
            f"APE changed by a factor of {estimate.format()} (the statement is taken to mean more "
            f"than {format_number(statement.stated)})"
        )
    text += f"; {contrast.n_pairs} matched pairs"
    text += f", {contrast.clusters} independent {contrast.cluster_key}s"
    if contrast.naive_a is not None and contrast.naive_b is not None:
        text += (
            f"; mean APE differs by {100 * (contrast.naive_b - contrast.naive_a):+.2f} points over "
            f"all rows, and by {100 * (contrast.ape_b - contrast.ape_a):+.2f} points over matched "
            "rows"
        )
    note = f" ({contrast.note})" if contrast.note else ""
    return f"{text}{note}."


def error_drivers(
    pairs: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Missing = "raise",
    tool: str | None = None,
    factors: str | Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> DriversResult:
    r"""Find which factors change the error of one tool, and by how much, with intervals.

    .. math:: d_i = \ln \mathrm{APE}_i(b) - \ln \mathrm{APE}_i(a), \quad
              \widehat{\mathrm{ratio}} = \exp\bigl(\mathrm{mean}_g\,\mathrm{mean}_{i \in g}\, d_i
              \bigr)

    Definition: configurations i that agree in everything but one factor are compared at its levels
    a and b. The effect is the geometric mean of the ratio of their APEs, where each independent
    device g counts once, with Student's t over devices. The same is done for points of APE and for
    ln(predicted / measured). Tests of all contrasts form one family, corrected by Holm (primary)
    and Benjamini-Hochberg. The result also has a regression on all factors at once, if statsmodels
    is installed, and for NeuSight verdicts on three published statements.

    Valid for the devices and models in the table and others like them. Misleads where a contrast
    has few devices (``clusters``; below three there is no interval), and where matched
    configurations are not those of interest.

    Parameters
    ----------
    pairs : path, dataframe, mapping of columns or Pairs
        Keys device, model, mode, batch, variant, vendor, in_training and devices are known; other
        labels are factors too. A factor of labels, or `devices`, has at most eight values.
        Predictions must be positive.
    predicted, measured, unit, zeros, missing
        How to read the table: see `errcomp.datasets.inputs.pairs_from`.
    tool : str, optional
        The tool to explain; the subject of the table by default.
    factors : str or sequence of str, optional
        Keys to compare; by default all that can be factors.
    level : float
        Nominal coverage of the intervals, from 0.917 (see ``errcomp.drivers.inference``).
    seed : int
        For permutation tests with more than 65,536 permutations (paired: more than 16 clusters);
        everything else is exact.

    Returns
    -------
    DriversResult

    Raises
    ------
    InputError
        The table holds several tools and none is named, a factor is unusable, the level is too
        low, the seed is negative, no factor is left, or a prediction is not positive.

    References
    ----------
    Ibragimov and Müller (2010), "t-Statistic Based Correlation and Heterogeneity Robust
    Inference", Journal of Business & Economic Statistics 28(4), 453-468.

    Examples
    --------
    >>> measured = [100.0] * 8
    >>> predicted = [110.0, 122.0, 108.0, 115.0, 105.0, 111.0, 112.0, 125.0]
    >>> table = {"predicted": predicted, "measured": measured}
    >>> table |= {"device": list("AABBCCDD"), "variant": ["base", "fusion"] * 4}
    >>> contrast = error_drivers(table).contrasts[0]
    >>> contrast.name, contrast.n_pairs, contrast.clusters
    ('variant: fusion vs base', 4, 4)
    >>> print(contrast.effect)
    2.09 [1.85, 2.35], n=4
    """
    check_level(level)
    check_options(seed=seed)
    pairs = pairs_in_memory(
        pairs, predicted=predicted, measured=measured, unit=unit, zeros=zeros, missing=missing
    )
    table = _table_of(pairs, tool, [factors] if isinstance(factors, str) else factors)
    rng = np.random.default_rng(seed)
    answers = (compare(table, asked, level=level, rng=rng) for asked in questions_for(table))
    contrasts = correct([answer for answer in answers if answer is not None])
    regressions, note = _regressions(table, level)
    named = level_text(table.pairs.column("tool")[0]) if "tool" in table.pairs.keys else None
    statements = STATEMENTS if named is not None and named.casefold() == _SUBJECT else ()
    return DriversResult(
        tool=named,
        n=table.pairs.n,
        level=level,
        seed=seed,
        factors=table.factors,
        contrasts=contrasts,
        regressions=regressions,
        statements=tuple(judge(table, s, level=level, rng=rng) for s in statements),
        dropped=pairs.dropped,
        caveats=(*_data_caveats(table), *_unmatched(table.factors, contrasts), *note),
        source=pairs.source,
    )


def _table_of(pairs: Pairs, tool: str | None, factors: Sequence[str] | None) -> Table:
    if "tool" in pairs.keys:
        tools = sorted({str(v) for v in pairs.column("tool").tolist()})
        chosen = tool or pairs.subject or (tools[0] if len(tools) == 1 else None)
        if chosen is None:
            raise InputError(
                f"the table holds several tools ({', '.join(tools)}), and errors of different "
                "tools have different drivers. Name one with tool=."
            )
        pairs = pairs.where({"tool": chosen})
    elif tool is not None:
        raise InputError(f"got tool={tool!r}, but the table has no key 'tool'. Leave it out.")
    chosen_factors = choose_factors(pairs, factors)
    if not chosen_factors:
        raise InputError(
            "no key of the table can be a factor. A factor must have a value in every row and "
            f"2 to {MAX_LEVELS} different values; it must not hold numbers, or be the device or "
            "the model. To use a key with numbers, name it in Python: error_drivers(table, "
            "factors=[...]). Keys: "
            f"{describe_names(pairs.keys)}"
        )
    return Table(pairs, outcomes_of(pairs), chosen_factors, merged_devices(pairs))


def _data_caveats(table: Table) -> list[Caveat]:
    caveats = []
    outcomes = table.outcomes
    if outcomes.n_floored:
        caveats.append(
            Caveat(
                "errors-near-zero",
                f"{outcomes.n_floored} of {table.pairs.n} errors are below "
                f"{format_fraction(outcomes.floor)} (1 % of the median error) and count as this "
                "value in ratios.",
                {"n": outcomes.n_floored, "floor": outcomes.floor},
            )
        )
    return caveats + [
        Caveat(
            "same-predictions",
            f"{' and '.join(sorted(names))} have the same prediction in every common "
            "configuration: they count as one independent device.",
            {"devices": sorted(names)},
        )
        for names in table.counted_as_one(table.merged)
    ]


def _unmatched(factors: Sequence[str], contrasts: Sequence[Contrast]) -> list[Caveat]:
    answered = {contrast.factor for contrast in contrasts}
    return [
        Caveat(
            "no-matched-configurations",
            f"No two configurations differ in {factor} alone: matching cannot separate its effect "
            "from the effects of other keys.",
            {"factor": factor},
        )
        for factor in factors
        if factor not in answered
    ]


def _regressions(table: Table, level: float) -> tuple[tuple[Regression, ...], list[Caveat]]:
    """Return the regressions, or a caveat with the reason: contrasts do not need them."""
    try:
        return regress(table, level=level), []
    except MissingExtraError as error:
        return (), [Caveat("no-regression", f"{error}.", {"reason": "missing extra"})]
    except InputError as error:
        return (), [Caveat("no-regression", str(error), {"reason": "too few rows"})]
