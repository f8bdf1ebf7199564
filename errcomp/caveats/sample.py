"""Checks of what the sample is: how many, how independent, twice or missing; in which unit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from scipy import special

from errcomp.caveats._case import FAR, GAUSS_CV, MATERIAL, NOTHING, Finding, percent, plural, refine
from errcomp.caveats._registry import caveat
from errcomp.caveats._statistics import Moments, simulated_p
from errcomp.errors import InputError
from errcomp.metrics import mape
from errcomp.metrics.intervals.dependence import CLUSTER_KEYS
from errcomp.metrics.ranked import QuantileRule
from errcomp.results import Caveat, format_number
from errcomp.stats.significance import holm, student_ppf
from errcomp.tables.units import kind_of, ratios_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from errcomp.caveats._case import Case, Ints
    from errcomp.caveats._statistics import Line

#: From here on the package's intervals have to reach 90 % where they promise 95 %.
FEW = 10
#: Share of failed rows from which the P99 of the error cannot be known.
FAILED = 0.01
#: Keys name the configuration when they leave at most a tenth more different predictions.
SETTLED = 1.1
#: Share of rows equal in every number from which rounding is no explanation.
ALIKE = 0.1
#: NumPy's nine sample quantiles of Hyndman and Fan (1996).
RULES = get_args(QuantileRule)[:9]


@caveat(
    "few-configurations",
    "Under 10 pairs, too few for any figure to be certain",
    scope="pairs",
    order=60,
    why="Fires below 10 pairs, the size from which on the package's intervals have to reach 90 % "
    "where they promise 95 %. The uncertainty is that of Gaussian errors (Student's interval of "
    "the mean of their absolute values); it is a quarter of the figure at 36 pairs.",
    remedy="Measure more configurations, or report the errors one by one without a mean.",
    of_errors=False,
)
def few_configurations(case: Case) -> Finding | None:
    """Find a figure that rests on too few pairs, and say what Gaussian errors would leave open."""
    if case.n >= FEW:
        return None
    z = float(special.ndtri(0.5 + case.level / 2))
    needed = math.ceil((z * GAUSS_CV / (MATERIAL - 1)) ** 2)
    # Student's interval of their mean, relative to it; a single error has none.
    spread = student_ppf(0.5 + case.level / 2, case.n - 1) * GAUSS_CV if case.n > 1 else None
    uncertain = None if spread is None else spread / math.sqrt(case.n)
    rest = (
        "one error says nothing of the next"
        if uncertain is None
        else f"with Gaussian errors their mean is uncertain by {100 * uncertain:.0f} %"
    )
    message = (
        f"Only {plural(case.n, 'pair')}: {rest}; about {needed} tell the MAPE to within a quarter."
    )
    evidence = {"n": case.n, "relative_uncertainty": uncertain, "n_for_quarter": needed}
    return Finding(Caveat("few-configurations", message, evidence))


@caveat(
    "clustered",
    "Pairs of one model or device are not independent",
    scope="pairs",
    order=120,
    why="One-way random effects of the absolute percentage error over model and over device: "
    "permutation test of the F ratio (above 500 pairs Fisher's F test of the logarithms of the "
    "errors, which a heavy tail does not mislead), Holm over keys. Fires when significant and the "
    "design effect is 1.56 or more, which makes an interval a quarter wider.",
    remedy="Report how many models or devices there are, not only how many pairs. Intervals draw "
    "whole models and devices; name another such key with --cluster KEY.",
)
def clustered(case: Case) -> Finding | None:
    """Find pairs that are not independent because those of one model or device err alike."""
    tried = []
    for key in case.varying(CLUSTER_KEYS):
        codes = case.codes(key)[0]
        groups = int(codes.max()) + 1
        if groups < case.n and (moments := case.moments(codes)).differ:
            tried.append((key, *_one_way(case, codes, moments)))
    if not tried:
        return None
    adjusted = holm([p for *_, p in tried])
    # A design effect of 1.25 squared makes an interval a quarter wider.
    costly = [(p, t) for p, t in zip(adjusted, tried, strict=True) if t[3] >= MATERIAL**2]
    if not costly:
        return NOTHING
    # If several keys are significant, report the one that costs most.
    significant = [item for item in costly if item[0] <= 1 - case.level]
    p, (key, groups, icc, effect, _) = max(
        significant or [min(costly, key=lambda item: item[0])], key=lambda item: item[1][3]
    )
    effective = case.n / effect
    message = (
        f"Pairs of one {key} err alike (intraclass correlation {icc:.2f}): {case.n:,} pairs tell "
        f"as much as {effective:.0f} independent ones."
    )
    evidence = {
        "key": key,
        "groups": groups,
        "intraclass_correlation": icc,
        "design_effect": effect,
        "effective_n": effective,
        "n": case.n,
    }
    return Finding(Caveat("clustered", message, evidence), p)


def _one_way(case: Case, codes: Ints, moments: Moments) -> tuple[int, float, float, float]:
    """One-way random effects: groups, intraclass correlation, design effect of the mean, p.

    Analysis-of-variance estimator with n0 = (n - sum(n_j^2) / n) / (k - 1) (Donner 1986); the
    design effect of an unweighted mean is 1 + (sum(n_j^2) / n - 1) ICC (Kish 1965).
    """
    n, sizes, groups = case.n, moments.sizes, len(moments.sizes)
    b, w = moments.between / (groups - 1), moments.within / (n - groups)
    balance = float((sizes.astype(np.float64) ** 2).sum() / n)
    n0 = (n - balance) / (groups - 1)
    icc = (b - w) / (b + (n0 - 1) * w)
    effect = max(1.0, 1 + (balance - 1) * icc)
    if case.simulates:
        null = (sizes * (case.shuffled_means(codes) - moments.mean) ** 2).sum(axis=1)
        return groups, icc, effect, simulated_p(moments.between, null)
    return groups, icc, effect, _one_way_p(case.log_moments(codes))


def _one_way_p(logs: Moments) -> float:
    """P-value of Fisher's one-way test of the logarithms of errors.

    Of the errors themselves it would be wrong: one large error in a small group is nothing unusual
    in errors with a heavy tail, and the F distribution takes it for one.
    """
    groups, n = len(logs.sizes), int(logs.sizes.sum())
    if groups < 2 or groups == n or not logs.differ:
        return 1.0
    if logs.within == 0:
        return 0.0
    ratio = (logs.between / (groups - 1)) / (logs.within / (n - groups))
    return float(special.fdtrc(groups - 1, n - groups, ratio))


@caveat(
    "duplicated-configurations",
    "Rows repeat a configuration",
    scope="pairs",
    order=70,
    why="Fires when a row repeats the keys and the prediction of another one, provided that the "
    "keys settle the prediction (at most a tenth more different predictions than configurations); "
    "otherwise when a tenth of all rows are equal in every number, which rounding does not "
    "explain. A fact, no test: repetitions count as one in any interval.",
    remedy="Average repeated measurements first, or name the repetition in a column and resample "
    "whole configurations.",
    needs_pairs=True,
    of_errors=False,
)
def duplicated_configurations(case: Case) -> Finding | None:
    """Find rows that repeat a configuration: same keys and same prediction."""
    keys = [*case.configuration_keys, *(k for k in ("level", "reference") if k in case.pairs.keys)]
    configured = case.cells(keys)
    cell = refine(configured, np.unique(case.predicted, return_inverse=True)[1])
    exact = refine(cell, np.unique(case.measured, return_inverse=True)[1])
    identical = case.n - _count(exact)
    # Where the keys do not settle the prediction they do not name the configuration, and equal
    # numbers may be different configurations that were rounded alike.
    if not keys or _count(cell) > SETTLED * _count(configured):
        if identical < ALIKE * case.n:
            return None
        cell = exact
    repeated = case.n - _count(cell)
    if repeated == 0:
        return None
    first = np.unique(cell, return_index=True)[1]
    once = mape(predicted=case.predicted[first], measured=case.measured[first])
    message = (
        f"{case.n:,} rows are {plural(len(first), 'configuration')}: {repeated:,} repeat keys and "
        f"prediction ({identical:,} the measurement too). Counting each once: {percent(once)}, not "
        f"{percent(case.mape)}."
    )
    evidence = {
        "n": case.n,
        "configurations": len(first),
        "repeated": repeated,
        "identical": identical,
        "mape": case.mape,
        "mape_once": once,
        "keys": keys,
    }
    return Finding(Caveat("duplicated-configurations", message, evidence))


def _count(cell: Ints) -> int:
    return int(cell.max()) + 1


@caveat(
    "failures",
    "Rows were left out",
    scope="pairs",
    order=80,
    why="Fires when 1 % or more of the rows failed or had no usable measurement. A fact, no test: "
    "from there on the P99 of the error is unknown, whatever the others say.",
    remedy="Report the share beside the figure; find out whether failures are the hard cases.",
    of_errors=False,
)
def failures(case: Case) -> Finding | None:
    """Find rows that were left out, about which the figure says nothing."""
    dropped = sum(d.n for d in case.pairs.dropped)
    total = case.n + dropped
    if dropped < FAILED * total:
        return None
    reasons = "; ".join(f"{d.n:,}: {d.reason}" for d in case.pairs.dropped)
    message = (
        f"{dropped:,} of {total:,} rows ({percent(dropped / total)}) are not in the figure "
        f"({reasons}): it holds for the others only."
    )
    evidence = {
        "dropped": dropped,
        "rows": total,
        "share": dropped / total,
        "reasons": {d.reason: d.n for d in case.pairs.dropped},
    }
    return Finding(Caveat("failures", message, evidence))


def quantile_caveat(
    values: ArrayLike, q: float, *, level: float = 0.95, unit: str = ""
) -> Caveat | None:
    r"""Say what a high (or low) quantile of a sample leaves open; None if the sample is enough.

    Definition: the nine sample quantiles of NumPy (Hyndman and Fan 1996), and the distribution-free
    bounds from order statistics. A sample has a one-sided bound for the quantile on the side of its
    tail only if the most extreme value is one with the confidence asked for:

    .. math:: n \ge \ln(1 - \text{level}) \, / \, \ln \max(q, 1 - q)

    which is 299 for a P99 at 95 %. That is the threshold.

    Parameters
    ----------
    values : array_like, shape (n,)
        The sample, e.g. one latency per request. Finite.
    q : float
        Between 0 and 1: 0.99 is the P99.
    level : float
        Confidence of the bounds.
    unit : str
        Written behind the numbers.

    Returns
    -------
    Caveat or None
        Evidence: ``n``, ``n_needed``, ``q``, the lowest and highest of the nine rules, and the
        distribution-free bounds ``low`` and ``high`` (None where there is none).

    Raises
    ------
    InputError
        There are no values, some are not finite, or q or level is outside (0, 1).

    References
    ----------
    Hyndman and Fan (1996), "Sample quantiles in statistical packages", The American Statistician
    50(4), 361-365, doi:10.1080/00031305.1996.10473566.
    David and Nagaraja (2003), "Order Statistics", 3rd ed., Wiley, section 7.1 (distribution-free
    intervals for quantiles).

    Examples
    --------
    >>> found = quantile_caveat(range(1, 51), 0.99)
    >>> found.evidence["n_needed"], found.evidence["high"], found.evidence["low"]
    (299, None, 48.0)
    >>> quantile_caveat(range(1, 301), 0.99) is None
    True
    """
    sample = np.sort(np.asarray(values, dtype=np.float64).ravel())
    if not (0 < q < 1 and 0 < level < 1):
        raise InputError(f"q and level must lie between 0 and 1, got {q!r} and {level!r}")
    if len(sample) == 0 or not np.isfinite(sample).all():
        raise InputError("a quantile needs at least one value, all of them finite")
    n = len(sample)
    needed = math.ceil(math.log(1 - level) / math.log(max(q, 1 - q)))
    if n >= needed:
        return None
    rules = [float(np.quantile(sample, q, method=rule)) for rule in RULES]
    low, high = _bounds(sample, q, level)
    end = f" {unit}" if unit else ""
    known, asked = (low, "an upper") if q >= 0.5 else (high, "a lower")
    word = "at least" if q >= 0.5 else "at most"
    sure = f"only {word} {format_number(known)}{end}" if known is not None else "nothing"
    message = (
        f"P{100 * q:g} from {plural(n, 'value')}: {format_number(min(rules))} to "
        f"{format_number(max(rules))}{end}, depending on the rule; {sure} is sure "
        f"({100 * level:g} %), {asked} bound takes {needed:,} values."
    )
    evidence: dict[str, Any] = {
        "q": q,
        "n": n,
        "n_needed": needed,
        "rules_low": min(rules),
        "rules_high": max(rules),
        "low": low,
        "high": high,
        "level": level,
    }
    return Caveat("p99-few-samples", message, evidence)


def _bounds(sample: Any, q: float, level: float) -> tuple[float | None, float | None]:
    """One-sided distribution-free bounds of the quantile: order statistics, or None."""
    from scipy.stats import binom

    n = len(sample)
    # P(X_(r) <= quantile) = P(Bin(n, q) >= r): the largest r for which it reaches the level, and
    # P(X_(r) >= quantile) = P(Bin(n, q) <= r - 1): the smallest.
    ranks = np.arange(1, n + 1)
    lower = np.flatnonzero(binom.sf(ranks - 1, n, q) >= level)
    upper = np.flatnonzero(binom.cdf(ranks - 1, n, q) >= level)
    low = float(sample[lower[-1]]) if len(lower) else None
    high = float(sample[upper[0]]) if len(upper) else None
    return low, high


#: Nine of ten pairs lie within the square root of the factor: half of it, in logarithms.
CONSTANT = 0.5
LEAST = 3
#: Where pairs scatter more than twice either way, a factor of no units is no conversion.
ONE_FACTOR = math.log(2)
#: A factor this close to that of two units is theirs; further off only if its pairs scatter more.
CLOSE = math.log(1.1)
#: Nine of ten normal values are within so many standard deviations.
_NINETY = 1.645
#: Cycles in a second of any processor.
_CLOCKS = (5e8, 5e9)
#: Ratio, and examples of two units that differ by it: the smaller unit gives the larger number.
_USUAL = (
    (1e3, "µs beside ms, mW beside W or MB beside GB"),
    (1e6, "µs beside s, µJ beside J or kB beside GB"),
    (1e9, "ns beside s, nJ beside J or bytes beside GB"),
    (1e12, "ps beside s or pJ beside J"),
    (1e15, "fJ beside J"),
    (1024.0, "MiB beside GiB"),
    (1024.0**2, "KiB beside GiB"),
    (1024.0**3, "bytes beside GiB"),
    (60.0, "seconds beside minutes"),
    (3600.0, "seconds beside hours"),
    (6e4, "ms beside minutes"),
    (3.6e6, "ms beside hours"),
    (100.0, "per cent beside fractions"),
    (8.0, "bits beside bytes"),
)


class Reading(NamedTuple):
    """What a factor may be: the ratio to divide by, and which units have it.

    Attributes
    ----------
    ratio : float
    units : str
        As in "µs beside ms": of the larger numbers, then of the smaller ones.
    """

    ratio: float
    units: str


def apart(case: Case) -> bool:
    """Say whether pairs differ by a factor that is large and the same for nearly all."""
    middle = abs(case.ratio.middle)
    return case.n >= LEAST and middle >= math.log(FAR) and case.ratio.reach <= CONSTANT * middle


@caveat(
    "units",
    "Predictions and measurements are in different units",
    scope="pairs",
    order=10,
    why="Fires when the middle of prediction over measurement is a factor of 5 or more either way "
    "and 9 of 10 pairs lie within its square root of it. Names units that differ by the factor "
    "(within 10 %, or within the scatter of the pairs), or a clock that cycles and times have "
    "between them. A fact, no test. Caveats about errors are not looked for then.",
    remedy="Convert one column; the caveat has the line to paste. Where no units explain the "
    "factor, find out what each side counts.",
    alone=True,
)
def units(case: Case) -> Finding | None:
    """Find predictions and measurements that differ by a constant factor, as two units do."""
    if case.line is not None or not apart(case):
        return None
    middle, reach = case.ratio
    factor = math.exp(min(abs(middle), 700.0))
    larger, smaller = ("predicted", "measured") if middle > 0 else ("measured", "predicted")
    likely = readings(factor, reach / _NINETY, case.n, case.pairs.unit)
    after = (case.out_of_sample_factor() or (None, None))[1]
    words = {"predicted": "predictions", "measured": "measurements"}
    ratio = likely[0].ratio if likely else factor
    remedy = _code(case, larger, lambda column: f"{column} / {ratio:.10g}")
    message = (
        f"{words[larger].capitalize()} are {_number(factor)} times the {words[smaller]} throughout "
        f"(9 of 10 pairs within a factor of {format_number(math.exp(reach), 3)} of that)"
    )
    if likely:
        message += f", like {', or '.join(reading.units for reading in likely)}."
    else:
        message += "; no two usual units differ by that."
    if after is not None:
        message += f" One factor leaves a MAPE of {percent(after)}."
    if likely or reach <= ONE_FACTOR:
        by = "the clock, here " if likely and likely[0].units.startswith("cycles") else ""
        message += f" To convert, divide the {words[larger]} by {by}{_number(ratio)}: `{remedy}`"
    else:
        remedy = ""
        message += " Find out what each side counts."
    evidence = {
        "factor": factor,
        "larger": larger,
        "within": math.exp(reach),
        "units": [reading.units for reading in likely],
        "divide_by": ratio,
        "mape_after": after,
        "remedy": remedy,
    }
    return Finding(Caveat("units", message, evidence))


def readings(factor: float, scatter: float, n: int, unit: str | None = None) -> list[Reading]:
    """Name units that differ by a factor, the likeliest first; at most two.

    Parameters
    ----------
    factor : float
        Above 1.
    scatter : float
        Standard deviation of its logarithm among pairs.
    n : int
        Number of pairs.
    unit : str, optional
        That the table states: one of the two is taken to be it.

    Examples
    --------
    >>> [one.units for one in readings(1003.0, 0.02, 50, "ms")]
    ['ms beside s or µs beside ms']
    >>> [one.units for one in readings(1.41e9, 0.05, 50)]
    ['cycles beside s at 1.41 GHz']
    >>> readings(17.0, 0.05, 50)
    []
    """
    error = scatter / math.sqrt(n)
    usual = ratios_of(unit) if unit and kind_of(unit) else _USUAL
    off = [(abs(math.log(factor / ratio)), Reading(ratio, names)) for ratio, names in usual]
    near = sorted(hit for hit in off if hit[0] <= max(CLOSE, scatter) and _told_apart(*hit, error))
    named = [reading for _, reading in near[:1]]
    clock = _clock(factor, unit)
    if clock and (not near or near[0][0] > math.log(1.02) + 2 * error):
        # A predictor that is biased by a few per cent may be as good a reason as a clock.
        named = [clock, *(reading for reading in named if math.log10(reading.ratio) % 3 == 0)]
    elif clock and scatter > CLOSE:
        named.append(clock)
    return named


def _told_apart(off: float, reading: Reading, error: float) -> bool:
    """Say whether a factor is that of a power of 1,024, and surely not that of 1,000."""
    powers = math.log2(reading.ratio) / 10
    gap = powers * math.log(1.024)
    return powers % 1 != 0 or (4 * error < gap and off < gap / 2)


def _clock(factor: float, unit: str | None) -> Reading | None:
    """Return the clock at which so many cycles are one s, ms or µs."""
    for name, per_second in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        hertz = factor * per_second
        stated = {None, "cycles", name, name.replace("µ", "u")}
        if _CLOCKS[0] <= hertz <= _CLOCKS[1] and unit in stated:
            clock = f"{format_number(hertz / 1e9, 3)} GHz"
            return Reading(float(f"{factor:.4g}"), f"cycles beside {name} at {clock}")
    return None


@caveat(
    "affine",
    "Predictions follow measurements along a line, not one to one",
    scope="pairs",
    order=20,
    why="Fires when half of the predictions are off by a factor of 5 or more, and a line (or a "
    "power) between prediction and measurement leaves at most half the error that one factor "
    "leaves, half that of one constant, and 50 %: all on pairs left out of the fit. A fact, no "
    "test. Caveats about errors are not looked for then.",
    remedy="Convert both columns to one unit, and find what the constant is (an overhead that one "
    "side leaves out). Fit the line on other measurements before quoting errors after it.",
    needs_pairs=True,
    alone=True,
)
def affine(case: Case) -> Finding | None:
    """Find predictions that say how measurements rise, but neither their scale nor their zero."""
    line = case.line
    if line is None:
        return None
    message = (
        f"Predictions are no estimates of the measurements (MAPE {percent(case.mape)}), but these "
        f"follow from them as {_formula(line)} (r = {line.correlation:.3f}): "
        f"{percent(line.after)} off on pairs left out of the fit, where one factor leaves "
        f"{percent(line.after_factor)}. Raw errors say nothing of accuracy here"
    )
    slope = abs(line.slope) if line.form == "line" else 1.0
    large = max(slope, 1 / slope)
    likely = readings(large, 0.0, case.n, case.pairs.unit) if large >= FAR else []
    if likely:
        message += f"; the slope is that of {' or '.join(reading.units for reading in likely)}"
    remedy = _converted(case, line)
    evidence = {
        "form": line.form,
        "intercept": line.intercept,
        "slope": line.slope,
        "correlation": line.correlation,
        "mape": case.mape,
        "mape_after": line.after,
        "mape_after_factor": line.after_factor,
        "units": [reading.units for reading in likely],
        "remedy": remedy,
    }
    return Finding(Caveat("affine", f"{message}. To apply it: `{remedy}`", evidence))


def _formula(line: Line) -> str:
    a, b = _number(line.intercept), _number(abs(line.slope))
    if line.form == "power":
        return f"{a} × predicted^{format_number(line.slope, 3)}"
    return f"{a} {'−' if line.slope < 0 else '+'} {b} × predicted"


def _number(value: float) -> str:
    if 999.5 <= abs(value) < 1e5:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.3g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def _converted(case: Case, line: Line) -> str:
    """Return the code that puts the fitted line in place of the predictions."""
    a, b = f"{line.intercept:.6g}", f"{line.slope:.6g}"
    if line.form == "power":
        return _code(case, "predicted", lambda column: f"{a} * {column} ** {b}")
    return _code(case, "predicted", lambda column: f"{a} + {b} * {column}")


def _code(case: Case, name: str, changed: Callable[[str], str]) -> str:
    """Return code that changes a column of the table: a command where it is a file, else Python."""
    column = json.dumps(dict(case.pairs._renamed).get(name, name), ensure_ascii=False)
    path = PurePath(case.pairs.source)
    kind = path.suffix.lower().removeprefix(".")
    if kind in ("csv", "parquet") and not set("*?[") & set(case.pairs.source):
        to = path.with_name(f"{path.stem}_converted{path.suffix}")
        into = changed(f"pl.col({column})")
        read, write = (json.dumps(str(file), ensure_ascii=False) for file in (path, to))
        code = f"pl.read_{kind}({read}).with_columns({into}).write_{kind}({write})"
        return f"python -c {quote(f'import polars as pl; {code}')}"
    library = type(case.pairs.native).__module__.partition(".")[0]
    if library == "pandas":
        return f"table[{column}] = {changed(f'table[{column}]')}"
    if type(case.pairs.native).__name__ == "DataFrame" and library == "polars":
        # A mapping of columns becomes a Polars DataFrame as well.
        into = changed(f"pl.col({column})")
        return f"import polars as pl; table = pl.DataFrame(table).with_columns({into})"
    into = changed(f"nw.col({column})")
    return f"import narwhals as nw; table = nw.from_native(table).with_columns({into}).to_native()"
