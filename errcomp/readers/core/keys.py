"""Keys that the files of a tool lack, such as the model: given by the user, or in file names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from errcomp.errors import InputError, describe_names
from errcomp.readers.core.output import Output
from errcomp.readers.plain import NAMES

if TYPE_CHECKING:
    import polars as pl

__all__ = ["keys_in_name", "with_keys", "with_keys_from_names"]

#: Columns that hold what was read, so that no key can have their name.
_VALUES = frozenset(
    (
        *("level", "quantity", "unit", "predicted", "measured", "status", "reference"),
        *("count", "run_measured", "file"),
    )
)
#: Keys whose values are names even if they look like numbers: version 1.10 is not 1.1.
_NAMES = NAMES | {"run", "kernel"}
_FIELD = re.compile(r"\{(\w+)\}|(\*)")
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d{0,14})")
_COMPRESSED = (".gz", ".zst", ".xz")


def with_keys(output: Output, keys: Mapping[str, str]) -> Output:
    """Give all rows these keys: ``{"model": "bert"}``.

    Parameters
    ----------
    output : Output
    keys : mapping of str to str
        Key → its value. Whole numbers become numbers, except in columns of names.

    Returns
    -------
    Output
        With a note for each key that had other values.

    Raises
    ------
    InputError
        A key has the name of a column of values, or is the run of files with several runs.

    Examples
    --------
    >>> from errcomp.readers.core.output import output
    >>> rows = [{"level": "model", "predicted": 2.5}]
    >>> read = output("a.log", "x-log", rows, tool="x", quantity="time", unit="ms")
    >>> with_keys(read, {"model": "bert", "batch": "8"}).rows.select("model", "batch").rows()
    [('bert', 8)]
    """
    return _filled(output, [dict(keys)] * len(output.files)) if keys else output


def with_keys_from_names(output: Output, pattern: str) -> Output:
    """Give the rows of each file the keys in its name, see `keys_in_name`.

    Raises
    ------
    InputError
        A name does not fit the pattern, or fits it in several ways; or see `with_keys`.

    Examples
    --------
    >>> from errcomp.readers.core.output import output
    >>> rows = [{"level": "model", "predicted": 2.5}]
    >>> read = output("bert_b8.log", "x-log", rows, tool="x", quantity="time", unit="ms")
    >>> with_keys_from_names(read, "{model}_b{batch}.log").rows.select("model", "batch").rows()
    [('bert', 8)]
    """
    _check(pattern)
    found = [keys_in_name(name, pattern) for name in output.files]
    unfit = [name for name, ways in zip(output.files, found, strict=True) if not ways]
    if unfit:
        one = len(output.files) == 1
        some = "this name" if one else f"{len(unfit)} of {len(output.files)} file names"
        raise InputError(
            f"{describe_names(unfit)}: the pattern {pattern!r} does not fit {some}. "
            "Change the pattern, or name only the files that it fits."
        )
    for name, ways in zip(output.files, found, strict=True):
        if len(ways) > 1:
            first, second = ("; ".join(f"{k}={v}" for k, v in way.items()) for way in ways[:2])
            raise InputError(
                f"{name}: fits the pattern {pattern!r} in several ways: {first}, or {second}. In "
                "the pattern, write the text of the name in place of one {key}, and give that key "
                "with --set KEY=VALUE."
            )
    return _filled(output, [ways[0] for ways in found])


def keys_in_name(name: str, pattern: str) -> list[dict[str, str]]:
    """Return the keys that a pattern finds in a name: one mapping for each way in which it fits.

    Parameters
    ----------
    name : str
        Path of a file. As many parts of it count, from the end, as the pattern has.
    pattern : str
        ``{key}`` is a value of at least one character, ``*`` any text, the rest is as written. A
        pattern without a suffix is compared with the name up to its suffix.

    Returns
    -------
    list of dict
        At most two; empty if the name does not fit.

    Examples
    --------
    >>> keys_in_name("runs/bert_H100_b8.json.gz", "{model}_{device}_b{batch}.json")
    [{'model': 'bert', 'device': 'H100', 'batch': '8'}]
    >>> keys_in_name("a_b_c", "{model}_{device}")
    [{'model': 'a', 'device': 'b_c'}, {'model': 'a_b', 'device': 'c'}]
    """
    parts = PurePath(name).parts[-(pattern.count("/") + 1) :]
    text = "/".join(parts)
    if text.lower().endswith(_COMPRESSED) and not pattern.lower().endswith(_COMPRESSED):
        text = text[: text.rindex(".")]
    if "." not in pattern.rpartition("/")[2]:
        text = text.removesuffix(PurePath(text).suffix)
    ways: list[dict[str, str]] = []
    for way in _ways(text, _tokens(pattern)):
        if way not in ways:
            ways.append(way)
        if len(ways) == 2:
            break
    return ways


def _tokens(pattern: str) -> list[tuple[str, str]]:
    """Split a pattern into ("text", …), ("key", …) and ("any", "")."""
    tokens, at = [], 0
    for field in _FIELD.finditer(pattern):
        if field.start() > at:
            tokens.append(("text", pattern[at : field.start()]))
        tokens.append(("any", "") if field[2] else ("key", field[1]))
        at = field.end()
    if at < len(pattern):
        tokens.append(("text", pattern[at:]))
    return tokens


def _ways(text: str, tokens: Sequence[tuple[str, str]]) -> Iterator[dict[str, str]]:
    """Yield each way in which the tokens make up the text."""
    if not tokens:
        if not text:
            yield {}
        return
    (kind, word), rest = tokens[0], tokens[1:]
    if kind == "text":
        if text.startswith(word):
            yield from _ways(text.removeprefix(word), rest)
        return
    # A value ends where the text after it begins, and does not go beyond a folder.
    following = rest[0][1] if rest else ""
    for end in range(0 if kind == "any" else 1, len(text) + 1):
        if "/" in text[:end]:
            return
        if (end == len(text)) if not rest else text.startswith(following, end):
            for way in _ways(text[end:], rest):
                yield way if kind == "any" else {word: text[:end], **way}


def _check(pattern: str) -> None:
    """Refuse a pattern that names no key, one key twice, or has no text between two keys."""
    tokens = _tokens(pattern)
    keys = [word for kind, word in tokens if kind == "key"]
    example = "Example: '{model}_{device}_b{batch}.json'."
    if not keys:
        raise InputError(f"the pattern {pattern!r} has no key in braces. {example}")
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise InputError(
            f"the pattern {pattern!r} has the key {twice[0]!r} twice. Rename one of them."
        )
    kinds = [kind for kind, _ in tokens]
    if any("text" not in pair for pair in pairwise(kinds)):
        raise InputError(
            f"the pattern {pattern!r} needs text between two of its keys, to show where the first "
            f"one ends. {example}"
        )
    if any(brace in word for kind, word in tokens if kind == "text" for brace in "{}"):
        raise InputError(
            f"the pattern {pattern!r} has a brace without a key. Keys consist of letters, digits "
            f"and underscores. {example}"
        )


def _filled(output: Output, keys: Sequence[Mapping[str, str]]) -> Output:
    """Give the rows of each file its keys."""
    import polars as pl

    names = list(keys[0])
    for name in names:
        if name in _VALUES or not name.isidentifier():
            raise InputError(
                f"{name!r} cannot be the name of a key. Choose a name such as model, device, mode, "
                "batch or version."
            )
    rows = output.rows
    # Rows of a single file do not name it.
    file = pl.col("file") if "file" in rows.columns else pl.lit(output.files[0])
    if "run" in names:
        _refuse_to_merge(output, rows.with_columns(file.alias("file")))
    notes, columns = list(output.notes), []
    for name in names:
        values = [way[name] for way in keys]
        numbers = name not in _NAMES and all(_WHOLE.fullmatch(value) for value in values)
        column: pl.Expr = file.replace_strict(output.files, values, return_dtype=pl.String)
        columns.append((column.cast(pl.Int64) if numbers else column).alias(name))
        notes += _replaced(rows, name, column)
    return replace(output, rows=rows.with_columns(columns), notes=tuple(notes))


def _replaced(rows: pl.DataFrame, name: str, column: pl.Expr) -> list[str]:
    """Return a note if the files gave another value of a key."""
    import polars as pl

    if name not in rows.columns:
        return []
    old = pl.col(name).cast(pl.String)
    other = rows.select(old=old, new=column).filter(pl.col("old") != pl.col("new"))
    if other.is_empty():
        return []
    known = other["old"].unique(maintain_order=True).to_list()
    return [
        f"{name} of {len(other):,} row{'s'[: len(other) > 1]} was {describe_names(known)} in the "
        f"files; it is now {describe_names(other['new'].unique(maintain_order=True).to_list())}."
    ]


def _refuse_to_merge(output: Output, rows: pl.DataFrame) -> None:
    """Refuse one name for several runs: their kernels would add up."""
    import polars as pl

    if "run" not in rows.columns:
        return
    runs = rows.group_by("file", maintain_order=True).agg(pl.col("run").drop_nulls().n_unique())
    several = runs.filter(pl.col("run") > 1)
    if len(several):
        file, n = several.row(0)
        raise InputError(
            f"{file}: holds {n} runs. The key 'run' would give them all the same name, and their "
            "kernels would be added up. Use another key, e.g. 'model'."
        )
