"""Leave out rows that a check of measurements lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from errcomp.errors import InputError
from errcomp.readers.plain import read_frame
from errcomp.tables.columns import dropped_rows

if TYPE_CHECKING:
    from errcomp.tables import Pairs

__all__ = ["without_rows"]


def without_rows(pairs: Pairs, path: Path) -> Pairs:
    """Leave out, and count, the rows that a file lists.

    Parameters
    ----------
    pairs : Pairs
    path : Path
        A table with the column ``row``, as the user counts rows or lines; ``exclude`` (true or
        false) and ``finding`` (the reason) are optional.

    Raises
    ------
    InputError
        The file has no column ``row`` of whole numbers, or none of its rows is in the table.
    """
    if path.is_file() and path.stat().st_size <= 2 and not path.read_bytes().strip():
        return pairs  # the check found nothing
    frame, _ = read_frame(path, {}, frozenset(("finding",)), ("row",))
    if "row" not in frame.columns or not frame["row"].dtype.is_integer():
        raise InputError(
            f"{path}: --exclude takes a table with whole numbers in the column 'row', as written "
            "by errcomp measurements check TABLE -o rows.csv"
        )
    if "exclude" in frame.columns:
        chosen = [str(value).lower() in ("true", "1") for value in frame["exclude"].to_list()]
        frame = frame.filter(chosen)
    why = frame["finding"].to_list() if "finding" in frame.columns else [""] * frame.height
    reasons = dict(zip(frame["row"].to_list(), why, strict=True))
    listed = np.isin(pairs.rows, list(reasons))
    if reasons and not listed.any():
        raise InputError(
            f"{path}: none of its {len(reasons):,} rows is in {pairs.source or 'the table'}. Name "
            "the file that was written for this table."
        )
    part = pairs.take(~listed)
    if not part.n:
        raise InputError(f"{path} excludes every row of {pairs.source or 'the table'}.")
    found = np.array([reasons.get(row, "") for row in pairs.rows.tolist()], dtype=object)
    part.dropped = pairs.dropped
    for reason in dict.fromkeys(reasons.values()):
        rows = pairs.rows[listed & (found == reason)]
        told = f"excluded ({reason})" if reason else f"excluded by {path.name}"
        part.dropped = (*part.dropped, *dropped_rows(told, rows))
    return part
