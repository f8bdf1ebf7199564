"""Checks of the scale: two units under one figure, or a line between prediction and measurement."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from errcomp.caveats._case import FAR, Finding, percent
from errcomp.results import Caveat, format_number
from errcomp.tables.units import kind_of, ratios_of

if TYPE_CHECKING:
    from errcomp.caveats._case import Case, Line

__all__ = ["Reading", "affine", "apart", "readings", "units"]

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


def units(case: Case) -> Finding | None:
    """Find predictions and measurements that differ by a constant factor, as two units do."""
    if case.line is not None or not apart(case):
        return None
    middle, reach = case.ratio
    factor = math.exp(min(abs(middle), 700.0))
    larger, smaller = ("predicted", "measured") if middle > 0 else ("measured", "predicted")
    found = readings(factor, reach / _NINETY, case.n, case.pairs.unit)
    after = (case.out_of_sample_factor() or (None, None))[1]
    words = {"predicted": "predictions", "measured": "measurements"}
    ratio = found[0].ratio if found else factor
    remedy = _code(case, larger, lambda column: f"{column} / {ratio:.10g}")
    message = (
        f"{words[larger].capitalize()} are {_number(factor)} times the {words[smaller]} throughout "
        f"(9 of 10 pairs within a factor of {format_number(math.exp(reach), 3)} of that)"
    )
    if found:
        message += f", like {', or '.join(one.units for one in found)}."
    else:
        message += "; no two usual units differ by that."
    if after is not None:
        message += f" One factor leaves a MAPE of {percent(after)}."
    if found or reach <= ONE_FACTOR:
        by = "the clock, here " if found and found[0].units.startswith("cycles") else ""
        message += f" To convert, divide the {words[larger]} by {by}{_number(ratio)}: `{remedy}`"
    else:
        remedy = ""
        message += " Find out what each side counts."
    evidence = {
        "factor": factor,
        "larger": larger,
        "within": math.exp(reach),
        "units": [one.units for one in found],
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
    near = sorted(one for one in off if one[0] <= max(CLOSE, scatter) and _told_apart(*one, error))
    found = [reading for _, reading in near[:1]]
    clock = _clock(factor, unit)
    if clock and (not near or near[0][0] > math.log(1.02) + 2 * error):
        # A predictor that is biased by a few per cent may be as good a reason as a clock.
        found = [clock, *(one for one in found if math.log10(one.ratio) % 3 == 0)]
    elif clock and scatter > CLOSE:
        found.append(clock)
    return found


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
    found = readings(large, 0.0, case.n, case.pairs.unit) if large >= FAR else []
    if found:
        message += f"; the slope is that of {' or '.join(one.units for one in found)}"
    remedy = _converted(case, line)
    evidence = {
        "form": line.form,
        "intercept": line.intercept,
        "slope": line.slope,
        "correlation": line.correlation,
        "mape": case.mape,
        "mape_after": line.after,
        "mape_after_factor": line.after_factor,
        "units": [one.units for one in found],
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
        read, write = (json.dumps(str(one), ensure_ascii=False) for one in (path, to))
        code = f"pl.read_{kind}({read}).with_columns({into}).write_{kind}({write})"
        return f"python -c {quote(f'import polars as pl; {code}')}"
    library = type(case.pairs.native).__module__.partition(".")[0]
    if library == "pandas":
        return f"table[{column}] = {changed(f'table[{column}]')}"
    if type(case.pairs.native).__name__ == "DataFrame" and library == "polars":
        # Of a mapping of columns as well.
        into = changed(f"pl.col({column})")
        return f"import polars as pl; table = pl.DataFrame(table).with_columns({into})"
    into = changed(f"nw.col({column})")
    return f"import narwhals as nw; table = nw.from_native(table).with_columns({into}).to_native()"
