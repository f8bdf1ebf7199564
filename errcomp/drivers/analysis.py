"""The public entry: from pairs to contrasts, regressions and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from errcomp.drivers.contrasts import compare, correct
from errcomp.drivers.design import MAX_LEVELS, choose_factors, level_text, merged_devices
from errcomp.drivers.inference import check_level
from errcomp.drivers.matching import Table, questions_for
from errcomp.drivers.outcomes import outcomes_of
from errcomp.drivers.regression import regress
from errcomp.drivers.results import Contrast, DriversResult, Regression
from errcomp.drivers.statements import STATEMENTS, judge
from errcomp.errors import InputError, MissingExtraError, describe_names
from errcomp.metrics.intervals import check_options
from errcomp.results import Caveat
from errcomp.tables import Pairs

__all__ = ["error_drivers"]


def error_drivers(
    pairs: Any,
    *,
    tool: str | None = None,
    factors: str | Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> DriversResult:
    r"""Find which factors move the error of one tool, by how much, with intervals.

    .. math:: d_i = \ln \mathrm{APE}_i(b) - \ln \mathrm{APE}_i(a), \quad
              \widehat{\mathrm{ratio}} = \exp\bigl(\mathrm{mean}_g\,\mathrm{mean}_{i \in g}\, d_i
              \bigr)

    Definition: configurations i that agree in everything but one factor are compared at its levels
    a and b; the effect is the geometric mean of the ratio of their APEs, where each independent
    device g counts once, with Student's t over devices. The same is done for points of APE and for
    ln(predicted / measured). Tests of all contrasts form one family, corrected by Holm (primary)
    and Benjamini-Hochberg. A regression on all factors at once follows, where statsmodels is
    installed, and verdicts on three published statements.

    Valid for the devices and models in the table and others like them. Misleads where few devices
    are behind a contrast (``clusters`` says how many; below three there is no interval) and where
    matched configurations are not the ones of interest.

    Parameters
    ----------
    pairs : Pairs, dataframe or mapping of columns
        Keys device, model, mode, batch, variant, vendor, in_training and devices are known; other
        labels with at most eight values are factors too. Predictions must be positive.
    tool : str, optional
        The tool to explain; the subject of the table by default.
    factors : str or sequence of str, optional
        Keys to look at, instead of all that can be factors.
    level : float
        Nominal coverage of the intervals, from 0.917 (see ``errcomp.drivers.inference``).
    seed : int
        For permutation tests with more than 16 clusters; everything else is exact.

    Returns
    -------
    DriversResult

    Raises
    ------
    InputError
        The table holds several tools and none is named, a factor is unusable, the level is too
        low, the seed negative, no factor is left, or a prediction is not positive.

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
    2.085 [1.85, 2.351], n=4
    """
    check_level(level)
    check_options(seed=seed)
    pairs = pairs if isinstance(pairs, Pairs) else Pairs(pairs)
    table = _table_of(pairs, tool, [factors] if isinstance(factors, str) else factors)
    rng = np.random.default_rng(seed)
    asked = questions_for(table)
    answers = [compare(table, question, level=level, rng=rng) for question in asked]
    contrasts = correct([answer for answer in answers if answer is not None])
    caveats = [*_data_caveats(table), *_unmatched(table.factors, contrasts)]
    regressions, note = _regressions(table, level)
    return DriversResult(
        tool=_tool_name(table.pairs),
        n=table.pairs.n,
        level=level,
        seed=seed,
        factors=table.factors,
        contrasts=contrasts,
        regressions=regressions,
        statements=tuple(judge(table, s, level=level, rng=rng) for s in STATEMENTS),
        dropped=pairs.dropped,
        caveats=(*caveats, *note),
    )


def _table_of(pairs: Pairs, tool: str | None, factors: Sequence[str] | None) -> Table:
    if "tool" in pairs.keys:
        tools = sorted({str(v) for v in pairs.column("tool").tolist()})
        chosen = tool or pairs.subject or (tools[0] if len(tools) == 1 else None)
        if chosen is None:
            raise InputError(
                f"the table holds several tools ({', '.join(tools)}): name one with tool=, because "
                "errors of different tools have different drivers"
            )
        pairs = pairs.where({"tool": chosen})
    elif tool is not None:
        raise InputError(f"tool={tool!r} was asked for, but the table has no key 'tool'")
    chosen_factors = choose_factors(pairs, factors)
    if not chosen_factors:
        raise InputError(
            "no key of the table can be a factor: each has one value, gaps, too many values "
            f"(more than {MAX_LEVELS}), is a device or model, or holds numbers, which are "
            "factors only where error_drivers(factors=[...]) names them. "
            f"Keys: {describe_names(pairs.keys)}"
        )
    return Table(pairs, outcomes_of(pairs), chosen_factors, merged_devices(pairs))


def _tool_name(pairs: Pairs) -> str | None:
    return level_text(pairs.column("tool")[0]) if "tool" in pairs.keys else None


def _data_caveats(table: Table) -> list[Caveat]:
    found = []
    outcomes = table.outcomes
    if outcomes.n_floored:
        found.append(
            Caveat(
                "errors-near-zero",
                f"{outcomes.n_floored} of {table.pairs.n} errors lie below {outcomes.floor:.2g} "
                "(one hundredth of the median) and count as that in ratios.",
                {"n": outcomes.n_floored, "floor": outcomes.floor},
            )
        )
    groups: dict[str, list[str]] = {}
    for device, first in table.merged.items():
        groups.setdefault(first, []).append(device)
    return found + [
        Caveat(
            "same-predictions",
            f"{' and '.join(sorted(names))} have the same prediction in every shared "
            "configuration: they count as one independent device.",
            {"devices": sorted(names)},
        )
        for names in groups.values()
        if len(names) > 1
    ]


def _unmatched(factors: Sequence[str], contrasts: Sequence[Contrast]) -> list[Caveat]:
    answered = {contrast.factor for contrast in contrasts}
    return [
        Caveat(
            "no-matched-configurations",
            f"No two configurations differ in {factor} and agree in everything else: its effect "
            "cannot be told apart from theirs by matching.",
            {"factor": factor},
        )
        for factor in factors
        if factor not in answered
    ]


def _regressions(table: Table, level: float) -> tuple[tuple[Regression, ...], list[Caveat]]:
    """Contrasts stand without the regression: what keeps it from running becomes a caveat."""
    try:
        return regress(table, level=level), []
    except MissingExtraError as error:
        return (), [Caveat("no-regression", f"{error}.", {"reason": "missing extra"})]
    except InputError as error:
        return (), [Caveat("no-regression", str(error), {"reason": "too few rows"})]
