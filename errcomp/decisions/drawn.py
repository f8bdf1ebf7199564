"""Choices between alternatives whose times come as draws: runs, graphs, serving configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp.decisions.alternatives import Asked, choose
from errcomp.decisions.comparing import Comparison
from errcomp.errors import InputError, describe_names
from errcomp.tables.choices import Floats, Ints, Rows

#: Most alternatives of which every comparison is listed; of more, those with the chosen one are.
#: Draws that comparisons are counted in.
_LISTED, _COUNTED = 1_000, 2_000


def compare_drawn(
    draws: Mapping[str, Any] | NDArray[np.floating],
    *,
    names: Sequence[str] | None,
    prices: Mapping[str, float] | Sequence[float] | None,
    asked: Asked,
) -> Comparison:
    """See `errcomp.decisions.compare_draws`."""
    times, alternatives = _table(draws, names)
    k = len(alternatives)
    price = np.zeros(k) if prices is None else _prices(prices, alternatives)
    sign = -1.0 if asked.higher else 1.0
    middle = np.median(times[:_COUNTED], axis=0) * sign
    code = np.arange(k)
    none = np.zeros(k, dtype=np.int64)
    rows = Rows(middle, np.full(k, np.nan), price, code, none, none)
    times = times if sign > 0 else -times
    choice, each = choose({}, alternatives, rows, times, asked, absolute=True)
    chosen = alternatives.index(choice.chosen) if choice.chosen else -1
    first, second, chance = _comparisons(times, price, chosen)
    swap = chance < 0.5
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    cost = middle + price
    label = np.array(alternatives, dtype=object)
    return Comparison(
        source="",
        tool="",
        between=("alternative",),
        within=(),
        per="",
        price=asked.price,
        higher=asked.higher,
        limit=np.nan if asked.limit is None else asked.limit,
        unit=asked.unit,
        level=asked.level,
        taught=0,
        left_out="",
        conditions=({},),
        condition=np.zeros(len(first), dtype=np.int64),
        first=label[first],
        second=label[second],
        predicted_ratio=np.exp(cost[second] - cost[first]),
        measured_ratio=np.full(len(first), np.nan),
        p_faster=np.where(swap, 1 - chance, chance),
        choices=(choice,),
        alternatives=tuple(each),
        every=k <= _LISTED,
        repeated=0,
        dropped=(),
        seed=0,
    )


def _table(
    draws: Mapping[str, Any] | NDArray[np.floating], names: Sequence[str] | None
) -> tuple[NDArray[np.floating], list[str]]:
    """Return the logarithms of the draws, shape (draws, k), and the names."""
    values: NDArray[Any]
    if isinstance(draws, Mapping):
        if names is not None:
            raise InputError("the mapping already names the alternatives: leave out names")
        names = [str(name) for name in draws]
        lengths = {name: np.shape(values) for name, values in draws.items()}
        if len(set(lengths.values())) > 1 or any(len(shape) != 1 for shape in lengths.values()):
            words = ", ".join(f"{name} {shape}" for name, shape in list(lengths.items())[:3])
            raise InputError(
                f"draws must be arrays of one length, got {words}. Draw them together: "
                "errcomp.propagation.draw_runs."
            )
        values = np.column_stack([np.asarray(v) for v in draws.values()]) if draws else np.empty(0)
    else:
        values = np.asarray(draws)
    if values.ndim != 2 or values.shape[1] < 2 or len(values) < 2 or values.dtype.kind not in "fiu":
        raise InputError(
            f"draws must be numbers of shape (draws, alternatives), at least 2 of each; got "
            f"{values.dtype} of shape {values.shape}"
        )
    if names is None:
        names = [str(i) for i in range(values.shape[1])]
    if len(names) != values.shape[1] or len(set(names)) < len(names):
        raise InputError(
            f"names must be {values.shape[1]} different names, one for each column of the draws"
        )
    kind = values.dtype if values.dtype.kind == "f" else np.float64
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(values, dtype=kind)
    total = logs.sum(axis=0, dtype=float)
    if not np.isfinite(total).all():
        bad = int(np.flatnonzero(~np.isfinite(total))[0])
        row = int(np.flatnonzero(~np.isfinite(logs[:, bad]))[0])
        raise InputError(
            f"draws must be positive and finite, got {values[row, bad]} of {names[bad]!r} in draw "
            f"{row}. Leave this alternative out, or draw again."
        )
    return logs, [str(name) for name in names]


def _prices(prices: Mapping[str, float] | Sequence[float], names: Sequence[str]) -> Floats:
    """Return the logarithms of the prices in the order of the names."""
    if isinstance(prices, Mapping):
        if lacking := [name for name in names if name not in prices]:
            raise InputError(
                f"no price for {describe_names(lacking)}. Give one for each alternative."
            )
        prices = [prices[name] for name in names]
    values = np.asarray(prices, dtype=float)
    if values.shape != (len(names),):
        raise InputError(f"prices must be {len(names)} numbers, got shape {values.shape}")
    bad = ~((values > 0) & np.isfinite(values))
    if bad.any():
        raise InputError(
            f"a price must be positive, got {values[bad][0]} of {names[bad.argmax()]!r}"
        )
    logs: Floats = np.log(values)
    return logs


def _comparisons(
    times: NDArray[np.floating], price: Floats, chosen: int
) -> tuple[Ints, Ints, Floats]:
    """Return the comparisons that are listed, and P(first costs less) by counting draws."""
    k = times.shape[1]
    costs = (times[:_COUNTED] + price).astype(np.float32).T
    costs = np.ascontiguousarray(costs)
    if k <= _LISTED:
        first, second = np.triu_indices(k, 1)
        each = [_share(costs[i], costs[i + 1 :]) for i in range(k - 1)]
        return first, second, np.concatenate(each)
    if chosen < 0:
        none = np.empty(0, dtype=np.int64)
        return none, none, np.empty(0)
    others = np.delete(np.arange(k), chosen)
    return np.full(k - 1, chosen), others, _share(costs[chosen], costs[others])


def _share(one: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
    """Return the share of draws in which one costs less; ties count half."""
    less: Floats = (one < others).mean(axis=1) + (one == others).mean(axis=1) / 2
    return less
