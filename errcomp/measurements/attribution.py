"""Which part of a MAPE is whose: measurements, kernels, composition, load, or the tool itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from errcomp.errors import InputError, describe_names
from errcomp.measurements.noise import MOST_LOG
from errcomp.measurements.results import BudgetPart, ErrorBudget, NotLookedFor

if TYPE_CHECKING:
    from errcomp.measurements import Findings
    from errcomp.measurements.noise import Repeats
    from errcomp.measurements.results import Floor
    from errcomp.tables import Kernels, Pairs
    from errcomp.tables.memory.measurements import Measurements

__all__ = ["CAUSES", "budget"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Each cause and what it says.
CAUSES: Mapping[str, str] = {
    "copies": "rows that state a measurement again",
    "noise": "repeats of one configuration differ",
    "hidden": "rows with equal keys and different values",
    "load": "the error changes with the load",
    "kernels": "the predicted sum of kernels differs from the measured one",
    "composition": "the sum of kernels differs from the total",
    "factor": "all predictions are off by the same factor",
    "rest": "errors of the tool that no column explains",
}
#: Words in the name of a column that says how loaded a system was.
_LOAD = frozenset(
    ("concurrency", "rate", "qps", "rps", "load", "utilization", "utilisation", "inflight", "queue")
)
#: Words in the name of a column with the sum of a prediction's or a measurement's kernels.
_KERNELS = frozenset(("kernel", "kernels", "operator", "operators", "op", "ops", "step", "steps"))
#: Fewest rows for a budget, and fewest clusters to draw whole.
_LEAST, _CLUSTERS = 10, 5
#: Values of the load that get an effect each; more are put into as many classes.
_LEVELS = 8
#: Values of a setting that get an effect each.
_SETTINGS = 12
#: The load matters where chance would do as well in fewer tables than this.
_CHANCE = 0.01
_SHUFFLES = 400
#: Tables drawn for the intervals, and rows of each.
_DRAWS, _MOST = 200, 4_000
#: Of the intervals, and of the draws in which the largest cause is the largest.
LEVEL = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The parts of the logarithm of each error.

    Attributes
    ----------
    of : dict of str to ndarray, shape (n,)
    holder : str
        The part that holds the measurement, and its noise.
    missing : list of NotLookedFor
    """

    of: Mapping[str, Floats]
    holder: str
    missing: Sequence[NotLookedFor]


def budget(
    pairs: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    tool: str | None = None,
    kernels: tuple[str, str] | None = None,
    load: str | None = None,
    seed: int = 0,
) -> ErrorBudget:
    r"""Say which part of the MAPE of a tool comes from which cause.

    Parameters
    ----------
    pairs : path, dataframe, mapping of columns, Pairs or Kernels
        Predictions and measurements, of one tool or with ``tool``. Kernels are added up: the pairs
        are runs, of which both sums are known.
    predicted, measured, unit
        How to read the table: see `errcomp.datasets.inputs.pairs_from`.
    tool : str, optional
        Which of several tools; by default the one that the table is about.
    kernels : tuple of str, optional
        Columns of the predicted and of the measured sum of kernels; by default those whose names
        say it, such as ``predicted_kernel_sum``.
    load : str, optional
        Column of the load of the system; by default the one whose name says it, such as
        ``concurrency``.
    seed : int
        Of the draws for the intervals.

    Returns
    -------
    ErrorBudget

    Raises
    ------
    InputError
        The table cannot be read, there are several tools or fewer than ten pairs, or a column is
        missing or not a number.

    Notes
    -----
    Each part of :math:`\log(p / m)` gets its Shapley value, the mean of what it adds
    to the MAPE over all orders in which the parts are put together:

    * **kernels**: :math:`\log(\hat S / S)` of the predicted and measured sums of kernels, and
      **composition**: the rest, :math:`\log(p / \hat S) - \log(m / S)`;
    * **load**: the mean error at each load minus that at the lowest load, if a permutation test
      finds a difference (1 %);
    * **hidden**: what rows with equal keys differ by, where that is more than noise;
    * **noise**: from repeats (see `errcomp.measurements.check`);
    * **factor**: the mean of what is left, where a t test by clusters finds it (5 %), and
      **rest**. With sums of kernels, these are part of composition.

    **copies** adds the MAPE minus that without them. Intervals have 90 %: models are drawn whole if
    there are five or more, else configurations, and the noise within its interval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> batch = np.repeat(np.arange(1, 101), 3)
    >>> table = {"batch": batch, "measured": batch * np.exp(0.05 * rng.normal(size=300)),
    ...          "predicted": 1.01 * batch}
    >>> found = budget(table)
    >>> found.largest, [part.cause for part in found.parts]
    ('noise', ['noise', 'factor', 'rest'])
    """
    own = of_one_tool(pairs, tool, predicted=predicted, measured=measured, unit=unit)
    positive = own.predicted > 0
    if int(positive.sum()) < _LEAST:
        raise InputError(
            f"{own.prefix}an error budget needs at least {_LEAST} predictions above 0, got "
            f"{int(positive.sum())}. Add pairs."
        )
    _check_ratios(own, positive)
    every = own.n
    own, sums = _with_sums(own.take(np.flatnonzero(positive)), kernels)
    rows, found, floor = _measured_side(own)
    once = _without_copies(found, own.n)
    cluster = _clusters(own, rows)
    parts = _parts(own, rows, found, cluster, sums=sums, load=load)
    logs = np.log(own.predicted / own.measured)
    mape = float(np.abs(np.expm1(logs)).mean())
    copied = mape - float(np.abs(np.expm1(logs[once])).mean())
    kept = replace(parts, of={name: values[once] for name, values in parts.of.items()})
    shares, draws = _shares(kept, floor, cluster[once], rows.group[once], copied, seed)
    missing = list(parts.missing)
    if math.isnan(floor.mape):
        missing.insert(0, NotLookedFor("noise", "no configuration was measured twice"))
    order = sorted(shares, key=lambda name: -shares[name])
    largest, sure = _largest(order, draws)
    low, high = _interval(np.array([shares[name] for name in order]), order, draws, cluster[once])
    return ErrorBudget(
        source=own.source,
        tool=own.tools[0] if own.tools else "",
        n=own.n,
        left_out=every - own.n,
        mape=mape,
        parts=tuple(
            BudgetPart(name, CAUSES[name], shares[name], float(a), float(b))
            for name, a, b in zip(order, low, high, strict=True)
        ),
        largest=largest if sure >= LEVEL else None,
        sure=sure,
        averages=_averages(own),
        not_looked_for=tuple(missing),
        level=LEVEL,
        seed=seed,
        dropped=own.dropped,
    )


def _check_ratios(own: Pairs, positive: NDArray[np.bool_]) -> None:
    """Refuse errors that are too large for a float: nobody can divide them among causes."""
    logs = np.log10(own.predicted[positive]) - np.log10(own.measured[positive])
    worst = int(np.argmax(np.abs(logs)))
    if abs(logs[worst]) > MOST_LOG / math.log(10):
        raise InputError(
            f"{own.prefix}in row {own.rows[positive][worst]}, the prediction is "
            f"10^{logs[worst]:.0f} times the measurement. Check the units of both columns, or "
            "leave out such rows with --where."
        )


def of_one_tool(pairs: Any, tool: str | None, **reading: Any) -> Pairs:
    """Return the pairs of one tool, in memory.

    Raises
    ------
    InputError
        There are several tools, or the pairs stay in an engine.
    """
    from errcomp.datasets.inputs import pairs_from
    from errcomp.tables import Kernels
    from errcomp.tables import Pairs as InMemory

    if isinstance(pairs, Kernels):
        pairs = _runs_of(pairs.of_tool(tool))
    table = pairs_from(pairs, **reading)
    if not isinstance(table, InMemory):
        raise InputError(
            "this analysis needs all pairs in memory, but these pairs are in a query engine. "
            "Collect them first, or take a sample."
        )
    own = table.of_tool(tool)
    if len(own.tools) > 1:
        raise InputError(
            f"{own.prefix}the table has several tools: {', '.join(own.tools)}. Name one: --tool "
            f"{own.tools[0]} (tool={own.tools[0]!r})."
        )
    return own


def _runs_of(kernels: Kernels) -> Pairs:
    """Return the runs of kernels: the sum of predictions, the measured run, and both sums.

    Raises
    ------
    InputError
        Fewer than ten runs have predictions and measurements of all kernels, and a total.
    """
    from errcomp.tables import Pairs as InMemory

    totals = kernels.totals()
    known = totals.complete & (totals.predicted > 0) & (totals.measured > 0)
    known &= totals.run_measured > 0
    if int(known.sum()) < _LEAST:
        raise InputError(
            f"{kernels.prefix}an error budget of runs needs at least {_LEAST} runs that have a "
            "value in the column 'run_measured', and a predicted and a measured time of every "
            f"kernel; {int(known.sum())} of {len(totals)} runs have them. Add runs, or the missing "
            "times."
        )
    columns = {name: values[known] for name, values in totals.keys.items()}
    columns |= {
        "predicted": totals.predicted[known],
        "measured": totals.run_measured[known],
        "predicted_kernel_sum": totals.predicted[known],
        "measured_kernel_sum": totals.measured[known],
    }
    return InMemory(columns, unit=totals.unit, source=totals.source)


def _measured_side(own: Pairs) -> tuple[Measurements, Findings, Floor]:
    from errcomp.measurements import findings, floor_of
    from errcomp.measurements.audited import rows_of

    rows = rows_of(own)
    found = findings(rows)
    groups = [one for one in found.hidden.groups if one.beyond_noise]
    found = found._replace(hidden=replace(found.hidden, groups=groups))
    return rows, found, floor_of(rows, found.once, found.hidden)


def _without_copies(found: Findings, n: int) -> NDArray[np.bool_]:
    once = np.ones(n, dtype=bool)
    for one in found.copies:
        for members in one.members:
            once[members[1:]] = False
    return once


# The parts of the logarithm of each error.


def _parts(
    own: Pairs,
    rows: Measurements,
    found: Findings,
    cluster: Ints,
    *,
    sums: tuple[str, str] | None,
    load: str | None,
) -> _Parts:
    logs = np.log(own.predicted / own.measured)
    parts: dict[str, Floats] = {}
    missing = []
    if sums is None:
        holder = "rest"
        missing.append(
            NotLookedFor(
                "kernels", "no sums of kernels were found; name their columns with --kernels"
            )
        )
    else:
        holder = "composition"
        parts["kernels"] = np.log(_floats(own, sums[0]) / _floats(own, sums[1]))
    held = logs - sum(parts.values())
    differ = _hidden(rows, found)
    if differ.any():
        parts["hidden"] = differ
        held = held - differ
    name = load if load is not None else _named(own, _LOAD)
    if name is None:
        why = "no column with the load of the system was found; name one with --load"
        missing.append(NotLookedFor("load", why))
    else:
        effect = _effect(held, _levels(_numbers(own, name)), rows.group, cluster)
        if effect is not None:
            parts["load"] = effect
            held = held - effect
    if holder == "rest" and _is_off(held, cluster):
        parts["factor"] = np.full(own.n, held.mean())
        held = held - held.mean()
    parts[holder] = held
    return _Parts(parts, holder, missing)


def _named(own: Pairs, words: frozenset[str]) -> str | None:
    from errcomp.tables.columns import words_of

    for name in own.keys:
        if set(words_of(name)) & words:
            values = own.column(name)
            if values.dtype.kind in "iuf" and len(np.unique(values)) > 1:
                return name
    return None


def _sums_of(own: Pairs, names: tuple[str, str] | None) -> tuple[str, str] | None:
    """Return the columns of the predicted and the measured sum of kernels."""
    from errcomp.tables.columns import words_of

    if names is not None:
        own.check_columns(names)
        return names
    found: dict[str, str] = {}
    for name in own.keys:
        words = set(words_of(name))
        if words & _KERNELS and words & {"sum", "total"}:
            for side in words & {"predicted", "measured"}:
                found.setdefault(side, name)
    return (found["predicted"], found["measured"]) if len(found) == 2 else None


def _with_sums(own: Pairs, names: tuple[str, str] | None) -> tuple[Pairs, tuple[str, str] | None]:
    """Return the pairs that have both sums of kernels, if they are at least half of them."""
    columns = _sums_of(own, names)
    if columns is None:
        return own, None
    known = np.all([_floats(own, name) > 0 for name in columns], axis=0)
    if int(known.sum()) < max(_LEAST, own.n / 2):
        if names is None:
            return own, None  # nobody asked for these columns
        raise InputError(
            f"{own.prefix}only {int(known.sum())} of {own.n} rows have numbers above 0 in both "
            f"columns of sums of kernels ({describe_names(columns)}). Name other columns, or leave "
            "out the other rows with --where."
        )
    return own.take(np.flatnonzero(known)), columns


def _floats(own: Pairs, name: str) -> Floats:
    """Return a column of numbers; NaN where a value is none."""
    own.check_columns((name,))
    values = own.column(name)
    if values.dtype.kind in "iuf":
        return values.astype(float)
    numbers = [one if isinstance(one, int | float) else math.nan for one in values.tolist()]
    return np.array(numbers, dtype=float)


def _numbers(own: Pairs, name: str) -> Floats:
    values = _floats(own, name)
    if not np.isfinite(values).all():
        row = int(own.rows[np.argmin(np.isfinite(values))])
        raise InputError(
            f"{own.prefix}column {name!r} must have a number in each row, but has none in row "
            f"{row}. Name another column, or leave out such rows with --where."
        )
    return values


def _hidden(rows: Measurements, found: Findings) -> Floats:
    """Return what a setting that no key names adds to the error of each row."""
    logs = np.log(rows.values[:, 0])
    differ = np.zeros(rows.n)
    hidden = found.hidden
    named = set()
    for one in hidden.explanations:
        effect = _effect_within(one.part.codes, hidden.repeats_of_keys) if one.is_key else None
        if effect is not None:
            differ -= effect[one.part.codes]
            named.add(one.part.name)
    for group in hidden.groups:
        if group.part is None or group.part.name not in named:
            left = logs[group.rows] + differ[group.rows]
            differ[group.rows] -= left - np.median(left)
    return differ


def _effect_within(codes: Ints, repeats: Repeats) -> Floats | None:
    """Return the effect of each value of a column on equal keys, against the most frequent one."""
    from errcomp.stats.permutation import without_means

    some, level = np.unique(codes[repeats.rows], return_inverse=True)
    if not 1 < len(some) <= _SETTINGS:
        return None
    usual = int(np.argmax(np.bincount(level)))
    others = [k for k in range(len(some)) if k != usual]
    x = [without_means((level == k).astype(float), repeats.of_row) for k in others]
    found, *_ = np.linalg.lstsq(np.stack(x, axis=1), repeats.residual, rcond=None)
    effect = np.zeros(int(codes.max()) + 1)
    effect[some[others]] = found
    return effect


def _levels(load: Floats) -> Ints:
    """Return the class of each load, in order."""
    values, code = np.unique(load, return_inverse=True)
    if len(values) <= _LEVELS:
        return np.asarray(code, dtype=np.int64)
    bounds = np.unique(np.quantile(load, np.linspace(0, 1, _LEVELS + 1)[1:-1]))
    return np.searchsorted(bounds, load, side="left").astype(np.int64)


def _effect(held: Floats, level: Ints, group: Ints, cluster: Ints) -> Floats | None:
    """Return the mean at each load minus that at the lowest; None if it may be chance.

    Configurations are shuffled within models, whose other errors do not count then; where models
    have one load each, among all.
    """
    from errcomp.stats.permutation import shuffles, tail, without_means

    _, first, place = np.unique(group, return_index=True, return_inverse=True)
    y = np.bincount(place, held) / np.bincount(place)
    level_of, of = level[first], np.unique(cluster[first], return_inverse=True)[1]
    # A load that is not a key varies within configurations.
    if np.any(level != level_of[place]):
        y, level_of, of = held, level, place
    order = np.argsort(of, kind="stable")
    y, level_of, of = y[order], level_of[order], of[order]
    if not np.any(np.diff(level_of)[np.diff(of) == 0]):
        of = np.zeros(len(y), dtype=np.int64)
    values = np.unique(level_of)
    x = np.stack([without_means((level_of == k).astype(float), of) for k in values[1:]], axis=1)
    clipped = without_means(np.clip(y, *np.quantile(y, [0.01, 0.99])), of)

    def explained(z: Floats) -> float:
        effect, *_ = np.linalg.lstsq(x, z, rcond=None)
        return float(((x @ effect) ** 2).sum() / max(float((z**2).sum()), 1e-300))

    chance = np.array([explained(one) for one in shuffles(clipped, of, _SHUFFLES)])
    if tail(explained(clipped), chance) > _CHANCE:
        return None
    effect = np.zeros(int(level.max()) + 1)
    effect[values[1:]] = np.linalg.lstsq(x, without_means(y, of), rcond=None)[0]
    return np.asarray(effect[level])


def _is_off(held: Floats, cluster: Ints) -> bool:
    """Say whether the mean differs from 0 by more than chance (5 %, by clusters)."""
    from errcomp.stats.significance import student_ppf

    code = np.unique(cluster, return_inverse=True)[1]
    sums = np.bincount(code, held - held.mean())
    n = len(sums)
    error = math.sqrt(float((sums**2).sum()) * n / max(n - 1, 1)) / len(held)
    return bool(abs(float(held.mean())) > student_ppf(0.975, max(n - 1, 1)) * error)


# Shares and their intervals.


def _clusters(own: Pairs, rows: Measurements) -> Ints:
    """Return what is drawn whole: models, if there are enough, else configurations."""
    from errcomp.tables.columns import role_of

    model = role_of("model", own.keys)
    if model is not None:
        codes = own.codes(model)
        if len(np.unique(codes)) >= _CLUSTERS:
            return codes
    return rows.group


def _shares(
    parts: _Parts, floor: Floor, cluster: Ints, group: Ints, copied: float, seed: int
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Return the share of each cause, and the same in drawn tables."""
    from errcomp.measurements.floor import sd_of_floor
    from errcomp.measurements.shares import shapley

    known = not math.isnan(floor.mape)
    spread = 0.0
    if known and not math.isnan(floor.low) and floor.low > 0:
        spread = math.log(floor.high / floor.low) / (2 * 1.96)
    extra = {"copies": copied} if copied else {}
    sd = sd_of_floor(floor.mape) if known else 0.0
    held = parts.of[parts.holder]
    variance = _variance(held, group)
    shares = {**shapley(parts.of, parts.holder, sd, variance), **extra}
    members = [np.flatnonzero(cluster == code) for code in np.unique(cluster)]
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(_DRAWS):
        picked = [members[i] for i in rng.integers(0, len(members), len(members))]
        chosen = np.concatenate(picked)
        # A cluster that is drawn twice stands for two.
        copy = np.repeat(np.arange(len(picked)), [len(one) for one in picked])
        variance = _variance(held[chosen], copy * (group.max() + 1) + group[chosen])
        if len(chosen) > _MOST:
            chosen = rng.choice(chosen, _MOST, replace=False)
        drawn = sd * math.exp(spread * rng.normal()) if known else 0.0
        again = {name: values[chosen] for name, values in parts.of.items()}
        draws.append({**shapley(again, parts.holder, drawn, variance), **extra})
    return shares, draws


def _variance(held: Floats, group: Ints) -> float | None:
    """Return the variance of repeats, if there are any."""
    from errcomp.stats.permutation import variance_within

    variance, freedom = variance_within(held, group)
    return variance if freedom else None


def _interval(
    shares: Floats, order: Sequence[str], draws: Sequence[Mapping[str, float]], cluster: Ints
) -> tuple[Floats, Floats]:
    """Return the quantiles of drawn tables, further apart where few clusters were drawn."""
    from scipy.special import ndtri

    from errcomp.stats.significance import student_ppf

    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    drawn = np.array([[draw[name] for name in order] for draw in draws])
    low, high = np.quantile(drawn, ends, axis=0)
    n = len(np.unique(cluster))
    wider = 1.0
    if n > 1:
        wider = math.sqrt(n / (n - 1)) * student_ppf(ends[1], n - 1) / float(ndtri(ends[1]))
    below, above = np.minimum(low - shares, 0.0), np.maximum(high - shares, 0.0)
    return shares + wider * below, shares + wider * above


def _largest(order: Sequence[str], draws: Sequence[Mapping[str, float]]) -> tuple[str, float]:
    """Return the largest cause, and the share of drawn tables in which it is the largest."""
    first = [max(draw, key=lambda name: draw[name]) for draw in draws]
    return order[0], first.count(order[0]) / len(first)


def _averages(own: Pairs) -> Mapping[str, float]:
    """Return the error by each average: what the definition alone changes."""
    error = np.abs(own.predicted - own.measured)
    ape = error / own.measured
    return {
        "mean": float(ape.mean()),
        "median": float(np.median(ape)),
        "weighted mean": float(error.sum() / own.measured.sum()),
    }
