"""What a user may call a table of pairs: a path, a built-in name, any dataframe, an engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError, did_you_mean
from errcomp.tables import Pairs
from errcomp.tables.table import Backend

if TYPE_CHECKING:
    from errcomp.tables import Gaps, Zeros
    from errcomp.tables.engine.pairs import PairRows, PairTotals

__all__ = ["pairs_from", "pairs_in_memory"]


def pairs_from(
    table: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Gaps = "raise",
) -> Pairs | PairRows | PairTotals:
    """Return the pairs of whatever a user calls a table.

    Parameters
    ----------
    table : path, str, dataframe, mapping of columns, or a table of errcomp
        A file or folder that `errcomp.read` reads, a folder or pattern of Parquet files, the name
        of a built-in dataset, a dataframe of any library, or rows in an engine, which stay there.
    predicted, measured : str, optional
        Columns that hold the predictions and the measurements; by default those of that name, or
        those whose names say it (see `errcomp.tables.guessing`).
    unit : str, optional
        Unit of both, e.g. ``"ms"``.
    zeros : {"raise", "exclude"}
        What to do with measurements that are not positive.
    missing : {"raise", "exclude", "keep"}
        What to do with rows without a prediction or a measurement; "keep": see `Pairs`.

    Returns
    -------
    Pairs, PairRows or PairTotals

    Raises
    ------
    InputError
        There is no such table, columns are named for a table whose columns are known, or the table
        cannot be used.

    Warns
    -----
    GuessedWarning
        The columns were guessed by their names.

    Examples
    --------
    >>> pairs_from("neusight").n
    386
    >>> pairs = pairs_from({"sim": [11.0], "hw": [10.0]}, predicted="sim", measured="hw")
    >>> pairs.predicted.tolist()
    [11.0]
    """
    columns = _named(predicted, measured)
    rows: dict[str, Any] = {"zeros": zeros, "missing": missing}
    given = [*columns, *(["unit"] if unit else [])]
    given += [name for name, value in rows.items() if value not in ("raise", "keep")]
    if isinstance(table, Pairs) and not given:
        return table
    if isinstance(table, str | os.PathLike):
        return _at(os.fspath(table), columns, unit, rows, given)
    from errcomp.tables.backends import Content, pairs_of, stays

    if isinstance(table, Backend | Content):
        if given:
            raise InputError(
                f"the columns of {type(table).__name__} are known. Leave out {', '.join(given)}, "
                "or pass a dataframe or a path instead."
            )
        return pairs_of(table)
    if stays(table):
        from errcomp.tables.engine.pairs import PairRows

        return PairRows(table, columns=columns, unit=unit, **rows)
    return Pairs(table, columns=columns, unit=unit, **rows)


def pairs_in_memory(
    table: Any,
    *,
    predicted: str | None = None,
    measured: str | None = None,
    unit: str | None = None,
    zeros: Zeros = "raise",
    missing: Gaps = "raise",
) -> Pairs:
    """Return the pairs of whatever a user calls a table; rows of a lazy frame are collected.

    Parameters
    ----------
    table, predicted, measured, unit, zeros, missing
        As in `pairs_from`.

    Raises
    ------
    InputError
        As in `pairs_from`.

    Examples
    --------
    >>> import polars as pl
    >>> pairs_in_memory(pl.LazyFrame({"predicted": [11.0], "measured": [10.0]})).n
    1
    """
    from errcomp.tables import backends

    if not isinstance(table, str | os.PathLike | Backend | backends.Content):
        columns = _named(predicted, measured)
        return Pairs(table, columns=columns, unit=unit, zeros=zeros, missing=missing)
    pairs = pairs_from(
        table, predicted=predicted, measured=measured, unit=unit, zeros=zeros, missing=missing
    )
    return backends.pairs_in_memory(pairs)


def _named(predicted: str | None, measured: str | None) -> dict[str, str]:
    both = (("predicted", predicted), ("measured", measured))
    return {side: column for side, column in both if column is not None}


def _at(
    name: str, columns: dict[str, str], unit: str | None, rows: dict[str, Any], given: list[str]
) -> Pairs | PairRows:
    """Return the pairs at a path, or of a built-in dataset."""
    from errcomp import datasets
    from errcomp.readers import read
    from errcomp.readers.several import is_pattern
    from errcomp.tables.engine.scanning import is_large, scan

    if is_large(name):
        return scan(name, columns=columns, unit=unit, **rows)
    if Path(name).exists() or is_pattern(name):
        return read(name, columns=columns, unit=unit, **rows).pairs
    if name not in datasets.names():
        raise _no_such_file(name)
    if given:
        raise InputError(
            f"{name} is a built-in table: its columns and unit are known. Leave out "
            f"{', '.join(given)}."
        )
    table = datasets.load(name)
    if not isinstance(table, Pairs):
        raise InputError(f"{name} is a table of {datasets.info(name).holds}, not of pairs.")
    return table


def _no_such_file(name: str) -> InputError:
    """Return the error for a name that is neither a path nor a built-in table of pairs."""
    from errcomp import datasets
    from errcomp.readers.core.source import is_url, url_refused

    if is_url(name):
        return url_refused(name)

    known = [info.name for info in datasets.list() if info.holds == "pairs"]
    folder = Path(name).parent
    files = [str(path) for path in folder.iterdir()] if folder.is_dir() else []
    return InputError(
        f"{name}: no such file, and no built-in table of pairs of that name. "
        f"{did_you_mean(name, [*known, *files])}Built-in: {', '.join(known)}"
    )
