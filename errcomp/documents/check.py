"""``errcomp.half-life-check/1``: new validations held against a history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from errcomp.documents._fields import (
    Field,
    above,
    choice,
    count,
    coverage,
    log,
    many,
    maybe,
    null_as,
    number,
    or_nan,
    share,
    text,
)
from errcomp.halflife.gate import VERDICTS, GateResult
from errcomp.halflife.gate.checking import Recalibration, ValidationCheck
from errcomp.halflife.gate.shifts import Law

__all__ = ["check_again", "read_check"]

_LOGS = ("baseline", "new", "shift", "low", "high", "reference", "predictor", "promised")
_SHARES = ("p", "p_adjusted")
_NUMBERS = ("df", "detectable")
_WORDS = ("series", "group", "why", "noise", "moved_by")
_GROUP_LOGS = ("old_error", "new_error", "old_bias")
_FACTORS = ("factor", "low", "high")


def read_check(field: Field) -> ValidationCheck:
    """Make a check of its document."""
    return ValidationCheck(
        result=_result(field),
        recalibration=field("recalibration", maybe(_recalibration)),
        notes=field("notes", many(text)),
    )


def check_again(found: ValidationCheck) -> Mapping[str, Any]:
    """Return what the document must have said."""
    again = found.recalibration
    return {
        **found.result.to_dict(),
        "recalibration": None if again is None else again.to_dict(),
        "notes": list(found.notes),
    }


def _result(field: Field) -> GateResult:
    versions = field("versions", many(text, fewest=1))
    rows = field("series", many(lambda row: _series(row, versions), fewest=1))
    return GateResult(
        version=field("version", text),
        versions=versions,
        names=tuple(row["series"] for row in rows),
        groups=tuple(row["group"] for row in rows),
        verdict=_words(rows, "verdict"),
        why=_words(rows, "why"),
        noise=_words(rows, "noise"),
        moved_by=_words(rows, "moved_by"),
        **{name: _column(rows, name) for name in (*_LOGS, *_SHARES, *_NUMBERS)},
        n_baseline=_column(rows, "n_baseline"),
        last=_column(rows, "last"),
        look=field("look", count),
        alpha=field("alpha", share),
        level=field("level", share),
        margin=field("margin", log),
        law=Law(
            field("noise_scale", above(0.0)),
            field("noise_df", null_as(above(0.0), math.inf)),
            field("noise_n", number),
        ),
    )


def _series(field: Field, versions: tuple[str, ...]) -> dict[str, Any]:
    last = field("last_version", maybe(choice(versions)))
    return {
        **{name: field(name, text) for name in _WORDS},
        "verdict": field("verdict", choice(VERDICTS)),
        "n_baseline": field("n_baseline", count),
        "last": -1 if last is None else versions.index(last),
        **{name: field(name, or_nan(log)) for name in _LOGS},
        **{name: field(name, or_nan(share)) for name in _SHARES},
        **{name: field(name, or_nan(number)) for name in _NUMBERS},
    }


def _recalibration(field: Field) -> Recalibration:
    rows = field("groups", many(_group))
    return Recalibration(
        groups=tuple(row["group"] for row in rows),
        judged_by=_words(rows, "judged_by"),
        **{name: _column(rows, name) for name in (*_FACTORS, *_GROUP_LOGS, "n_series", "n_rows")},
        level=field("level", coverage),
        old_total=field("old_total", or_nan(log)),
        new_total=field("new_total", or_nan(log)),
    )


def _group(field: Field) -> dict[str, Any]:
    return {
        **{name: field(name, text) for name in ("group", "judged_by")},
        **{name: field(name, count) for name in ("n_series", "n_rows")},
        **{name: field(name, or_nan(number)) for name in _FACTORS},
        **{name: field(name, or_nan(log)) for name in _GROUP_LOGS},
    }


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return np.array([row[name] for row in rows])


def _words(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return np.array([row[name] for row in rows], dtype=object)
