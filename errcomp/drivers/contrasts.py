"""Contrasts: configurations that agree in everything else, compared across a factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from errcomp.drivers.between import Cells, between_test
from errcomp.drivers.inference import EffectTest, cluster_means, mean_test
from errcomp.drivers.matching import match
from errcomp.drivers.results import Contrast, Design
from errcomp.results import Estimate, format_number
from errcomp.stats.multiple import benjamini_hochberg, holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.drivers.matching import Matched, Question, Table

__all__ = ["compare", "correct"]

_DEFINITIONS = {
    "ape_ratio": "geometric mean of APE(b) / APE(a) over matched configurations",
    "ape_points": "mean of APE(b) - APE(a) over matched configurations",
    "signed_log": "mean of ln(predicted / measured) at b minus that at a over matched "
    "configurations",
}
_WEIGHTS = {
    "paired": "every cluster counted once",
    "between": "configurations weighted by how many devices ran them at both levels",
}


def _cells(
    table: Table, matched: Matched, values: NDArray[np.float64]
) -> tuple[Cells, NDArray[np.float64]]:
    """Mean of each device in each configuration, with the codes that say which is which."""
    labels = table.unit_labels(str(matched.between))
    found: dict[tuple[int, bool, str], list[float]] = {}
    for i, sides in enumerate(zip(matched.rows_a, matched.rows_b, strict=True)):
        for is_b, rows in zip((False, True), sides, strict=True):
            for row in rows.tolist():
                found.setdefault((i, is_b, labels[row]), []).append(float(values[row]))
    # A device that was merged with one of the other level stays apart: it is compared with it.
    names = {name: code for code, name in enumerate(sorted({key[1:] for key in found}))}
    cells = Cells(
        configuration=np.array([i for i, _, _ in found], dtype=np.int64),
        unit=np.array([names[key[1:]] for key in found], dtype=np.int64),
        is_b=np.array([is_b for _, is_b, _ in found], dtype=bool),
    )
    return cells, np.array([np.mean(group) for group in found.values()])


def compare(
    table: Table, question: Question, *, level: float, rng: np.random.Generator
) -> Contrast | None:
    r"""Answer one question; None where no configuration occurs at both levels.

    .. math:: d_i = y_i(b) - y_i(a), \quad \bar d_g = \mathrm{mean}_{i \in g}\, d_i, \quad
              \hat\delta = \mathrm{mean}_g\, \bar d_g

    Definition: y is ln APE (reported as the ratio :math:`e^{\hat\delta}`), APE, or
    ln(predicted / measured); i runs over configurations that agree on all keys matched on, g over
    independent devices (or models). Student's t on the cluster means is the primary analysis and
    the signed-rank test the check; :mod:`errcomp.drivers.inference` gives the reasons. A factor
    that each device has once (vendor, in_training) is compared between devices, see
    :mod:`errcomp.drivers.between`. Ratios and signed effects cover as promised; differences in
    points of APE are skewed where devices differ much, and their 95 % intervals then cover in
    about 90 % of cases: prefer the ratio.

    Misleads where the matched configurations are not those of interest: ``naive_a`` and
    ``naive_b`` show what all rows say, ``not_matched_on`` what was not held equal.
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
        effect=_estimate("ape_ratio", "ratio", ratio, level, matched.n, design),
        effect_points=_estimate(
            "ape_points", "fraction", sides["ape_points"], level, matched.n, design
        ),
        effect_signed=_estimate("signed_log", "log", signed, level, matched.n, design),
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
    """Mean APE of all rows at one level; a multiple of a number has no rows of its own."""
    if question.fold is not None:
        return None
    values = table.pairs.column(question.factor).tolist()
    return float(table.outcomes.ape[[i for i, v in enumerate(values) if v == wanted]].mean())


def _estimate(
    figure: str, unit: str, test: EffectTest, level: float, n: int, design: Design
) -> Estimate:
    def scale(value: float) -> float:
        return math.exp(value) if unit == "ratio" else value

    return Estimate(
        figure,
        scale(test.value),
        low=None if test.low is None else scale(test.low),
        high=None if test.high is None else scale(test.high),
        level=None if test.low is None else level,
        method=test.method,
        n=n,
        unit=unit,
        definition=f"{_DEFINITIONS[figure]}, {_WEIGHTS[design]}",
    )


def _note(table: Table, matched: Matched, test: EffectTest) -> str:
    parts = []
    if test.low is None:
        parts.append(f"no interval: {test.method.removeprefix('none: ')}")
    if not matched.between and matched.cluster_key == "model":
        parts.append("clustered by model: the interval takes the devices as given")
    if not matched.between and matched.cluster_key == "pair":
        parts.append("no device or model to cluster by: pairs counted as independent")
    if matched.stricter is not None:
        parts.append(_stricter_note(table, matched.stricter))
    elif "batch" in matched.not_matched_on:
        parts.append("batch not matched")
    if "device" in table.pairs.keys:
        merged = _merged_note(table, matched)
        parts += [merged] if merged else []
    return "; ".join(parts)


def _stricter_note(table: Table, stricter: Matched) -> str:
    means = cluster_means(stricter.differences(table.outcomes.log_ape), stricter.clusters)
    ratio = format_number(math.exp(float(np.mean(means))))
    return (
        f"batch not matched (with equal batch: ratio {ratio}, but too few for an interval: "
        f"pairs {stricter.n}, independent clusters {len(means)})"
    )


def _merged_note(table: Table, matched: Matched) -> str:
    used = np.concatenate([*matched.rows_a, *matched.rows_b])
    names = {str(table.pairs.column("device")[int(i)]) for i in used}
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(table.merged.get(name, name), []).append(name)
    same = [" and ".join(group) for group in groups.values() if len(group) > 1]
    return f"same predictions, counted as one device: {'; '.join(same)}" if same else ""


def correct(contrasts: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Fill in the corrected p values: one family, all contrasts and both questions each.

    The family is the ratio of APE and the signed log error of every contrast that has a test.
    Percentage points answer the first question on another scale and are not tested again.
    """
    keys = ("p_value", "p_signed")
    slots = [(i, k) for i, c in enumerate(contrasts) for k in keys if getattr(c, k) is not None]
    plain = [float(getattr(contrasts[i], k)) for i, k in slots]
    by_holm = dict(zip(slots, holm(plain), strict=True))
    by_bh = dict(zip(slots, benjamini_hochberg(plain), strict=True))
    return tuple(
        replace(
            contrast,
            p_holm=by_holm.get((i, "p_value")),
            p_bh=by_bh.get((i, "p_value")),
            p_signed_holm=by_holm.get((i, "p_signed")),
            p_signed_bh=by_bh.get((i, "p_signed")),
        )
        for i, contrast in enumerate(contrasts)
    )
