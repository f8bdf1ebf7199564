"""Checks of the sample: too few, dependent, duplicate or missing pairs; their unit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from scipy import special

from errcomp.caveats._case import FAR, GAUSS_CV, MATERIAL, NOTHING, Finding, percent, plural
from errcomp.caveats._registry import caveat
from errcomp.caveats._statistics import Moments, simulated_p
from errcomp.errors import InputError
from errcomp.metrics import mape
from errcomp.metrics.intervals.dependence import CLUSTER_KEYS
from errcomp.metrics.ranked import QuantileRule
from errcomp.results import Caveat, format_number
from errcomp.stats.significance import holm, student_ppf
from errcomp.tables.frames import all_differ, refined
from errcomp.tables.units import kind_of, ratios_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from errcomp.caveats._case import Case, Ints
    from errcomp.caveats._statistics import Line

#: Fewest pairs from which the package's 95 % intervals must cover at least 90 %.
FEW = 10
#: Share of failed rows from which the P99 of the error cannot be known.
FAILED = 0.01
#: Keys name the configuration when they leave at most a tenth more different predictions.
SETTLED = 1.1
#: Share of rows equal in every number that rounding does not explain.
ALIKE = 0.1
#: NumPy's nine sample quantiles of Hyndman and Fan (1996).
RULES = get_args(QuantileRule)[:9]


@caveat(
    "few-configurations",
    "Fewer than 10 pairs: too few for any reliable metric",
    scope="pairs",
    order=60,
    why="Fires below 10 pairs. With 10 or more, errcomp's 95 % intervals cover the true value in "
    "at least 90 % of simulations. The stated uncertainty assumes Gaussian errors (Student's "
    "interval of the mean of their absolute values); at 36 pairs it is a quarter of the MAPE.",
    remedy="Measure more configurations, or list each error without a mean.",
    of_errors=False,
)
def few_configurations(case: Case) -> Finding | None:
    """Find a metric from too few pairs, and give its uncertainty for Gaussian errors."""
    if case.n >= FEW:
        return None
    z = float(special.ndtri(0.5 + case.level / 2))
    needed = math.ceil((z * GAUSS_CV / (MATERIAL - 1)) ** 2)
    # Student's interval of their mean, relative to it; a single error has none.
    spread = student_ppf(0.5 + case.level / 2, case.n - 1) * GAUSS_CV if case.n > 1 else None
    uncertain = None if spread is None else spread / math.sqrt(case.n)
    rest = (
        "the uncertainty of the MAPE is unknown"
        if uncertain is None
        else "with Gaussian errors, the MAPE is uncertain by about ± "
        f"{float(f'{100 * uncertain:.2g}'):g} % of its value"
    )
    message = (
        f"Only {plural(case.n, 'pair')}: {rest}. About {needed} pairs would narrow the "
        "uncertainty to ± 25 %."
    )
    evidence = {"n": case.n, "relative_uncertainty": uncertain, "n_for_quarter": needed}
    return Finding(Caveat("few-configurations", message, evidence))


@caveat(
    "clustered",
    "Pairs of one model or device are not independent",
    scope="pairs",
    order=120,
    why="Tests whether the absolute percentage errors of one model, or of one device, are "
    "correlated (one-way random effects, permutation test of the F ratio, corrected for both keys "
    "by Holm's method). Above 500 pairs, the test is Fisher's F test of the logarithms of the "
    "errors, which is robust to a heavy tail. Fires when the correlation is significant and makes "
    "an interval at least a quarter wider (design effect of 1.56 or more).",
    remedy="Report the number of models or devices, not only the number of pairs. Intervals "
    "marked ‡ treat each model or device as one unit; --cluster KEY names another key.",
)
def clustered(case: Case) -> Finding | None:
    """Find pairs of one model or device with correlated errors."""
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
    # If several keys are significant, report the one with the largest design effect.
    significant = [item for item in costly if item[0] <= 1 - case.level]
    p, (key, groups, icc, effect, _) = max(
        significant or [min(costly, key=lambda item: item[0])], key=lambda item: item[1][3]
    )
    effective = case.n / effect
    message = (
        f"Pairs of one {key} have correlated errors (intraclass correlation {icc:.2f}): {case.n:,} "
        f"pairs are as informative as about {effective:.0f} independent pairs."
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

    The same test of the errors themselves would be wrong: with a heavy tail, one large error in a
    small group is common, but significant under the F distribution.
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
    why="Fires when a row repeats the keys and the prediction of another row, provided that the "
    "keys determine the prediction (there are at most 10 % more distinct predictions than "
    "configurations). If the keys do not determine it, the caveat fires when at least 10 % of all "
    "rows repeat another row completely (keys, prediction and measurement), which is more than "
    "rounding explains. No significance test is involved. Intervals count exact copies once.",
    remedy="Average repeated measurements first, or add a column for the repetition and resample "
    "whole configurations.",
    needs_pairs=True,
    of_errors=False,
)
def duplicated_configurations(case: Case) -> Finding | None:
    """Find rows that repeat a configuration: same keys and same prediction."""
    if all_differ(case.predicted):
        return None
    keys = [*case.configuration_keys, *(k for k in ("level", "reference") if k in case.pairs.keys)]
    configured = case.cells(keys)
    cell = refined(configured, np.unique(case.predicted, return_inverse=True)[1])
    exact = refined(cell, np.unique(case.measured, return_inverse=True)[1])
    identical = case.n - _count(exact)
    # Keys that do not determine the prediction do not name the configuration. Equal numbers may
    # then be different configurations that were rounded to the same number.
    if not keys or _count(cell) > SETTLED * _count(configured):
        if identical < ALIKE * case.n:
            return None
        cell = exact
    repeated = case.n - _count(cell)
    if repeated == 0:
        return None
    first = np.unique(cell, return_index=True)[1]
    once = mape(predicted=case.predicted[first], measured=case.measured[first])
    now, then = percent(case.mape), percent(once)
    change = f"stays {now}" if then == now else f"is {then}, not {now}"
    message = (
        f"{case.n:,} rows hold only {plural(len(first), 'configuration')}: "
        f"{plural(repeated, 'row')} {'repeats' if repeated == 1 else 'repeat'} the keys and the "
        f"prediction of another row (and {identical:,} of these also its measurement). If each "
        f"configuration counts once, the MAPE {change}."
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
    why="Fires when at least 1 % of the rows failed or had no usable measurement. No significance "
    "test is involved. The P99 of the error is then unknown, whatever the other rows show.",
    remedy="Report the share of rows left out beside the metric, and find out whether the failures "
    "are the hard cases.",
    of_errors=False,
)
def failures(case: Case) -> Finding | None:
    """Find rows that were left out, about which the metric says nothing."""
    dropped = sum(d.n for d in case.pairs.dropped)
    total = case.n + dropped
    if dropped < FAILED * total:
        return None
    reasons = "; ".join(f"{d.reason}, {plural(d.n, 'row')}" for d in case.pairs.dropped)
    message = (
        f"{dropped:,} of {total:,} rows ({percent(dropped / total)}) are left out: {reasons}. The "
        "metric applies only to the other rows."
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
    r"""Give the uncertainty of a high (or low) quantile; None if the sample is large enough.

    Definition: the nine sample quantiles of NumPy (Hyndman and Fan 1996), and the distribution-free
    bounds from order statistics. A sample has a one-sided bound on the tail side of the quantile
    only if its most extreme value is such a bound with this confidence:

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
        Written after the numbers.

    Returns
    -------
    Caveat or None
        Evidence: ``n``, ``n_needed``, ``q``, the lowest and highest of the nine rules, and the
        distribution-free bounds ``low`` and ``high`` (None if they do not exist).

    Raises
    ------
    InputError
        No values, values that are not finite, or q or level outside (0, 1).

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
        raise InputError(f"q and level must be between 0 and 1, got {q!r} and {level!r}")
    if len(sample) == 0 or not np.isfinite(sample).all():
        raise InputError("a quantile needs at least one value, and all values must be finite")
    n = len(sample)
    needed = math.ceil(math.log(1 - level) / math.log(max(q, 1 - q)))
    if n >= needed:
        return None
    rules = [float(np.quantile(sample, q, method=rule)) for rule in RULES]
    low, high = _bounds(sample, q, level)
    end = f" {unit}" if unit else ""
    known, asked = (low, "an upper") if q >= 0.5 else (high, "a lower")
    word = "at least" if q >= 0.5 else "at most"
    confidence = f"{100 * level:g} % confidence"
    sure = f"No bound has {confidence}"
    if known is not None:
        sure = f"With {confidence}, the quantile is {word} {format_number(known)}{end}"
    message = (
        f"P{100 * q:g} from {plural(n, 'value')}: {format_number(min(rules))} to "
        f"{format_number(max(rules))}{end}, depending on the definition of the quantile. {sure}; "
        f"{asked} bound needs {needed:,} values."
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
    from scipy.special import bdtr, bdtrc

    n = len(sample)
    # P(X_(r) <= quantile) = P(Bin(n, q) >= r): the largest r for which it reaches the level, and
    # P(X_(r) >= quantile) = P(Bin(n, q) <= r - 1): the smallest.
    below = np.arange(n, dtype=float)
    lower = np.flatnonzero(bdtrc(below, n, q) >= level)
    upper = np.flatnonzero(bdtr(below, n, q) >= level)
    low = float(sample[lower[-1]]) if len(lower) else None
    high = float(sample[upper[0]]) if len(upper) else None
    return low, high


#: 90 % of the pairs must lie within the square root of the factor: half of it, in logarithms.
CONSTANT = 0.5
LEAST = 3
#: Largest scatter of the pairs for which a factor without a unit is offered as a conversion.
ONE_FACTOR = math.log(2)
#: A factor this close to that of two units is theirs; otherwise only if the pairs scatter more.
CLOSE = math.log(1.1)
#: 90 % of normal values are within this many standard deviations.
_NINETY = 1.645
#: Range of clocks of processors, in Hz.
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
    """An explanation of a factor: the ratio to divide by, and the units that differ by it.

    Attributes
    ----------
    ratio : float
    units : str
        As in "µs beside ms": the unit of the larger numbers, then that of the smaller ones.
    """

    ratio: float
    units: str


def apart(case: Case) -> bool:
    """Say whether nearly all pairs differ by the same large factor."""
    middle = abs(case.ratio.middle)
    return case.n >= LEAST and middle >= math.log(FAR) and case.ratio.reach <= CONSTANT * middle


@caveat(
    "units",
    "Predictions and measurements are in different units",
    scope="pairs",
    order=10,
    why="Fires when the median of predicted / measured is at least 5 or at most 1/5, and 9 of 10 "
    "ratios are near that median: within a factor of its square root, e.g. from 10 to 1000 if the "
    "median is 100. The message names units that differ by the factor (within 10 %, or within the "
    "scatter of the pairs), or the clock that would convert cycles to times. No significance test "
    "is involved. Caveats about errors are then not checked.",
    remedy="Convert one column; the caveat gives the line of code to paste. If no units explain "
    "the factor, find out what each column counts.",
    alone=True,
)
def units(case: Case) -> Finding | None:
    """Find predictions and measurements that differ by a constant factor, like two units."""
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
        f"{words[larger].capitalize()} are {_number(factor)} times the {words[smaller]} in nearly "
        f"all pairs (9 of 10 are within a factor of {format_number(math.exp(reach), 3)} of this)"
    )
    if likely:
        message += f", which suggests {', or '.join(reading.units for reading in likely)}."
    else:
        message += ". No two usual units differ by this factor."
    if after is not None:
        message += f" If one factor corrects all predictions, the MAPE is {percent(after)}."
    if likely or reach <= ONE_FACTOR:
        by = "the clock rate, here " if likely and likely[0].units.startswith("cycles") else ""
        message += f" To convert, divide the {words[larger]} by {by}{_number(ratio)}: `{remedy}`"
    else:
        remedy = ""
        message += " Find out what each column counts."
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
    """Name units that differ by a factor, the most likely first; at most two.

    Parameters
    ----------
    factor : float
        Above 1.
    scatter : float
        Standard deviation of its logarithm among pairs.
    n : int
        Number of pairs.
    unit : str, optional
        Unit that the table states; one of the two must be it.

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
        # A bias of a few per cent may explain the factor as well as a clock.
        named = [clock, *(reading for reading in named if math.log10(reading.ratio) % 3 == 0)]
    elif clock and scatter > CLOSE:
        named.append(clock)
    return named


def _told_apart(off: float, reading: Reading, error: float) -> bool:
    """Say whether a factor is a power of 1,024, and clearly not a power of 1,000."""
    powers = math.log2(reading.ratio) / 10
    gap = powers * math.log(1.024)
    return powers % 1 != 0 or (4 * error < gap and off < gap / 2)


def _clock(factor: float, unit: str | None) -> Reading | None:
    """Return the clock at which this number of cycles is one s, ms or µs."""
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
    why="Fires when at least half of the predictions are off by a factor of at least 5, and a "
    "line or a power law from predictions to measurements fits far better than a constant "
    "factor. On pairs left out of the fit, its MAPE must be at most 50 %, at most half the "
    "MAPE with one factor, and at most half the MAPE if one constant is predicted for all "
    "pairs. No significance test is involved. Caveats about errors are then not checked.",
    remedy="Convert both columns to one unit, and find the reason for the constant (such as an "
    "overhead that the predictions leave out). Before quoting errors after such a correction, fit "
    "the formula to other measurements.",
    needs_pairs=True,
    alone=True,
)
def affine(case: Case) -> Finding | None:
    """Find predictions that follow measurements along a line with another slope and intercept."""
    line = case.line
    if line is None:
        return None
    message = (
        f"Predictions do not match the measurements (MAPE {percent(case.mape)}), but measured ≈ "
        f"{_formula(line)} (r = {line.correlation:.3f}). On pairs left out of the fit, this "
        f"formula has a MAPE of {percent(line.after)}, a single factor a MAPE of "
        f"{percent(line.after_factor)}. The uncorrected errors do not show how accurate the "
        "predictor is"
    )
    slope = abs(line.slope) if line.form == "line" else 1.0
    large = max(slope, 1 / slope)
    likely = readings(large, 0.0, case.n, case.pairs.unit) if large >= FAR else []
    if likely:
        message += f"; the slope suggests {' or '.join(reading.units for reading in likely)}"
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
    return Finding(Caveat("affine", f"{message}. To apply the formula: `{remedy}`", evidence))


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
    """Return the code that replaces predictions by the fitted line."""
    a, b = f"{line.intercept:.6g}", f"{line.slope:.6g}"
    if line.form == "power":
        return _code(case, "predicted", lambda column: f"{a} * {column} ** {b}")
    return _code(case, "predicted", lambda column: f"{a} + {b} * {column}")


def _code(case: Case, name: str, changed: Callable[[str], str]) -> str:
    """Return code that changes a column of the table: a command for a file, else Python."""
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
