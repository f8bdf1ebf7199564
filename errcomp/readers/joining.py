"""Joining predictions in one file to measurements in another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from errcomp.errors import InputError, describe_names, renamed
from errcomp.tables.units import factor

if TYPE_CHECKING:
    import polars as pl

    from errcomp.tables import Pairs

__all__ = ["Joined", "join", "normalised"]

Match = Literal["keys", "order", "name"]
_SHOWN = 3
#: Columns that identify a row: equal in two rows that match.
_ABOUT = (
    "device",
    "model",
    "kernel",
    "kernel_class",
    "collective",
    "shape",
    "mode",
    "batch",
    "seq_len",
    "size_bytes",
    "ranks",
)
_NOT_ABOUT = frozenset(
    ("tool", "level", "quantity", "unit", "status", "predicted", "measured", "reference", "file")
)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Matched rows, and the rows without a match.

    Attributes
    ----------
    rows : polars.DataFrame
        The rows of the predictions with their ``measured``, in the unit of the predictions, and the
        ``reference`` that the measurements state.
    n_predicted, n_measured : int
        Number of rows before the join.
    without_measurement, without_prediction, ambiguous : tuple of str
        Keys of the rows that were not joined; ambiguous keys occur in several rows of one side.
    notes : tuple of str
        Reasons to doubt the matches, each a sentence.
    """

    rows: pl.DataFrame
    n_predicted: int
    n_measured: int
    without_measurement: tuple[str, ...]
    without_prediction: tuple[str, ...]
    ambiguous: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def pairs(self) -> Pairs:
        """The matched rows as a table of pairs."""
        from errcomp.tables import Pairs

        rows = self.rows.drop("quantity", strict=False)
        return Pairs(rows, source="joined")

    def lines(self) -> list[str]:
        r"""Return a summary: counts of joined and other rows, with examples, a sentence each.

        Examples
        --------
        >>> import polars as pl
        >>> simulated = pl.DataFrame({"layer": [1, 2, 3], "predicted": [1.0, 3.0, 2.0]})
        >>> traced = pl.DataFrame({"layer": [1, 2], "measured": [1.1, 2.9]})
        >>> print("\n".join(join(predicted=simulated, measured=traced, on=["layer"]).lines()))
        joined 2 pairs from 3 predictions and 2 measurements
        1 prediction without a measurement: 3
        """
        lines = [
            f"joined {_counted_as(len(self.rows), 'pair')} from "
            f"{_counted_as(self.n_predicted, 'prediction')} and "
            f"{_counted_as(self.n_measured, 'measurement')}"
        ]
        for noun, rest, keys in (
            ("prediction", "without a measurement", self.without_measurement),
            ("measurement", "without a prediction", self.without_prediction),
            ("key", "found in several rows (left out)", self.ambiguous),
        ):
            if keys:
                shown = ", ".join(keys[:_SHOWN]) + (", …" if len(keys) > _SHOWN else "")
                lines.append(f"{_counted_as(len(keys), noun)} {rest}: {shown}")
        return [*lines, *(f"note: {note}" for note in self.notes)]


def _counted_as(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


@renamed(by="match")
def join(
    *,
    predicted: pl.DataFrame,
    measured: pl.DataFrame,
    on: Sequence[str] | Mapping[str, str],
    match: Match = "keys",
    least: float = 0.9,
    aliases: Mapping[str, str] | None = None,
    clock_hz: float | None = None,
) -> Joined:
    r"""Join predictions to measurements.

    ``match="keys"``: rows with equal keys. Keys of several rows of one side are ambiguous and left
    out. ``match="order"``: for each combination of keys, the i-th row to the i-th (e.g. operators
    in the order in which they ran). Combinations with different numbers of rows are left out.
    ``match="name"``: like keys, after names are normalised (demangled, without arguments of
    templates and functions, see `errcomp.readers.joining.normalised`) and aliases are applied.

    Numbers are compared as numbers (8, 8.0 and "8" are equal), other values as text.

    If the only key is a number that counts the rows of both sides (a request, a layer), any two
    files match. A note says so, unless another column of both sides agrees.

    Parameters
    ----------
    predicted, measured : polars.DataFrame
        With a column ``predicted`` (``measured``); rows without a value are left out. If both
        have ``level`` or ``quantity``, these must agree as well.
    on : sequence of str, or mapping
        Keys; a mapping gives the key of the predictions → the column of the measurements.
    match : {"keys", "order", "name"}
    least : float
        Smallest share of the smaller table that must find a match.
    aliases : mapping of str to str, optional
        For ``match="name"``: name in the predictions → name in the measurements, e.g. of fused
        operators.
    clock_hz : float, optional
        Clock rate in Hz, which converts cycles to times.

    Returns
    -------
    Joined

    Raises
    ------
    InputError
        A key is missing, units cannot be converted, or fewer rows than ``least`` match.

    Examples
    --------
    >>> import polars as pl
    >>> simulated = pl.DataFrame({"layer": [1, 2], "predicted": [10.0, 30.0], "unit": "us"})
    >>> traced = pl.DataFrame({"layer": ["2", "1"], "measured": [0.04, 0.01], "unit": "ms"})
    >>> joined = join(predicted=simulated, measured=traced, on=["layer"])
    >>> joined.rows.select("predicted", "measured").rows()
    [(10.0, 10.0), (30.0, 40.0)]
    """
    import polars as pl

    names = dict(on) if isinstance(on, Mapping) else {name: name for name in on}
    left = _side(predicted, "predicted", list(names))
    right = _side(measured, "measured", list(names.values()))
    for name in ("level", "quantity"):
        if name in left.columns and name in right.columns and name not in names:
            names = {name: name, **names}
    if not names:
        raise InputError("no keys to join on. Name them: --on run,kernel (in Python on=[...]).")
    used = {*names, *names.values()}
    alike = [
        name
        for name in predicted.columns
        if name in measured.columns and name not in used | _NOT_ABOUT
    ]
    of_measured = ("measured", "unit", "reference")
    renamed = {name: f"\0{name}" for name in (*of_measured, *alike)}
    right = right.with_columns(
        pl.col(name).alias(new) for name, new in renamed.items() if name in right.columns
    )
    left = left.with_columns(_keys(left, list(names), match, aliases or {}))
    right = right.with_columns(_keys(right, list(names.values()), match, {}))
    keys = [f"\0{i}" for i in range(len(names))]
    counted = "" if match == "order" else _counted(left, right, names)
    if match == "order":
        left, right, ambiguous = _numbered(left, right, keys)
        keys = [*keys, "\0at"]
    else:
        left, right, ambiguous = _without_ambiguous(left, right, keys)
    given = [name for name in renamed.values() if name in right.columns]
    joined = left.join(right.select(*keys, *given), on=keys, how="left", maintain_order="left")
    matched = joined.filter(pl.col("\0measured").is_not_null())
    alone = right.join(matched.select(keys), on=keys, how="anti", maintain_order="left")
    rows = _in_unit_of_predictions(_with_their_reference(matched), clock_hz)
    result = Joined(
        rows=rows.select(pl.exclude(r"^\x00.*$")),
        n_predicted=len(predicted.filter(pl.col("predicted").is_not_null())),
        n_measured=len(measured.filter(pl.col("measured").is_not_null())),
        without_measurement=_key_texts(joined.filter(pl.col("\0measured").is_null()), keys),
        without_prediction=_key_texts(alone, keys),
        ambiguous=ambiguous,
        notes=_doubts(matched, counted, alike, predicted, measured) if counted else (),
    )
    smaller = min(result.n_predicted, result.n_measured)
    if len(rows) < least * smaller:
        raise InputError(
            f"only {len(rows):,} of {smaller:,} rows match, fewer than the required {least:.0%}: "
            f"{'; '.join(result.lines())}. Check the keys and their spelling, or require less "
            "(--least)."
        )
    return result


def _side(frame: pl.DataFrame, value: str, keys: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    for name in (value, *keys):
        if name not in frame.columns:
            raise InputError(
                f"the {'predictions' if value == 'predicted' else 'measurements'} have no column "
                f"{name!r}. Columns: {describe_names(frame.columns, wanted=name)}"
            )
    valued = frame.filter(pl.col(value).is_not_null())
    if valued.is_empty():
        raise InputError(f"no row has a value in column {value!r}, so nothing can be joined.")
    return valued.with_row_index("\0row")


def _with_their_reference(matched: pl.DataFrame) -> pl.DataFrame:
    """Take the column reference from the measurements."""
    import polars as pl

    own = matched.drop("reference", strict=False)
    if "\0reference" not in own.columns:
        return own
    return own.with_columns(reference=pl.col("\0reference"))


def _in_unit_of_predictions(matched: pl.DataFrame, clock_hz: float | None) -> pl.DataFrame:
    """Convert each measurement to the unit of its prediction."""
    import polars as pl

    if "unit" not in matched.columns or "\0unit" not in matched.columns:
        return matched.with_columns(measured=pl.col("\0measured"))
    units = matched.select("\0unit", "unit").unique(maintain_order=True)
    scale = [factor(unit, to, clock_hz=clock_hz) for unit, to in units.rows()]
    scales = units.with_columns(pl.Series("\0scale", scale, dtype=pl.Float64))
    return matched.join(
        scales, on=["\0unit", "unit"], how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(measured=pl.col("\0measured") * pl.col("\0scale"))


def _keys(
    frame: pl.DataFrame, names: Sequence[str], match: Match, aliases: Mapping[str, str]
) -> list[pl.Series]:
    import polars as pl

    columns = []
    for i, name in enumerate(names):
        text = frame[name].cast(pl.String).str.strip_chars()
        numbers = text.cast(pl.Float64, strict=False)
        # 8, 8.0 and "8" are equal; 0.1 keeps its spelling.
        plain = numbers.is_finite() & (numbers == numbers.round(0)) & (numbers.abs() < 2**53)
        whole = numbers.cast(pl.Int64, strict=False).cast(pl.String)
        text = pl.select(
            pl.when(plain.fill_null(False)).then(whole).otherwise(text).alias(f"\0{i}")
        )[f"\0{i}"]
        if match == "name":
            known = text.unique().drop_nulls().to_list()
            table = {spelling: normalised(aliases.get(spelling, spelling)) for spelling in known}
            text = text.replace(table)
        columns.append(text)
    return columns


def _without_ambiguous(
    left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    import polars as pl

    twice = pl.concat(
        [side.filter(side.select(keys).is_duplicated()).select(keys) for side in (left, right)]
    ).unique(maintain_order=True)
    left, right = (
        side.join(twice, on=keys, how="anti", nulls_equal=True, maintain_order="left")
        for side in (left, right)
    )
    return left, right, _key_texts(twice, keys)


def _numbered(
    left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[str, ...]]:
    import polars as pl

    counts = [side.group_by(keys, maintain_order=True).len() for side in (left, right)]
    unlike = (
        counts[0]
        .join(counts[1], on=keys, how="inner", maintain_order="left")
        .filter(pl.col("len") != pl.col("len_right"))
    )
    at = pl.int_range(pl.len()).over(keys).alias("\0at")
    left, right = (
        side.join(unlike, on=keys, how="anti", maintain_order="left").with_columns(at)
        for side in (left, right)
    )
    return left, right, _key_texts(unlike, keys)


def _counted(left: pl.DataFrame, right: pl.DataFrame, names: Mapping[str, str]) -> str:
    """Return the key that alone identifies rows and is 0, 1, 2, … on both sides, if any."""
    telling = [
        i for i in range(len(names)) if any(side[f"\0{i}"].n_unique() > 1 for side in (left, right))
    ]
    if len(telling) != 1:
        return ""
    for side in (left, right):
        numbers = side[f"\0{telling[0]}"].unique().cast(int, strict=False).sort()
        start = numbers[0]  # null sorts first
        if start not in (0, 1) or numbers[-1] - start != len(numbers) - 1:
            return ""
    return list(names)[telling[0]]


def _doubts(
    matched: pl.DataFrame,
    counted: str,
    alike: Sequence[str],
    predicted: pl.DataFrame,
    measured: pl.DataFrame,
) -> tuple[str, ...]:
    """Return a note if other columns contradict, or do not confirm, a match by number."""
    agree, unlike = False, []
    for name in alike:
        ours, theirs = _keys(matched, [name, f"\0{name}"], "keys", {})
        comparable = ours.is_not_null() & theirs.is_not_null()
        differ = (comparable & (ours != theirs)).arg_true()
        if name in _ABOUT and len(differ):
            values = f"{ours[differ[0]]} and {theirs[differ[0]]}"
            unlike.append(f"{name} ({values}) in {len(differ):,} of {len(matched):,} pairs")
        agree |= bool(comparable.any() and not len(differ))
    why = f"the rows were joined by {counted} alone, which only numbers the rows of each table"
    if unlike:
        return (
            f"{why}, and the joined rows differ in {', '.join(unlike[:_SHOWN])}. Even two "
            "unrelated runs would match in this way: join on these columns as well (--on).",
        )
    if agree or not all(set(side.columns) & set(_ABOUT) for side in (predicted, measured)):
        return ()
    return (f"{why}; no other common column confirms the match.",)


def _key_texts(rows: pl.DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        "/".join("–" if value is None else str(value) for value in row)
        for row in rows.select(keys).rows()
    )


# Normalised names of kernels: without the additions of compilers and profilers.

_NESTED = re.compile(r"_Z(?:N[KVO]*)?(?=\d|St)")
_SUFFIX = re.compile(r"(?:\.kd|\.intern|\.clone|\.isra|\.constprop|\.part|\.cold)(?:\.\d+)*$")
#: Numbers at the end, of a name that is read backwards: a search would begin at each of them.
_NUMBERS = re.compile(r"(?:\d+[._])+")
_WORDS = ("void ", "static ", "inline ", "const ")


def normalised(name: str) -> str:
    r"""Return a name without the parts that differ between profilers and predictions.

    Mangled C++ names keep only their identifiers. Demangled names lose return type, template
    arguments and parameters. Paths of ranges keep their last part. ``.kd`` (AMD) and trailing
    numbers (``_12`` of the twelfth copy) are removed, and upper case becomes lower case.

    Misleads if two kernels differ only in a template argument: they get the same name, and a join
    by name calls them ambiguous.

    Parameters
    ----------
    name : str

    Returns
    -------
    str

    Examples
    --------
    >>> normalised("_ZN2at6native13reduce_kernelILi512ELi1EEEvT_"), normalised(
    ...     "void at::native::reduce_kernel<512, 1>(Args)")
    ('at::native::reduce_kernel', 'at::native::reduce_kernel')
    >>> normalised("Cijk_Ailk_MT64.kd"), normalised("layer1/fused_add_relu_12")
    ('cijk_ailk_mt64', 'fused_add_relu')
    """
    text = name.strip()
    if mangled := _NESTED.match(text):
        text = _identifiers(text[mangled.end() :]) or text
    text = _without_brackets(text)
    for word in _WORDS:
        text = text.removeprefix(word)
    text = text.rsplit("/", 1)[-1].strip()
    text = _SUFFIX.sub("", text)
    # A name that is only a number keeps it.
    numbers = _NUMBERS.match(text[::-1])
    return ((text[: -numbers.end()] if numbers else text) or text).lower()


def _identifiers(rest: str) -> str:
    """Return the identifiers at the start of a mangled name, each preceded by its length."""
    parts: list[str] = []
    while True:
        rest = rest.removeprefix("St").removeprefix("L")
        digits = re.match(r"[0-9]{1,4}", rest)
        if digits is None:
            return "::".join(parts)
        length, rest = int(digits.group()), rest[digits.end() :]
        if length > len(rest):  # not a mangled name after all
            return ""
        part, rest = rest[:length], rest[length:]
        if not part.startswith("_GLOBAL__N"):
            parts.append(part)


def _without_brackets(text: str) -> str:
    """Leave out everything in angle, round and curly brackets, and the type before the name."""
    text = text.replace("(anonymous namespace)::", "")
    letters: list[str] = []
    depth = 0
    for letter in text:
        if letter in "<({[":
            depth += 1
        elif letter in ">)}]":
            depth = max(depth - 1, 0)
        elif not depth:
            letters.append(letter)
    plain = "".join(letters).strip()
    # "void f" and "float2 f": the word before the last space is a type, unless only brackets
    # precede the name.
    return plain.rsplit(" ", 1)[-1] if plain and "::" in plain else plain or text
