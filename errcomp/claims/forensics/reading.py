"""Reads printed figures: their names, the numbers they can stand for, and the set they describe."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from errcomp.claims.printed import parse_printed
from errcomp.errors import InputError, offer

__all__ = ["NAMES", "RELATIVE", "Figure", "Figures", "FiguresTable", "tables_of"]

#: Canonical name → other names that papers print.
NAMES: Mapping[str, tuple[str, ...]] = {
    "mean": (
        *("mape", "average", "avg", "mean error", "average error", "mean ape", "arithmetic mean"),
        *("mean absolute error", "mean absolute percentage error", "mean relative error", "mre"),
        *("avg error", "average ape", "mean absolute relative error"),
    ),
    "median": ("median error", "median ape", "p50", "50th percentile", "mdape"),
    "max": ("maximum", "max error", "maximum error", "worst", "worst case", "max ape", "p100"),
    "min": ("minimum", "min error", "minimum error", "best", "min ape", "p0"),
    "geomean": ("geometric mean", "geo mean", "gmape", "geometric mean error", "geomean error"),
    "rms": ("rmspe", "root mean square", "root mean square error", "rms error"),
    "sd": ("std", "standard deviation", "stdev", "std dev"),
    "bias": ("mean signed error", "signed mean", "mpe", "mean percentage error", "mean bias"),
    "correlation": ("r", "pearson", "pearson r", "pearson correlation"),
    "n": ("count", "number of cases", "size"),
    "predicted": ("prediction", "simulated", "estimated", "pred"),
    "measured": ("measurement", "actual", "real", "ground truth"),
    "error": ("ape", "absolute percentage error", "relative error", "absolute error"),
    "signed error": ("percentage error", "difference"),
    "baseline": ("before", "old time", "baseline time"),
    "time": ("after", "new time", "optimized time"),
    "speedup": ("speed-up", "speed up"),
    "wape": ("wmape", "weighted mape", "weighted mean", "weighted absolute percentage error"),
    "not checked": (
        *("r2", "r^2", "r²", "kendall tau", "kendall", "tau", "spearman", "spearman rho", "rho"),
        *("mae", "rmse", "smape", "total error", "mse"),
    ),
}
_CANONICAL = {word: name for name, words in NAMES.items() for word in (name, *words)}
#: Words before a quantity that name the whole of several parts; as a part, they do so alone.
_OVERALL = ("overall", "total", "pooled", "all", "combined")
_SHARE = re.compile(
    r"(?:(?:share|fraction|percentage|accuracy|proportion)?\s*(?:of\s+\w+\s+)?"
    r"(?:within|below|under|at most|up to|acc)\s*[±@]?|[@±]|<=?|≤)\s*±?\s*"
    r"(?P<x>\d+(?:\.\d+)?)\s*(?P<sign>%|per ?cent|pct)?(?:\s*error)?"
)
_PERCENTILE = re.compile(
    r"(?:(?:p|q)\s*(\d{1,2}(?:\.\d+)?)|(\d{1,2}(?:\.\d+)?)(?:th|st|nd|rd)?\s*perc\w*)"
    r"(?:\s+(?:ape|error))?"
)
_LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class Figure:
    """One printed figure.

    Attributes
    ----------
    quantity : str
        A name of `NAMES`, ``share`` or ``quantile``.
    name, text : str
        The quantity and the value as they were printed.
    low, high : float
        The numbers that round to the value, as fractions; both ends count.
    cut : (float, float)
        The numbers that give the value if digits are cut off instead.
    at : float
        The limit of a share, the level of a quantile.
    unit : str
        The unit of a time.
    """

    quantity: str
    name: str
    text: str
    low: float
    high: float
    cut: tuple[float, float]
    at: float = math.nan
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.text}"


@dataclass(slots=True)
class Figures:
    """The figures of one set of errors; ``n`` is its size, where stated."""

    name: str = ""
    n: int | None = None
    figures: list[Figure] = field(default_factory=list)

    def of(self, quantity: str) -> Figure | None:
        """Return the first figure with this name."""
        return next((one for one in self.figures if one.quantity == quantity), None)


@dataclass(slots=True)
class FiguresTable:
    """A printed table: figures of the whole, of its parts, and of single cases."""

    group: str
    whole: Figures
    parts: list[Figures]
    cases: list[Figures]


@dataclass(frozen=True, slots=True)
class _Row:
    group: str
    part: str
    overall: bool
    n: int | None
    figure: Figure


def tables_of(data: Any) -> list[FiguresTable]:
    """Read a file or a table of printed figures.

    Parameters
    ----------
    data : path, mapping of columns or dataframe
        ``quantity`` and ``value``; optional are ``n``, ``part`` (a subset, or a case) and
        ``group`` (a table of the paper).

    Raises
    ------
    InputError
        A column is missing, a quantity is unknown, a value or an n cannot be read, or only some
        values have a per cent sign.
    """
    source, columns = _columns(data)
    wanted = ("quantity", "value")
    if missing := [name for name in wanted if name not in columns]:
        raise InputError(
            f"{source}missing column {missing[0]}. A table of printed figures has the columns "
            "quantity and value; n, part and group are optional."
        )
    size = len(columns["quantity"])
    texts = [{name: column[i] for name, column in columns.items()} for i in range(size)]
    texts = [row for row in texts if row["quantity"] or row["value"]]
    if not texts:
        raise InputError(f"{source}no printed figures: the table has no rows.")
    percent = _bare_is_percent(source, texts)
    rows = [_row(source, i, row, percent) for i, row in enumerate(texts, 1)]
    return [_arranged(group, rows) for group in dict.fromkeys(row.group for row in rows)]


def _columns(data: Any) -> tuple[str, dict[str, list[str]]]:
    """Return the columns as text: the digits as printed matter."""
    names = frozenset(("quantity", "value", "n", "part", "group"))
    source = ""
    if isinstance(data, str | PathLike):
        from errcomp.readers.plain import read_frame

        path = Path(data)
        if path.is_dir():
            raise InputError(
                f"{path}: is a folder, not a file of printed figures. Name one of its files."
            )
        source = f"{path}: "
        frame: Any = read_frame(path, {}, names, ())[0]
    elif isinstance(data, Mapping):
        return "", {
            name: [_text(value) for value in column]
            for name, column in data.items()
            if name in names
        }
    else:
        from errcomp.tables.frames import to_eager

        frame = to_eager(data)
    there = [name for name in frame.columns if name in names]
    return source, {name: [_text(v) for v in frame[name].to_list()] for name in there}


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"  # a number in JSON does not say which digits were printed
    return str(value).strip()


def _bare_is_percent(source: str, rows: Sequence[Mapping[str, str]]) -> bool:
    """Say whether numbers without a sign are per cent: if any of them exceeds 1.

    Raises
    ------
    InputError
        Some figures have a per cent sign and others not.
    """
    relative = [row for row in rows if _kind(row["quantity"])[0] in RELATIVE]
    bare = [row for row in relative if "%" not in row["value"]]
    if bare and len(bare) < len(relative):
        where = ", ".join(f"{row['quantity']} {row['value']}" for row in bare[:3])
        raise InputError(
            f"{source}some values have a % sign and others not: {where}. Write all these values "
            "in per cent, with the % sign."
        )
    return any(
        abs(float(number)) > 1
        for row in bare
        for number in re.findall(r"\d+(?:\.\d+)?", row["value"])
    )


#: Quantities that are per cent or fractions.
RELATIVE = (
    *("mean", "median", "max", "min", "geomean", "rms", "sd", "bias", "share", "quantile"),
    *("error", "signed error", "wape"),
)


def _kind(quantity: str) -> tuple[str, float, bool]:
    """Return the canonical name, the limit or level, and whether it is of the whole."""
    words = re.sub(r"[\s_]+", " ", quantity.casefold()).strip(" :")
    first, _, rest = words.partition(" ")
    overall = first in _OVERALL and bool(rest)
    words = rest if overall else words
    plain = re.sub(r"\s*(\(%\)|\[%\])$", "", words)
    if name := _CANONICAL.get(plain):
        return name, math.nan, overall
    if match := _SHARE.fullmatch(plain):
        limit = float(match["x"])
        return "share", limit / 100 if match["sign"] or limit > 1 else limit, overall
    if match := _PERCENTILE.fullmatch(plain):
        return "quantile", float(match[1] or match[2]) / 100, overall
    return "", math.nan, overall


def _row(source: str, number: int, row: Mapping[str, str], percent: bool) -> _Row:
    where = f"{source}row {number}: "
    quantity, at, overall = _kind(row["quantity"])
    if not quantity:
        known = [*(name for name in NAMES if name != "not checked"), "share within 10%", "p90"]
        raise InputError(
            f"{where}unknown quantity {row['quantity']!r}. "
            f"{offer('Quantities', known, wanted=row['quantity'].casefold())}"
        )
    part = row.get("part", "")
    overall |= part.casefold() in _OVERALL
    figure = _figure(where, quantity, row["quantity"].strip(), row["value"], at, percent)
    n = _n(where, row["value"] if quantity == "n" else row.get("n", ""))
    return _Row(row.get("group", ""), "" if overall else part, overall, n, figure)


def _n(where: str, text: str) -> int | None:
    if not text:
        return None
    plain = text.replace(",", "")
    try:
        n = int(plain) if plain.isascii() and plain.isdigit() else int(float(plain))
        whole = float(plain) == n
    except (ValueError, OverflowError):
        n, whole = 0, False
    if not whole or not 1 <= n <= _LARGEST:
        raise InputError(
            f"{where}n must be a whole number from 1 to {_LARGEST:,}, got {text!r}. Leave it empty "
            "if it is not stated."
        )
    return n


def _figure(where: str, quantity: str, name: str, value: str, at: float, percent: bool) -> Figure:
    if quantity in ("n", "not checked"):
        return Figure(quantity, name, value, -math.inf, math.inf, (-math.inf, math.inf))
    text, unit = value.replace("−", "-").strip(), ""
    if quantity in _TIMES and (match := _TIME.fullmatch(text.replace(",", ""))):
        text, unit = match[1], match[2]
    bare = quantity in RELATIVE and percent and "%" not in text
    try:
        printed = parse_printed(f"{text}%" if bare else text)
    except InputError as error:
        raise InputError(f"{where}{name}: {error}") from None
    if quantity == "share" and printed.low > 1:
        raise InputError(f"{where}{name} is {value}: a share cannot exceed 100 %. Correct it.")
    digit = 10.0**-printed.decimals / (100 if printed.percent else 1)
    low, high = printed.ends
    if printed.kind == "value":
        middle = float(printed.value or 0.0)
        cut = (middle - digit, middle) if middle < 0 else (middle, middle + digit)
        if text.startswith(("~", "≈")):  # how near "about" means is not known
            low, high = cut = (-math.inf, math.inf)
    else:
        cut = (low, high)
    if quantity not in _SIGNED:
        low, high, cut = max(low, 0.0), max(high, 0.0), (max(cut[0], 0.0), max(cut[1], 0.0))
    if quantity == "share":
        high, cut = min(high, 1.0), (cut[0], min(cut[1], 1.0))
    if quantity not in _SIGNED and printed.value is not None and printed.value < 0:
        raise InputError(f"{where}{name} is {value}: it cannot be negative. Correct it.")
    shown = f"{text}%" if bare else value
    return Figure(quantity, name, shown, low, high, cut, at, unit)


_SIGNED = ("bias", "correlation", "signed error")
#: A time: its number and its unit.
_TIME = re.compile(r"([~≈]?\s*[+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*([A-Za-zµμ]*)")
_TIMES = ("predicted", "measured", "baseline", "time")
_OF_A_CASE = ("predicted", "measured", "signed error", "baseline", "time", "speedup")


def _arranged(group: str, rows: Sequence[_Row]) -> FiguresTable:
    """Sort the rows of a table into the whole, its parts, and single cases."""
    rows = [row for row in rows if row.group == group]
    whole, sets = Figures(), dict[str, Figures]()
    errors = [r for r in rows if r.figure.quantity == "error" and not r.overall]
    single = len(errors) > 1 and all(row.n in (None, 1) for row in errors)
    cases: dict[str, Figures] = {}
    rest: list[_Row] = []
    for i, row in enumerate(rows):
        kind = row.figure.quantity
        if not row.overall and (kind in _OF_A_CASE or (kind == "error" and single)):
            case = cases.setdefault(row.part or f"row {i + 1}" * (kind == "error"), Figures())
            case.figures.append(row.figure)
        elif kind == "error" and row.part in cases and not row.overall:
            cases[row.part].figures.append(row.figure)
        else:
            rest.append(row)
    for row in rest:
        place = whole if row.overall else sets.setdefault(_set_name(row, rest), Figures())
        _add(place, row)
    for name, some in (*sets.items(), *cases.items()):
        some.name = name
    for case in cases.values():
        _check_units(group, case)
    if not whole.figures and len(sets) == 1:
        (whole,) = sets.values()
        sets = {}
    elif not whole.figures:
        named = any(row.part for row in rest)
        whole = sets.get("") or (None if named else _sum_of_others(sets)) or whole
    parts = [some for some in sets.values() if some is not whole]
    return FiguresTable(group, whole, parts, list(cases.values()))


def _set_name(row: _Row, rows: Sequence[_Row]) -> str:
    """Return the part of a row: as named, else by its n where several n are printed."""
    if row.part:
        sizes = {other.n for other in rows if other.part == row.part and other.n is not None}
        return f"{row.part}, n={row.n}" if len(sizes) > 1 and row.n is not None else row.part
    sizes = {other.n for other in rows if other.n is not None and not other.overall}
    same = [
        other
        for other in rows
        if (other.figure.quantity, other.figure.at, other.n, other.part, other.overall)
        == (row.figure.quantity, row.figure.at, row.n, row.part, row.overall)
    ]
    if len(same) > 1 and row.figure.quantity not in ("n", "not checked"):
        position = next(i for i, other in enumerate(same) if other is row)
        return f"n={row.n}, {position + 1}" if row.n else f"set {position + 1}"
    return f"n={row.n}" if len(sizes) > 1 and row.n is not None else ""


def _add(place: Figures, row: _Row) -> None:
    if row.n is not None:
        place.n = row.n
    if row.figure.quantity == "error":  # not of single cases
        place.figures.append(replace(row.figure, quantity="mean"))
    elif row.figure.quantity != "n":
        place.figures.append(row.figure)


def _sum_of_others(sets: Mapping[str, Figures]) -> Figures | None:
    """Return the set whose n is the sum of the n of all others, if they are stated."""
    sizes = [some.n for some in sets.values()]
    if None in sizes or len(sizes) < 3:
        return None
    total = sum(n for n in sizes if n)
    return next((some for some in sets.values() if some.n and 2 * some.n == total), None)


def _check_units(group: str, case: Figures) -> None:
    timed = [one for one in case.figures if one.quantity in _TIMES]
    if len({one.unit for one in timed}) > 1:
        where = " ".join(name for name in (group, case.name) if name)
        raise InputError(
            f"{where + ': ' if where else ''}times of the same part and group have different "
            f"units: {', '.join(map(str, timed))}. Write all in one unit."
        )
