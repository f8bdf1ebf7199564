"""What to do about caveats, in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from errcomp.report.model import caveat_text
from errcomp.results import Caveat

__all__ = ["remedies"]

#: Caveats that are given a line, and places named for each.
_SHOWN, _NAMED = 6, 3


def remedies(found: Mapping[str, Sequence[Caveat]]) -> list[str]:
    """Return a line for each caveat, the gravest first: what it means, where, and what to do.

    Parameters
    ----------
    found : mapping of str to sequence of Caveat
        By the place that they are about.

    Examples
    --------
    >>> remedies({"H100": [Caveat("one-sided", "12 of 12 are too high")]})[0].partition(".")[0]
    'one-sided: most errors have one sign (H100)'
    """
    from errcomp.caveats import CHECKS, Check
    from errcomp.caveats._elsewhere import ELSEWHERE, Note

    places: dict[str, list[str]] = {}
    for place, caveats in found.items():
        for caveat in caveats:
            places.setdefault(caveat.code, []).append(place)
    lines: dict[str, str] = {}
    # Some codes exist between tools as well, or beside an interval: the first meaning is of pairs.
    known: tuple[Check | Note, ...] = (*(c for c in CHECKS if c.scope != "tools"), *ELSEWHERE)
    for one in known:
        where = places.get(one.code)
        if where and one.code not in lines:
            named = "; ".join(where[:_NAMED]) + ("; …" if len(where) > _NAMED else "")
            lines[one.code] = f"{caveat_text(one.code, one.title)} ({named}). {one.remedy}"
    shown = list(lines.values())
    if len(shown) > _SHOWN:
        return [*shown[:_SHOWN], f"and {len(shown) - _SHOWN} more kinds of caveats."]
    return shown
