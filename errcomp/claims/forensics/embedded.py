"""The figures of the registry as a table of printed figures."""

from __future__ import annotations

from errcomp.claims.printed import parse_printed
from errcomp.claims.registry import NOT_STATED, Claim, claims

__all__ = ["registry_figures"]

#: Metric and aggregation of a claim → quantity of a table of figures.
_QUANTITIES = {
    ("MAPE", NOT_STATED): "mean",
    ("error", "mean"): "mean",
    ("MAPE", "mean"): "mean",
    ("error", "median"): "median",
    ("error", "geometric mean"): "geometric mean",
    ("error", "total"): "bias",
}


def registry_figures() -> dict[str, list[str]]:
    """Return the figures of the registry, in groups that are about the same set of errors.

    Bounds, ranges, correlations of times, and errors whose average the source does not state are
    left out: no rule applies to them.

    Returns
    -------
    dict of str to list
        Columns ``group``, ``part``, ``quantity``, ``value`` and ``n``, for `forensics`.

    Examples
    --------
    >>> table = registry_figures()
    >>> {"NeuSight: end-to-end latency (NeuSight (ASPLOS 2025), abstract)"} <= set(table["group"])
    True
    """
    known = [(claim, name) for claim in claims() if (name := _quantity(claim)) is not None]
    about: dict[tuple[str, ...], set[str]] = {}
    for claim, _ in known:
        about.setdefault(_set(claim), set()).add(_circumstances(claim))
    rows = [
        {
            "group": _group(claim, apart=len(about[_set(claim)]) > 1),
            "part": ", ".join(claim.subset.values()),
            "quantity": name,
            "value": claim.printed,
            "n": "" if claim.n == NOT_STATED else str(claim.n),
        }
        for claim, name in known
    ]
    return {
        name: [row[name] for row in rows] for name in ("group", "part", "quantity", "value", "n")
    }


def _quantity(claim: Claim) -> str | None:
    if not claim.printed or parse_printed(claim.printed).kind != "value":
        return None
    if claim.kind == "share":
        return claim.metric
    return _QUANTITIES.get((claim.metric, claim.aggregation))


def _set(claim: Claim) -> tuple[str, ...]:
    return claim.tool, claim.quantity, claim.source


def _circumstances(claim: Claim) -> str:
    """Return what tells sets of errors of one source apart, other than the keys of a table."""
    said = (claim.scope, claim.protocol)
    return "; ".join(text for text in said if text != NOT_STATED)


def _group(claim: Claim, *, apart: bool) -> str:
    more = f"; {_circumstances(claim)}" if apart and _circumstances(claim) else ""
    return f"{claim.tool}: {claim.quantity} ({claim.source}{more})"
