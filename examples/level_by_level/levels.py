"""A prediction level by level: what each level adds to the time, and what becomes of the error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from errcomp.errors import InputError, describe_names
from errcomp.propagation.errors import ErrorModel
from errcomp.propagation.graph import Node
from errcomp.propagation.outcome import Outcome
from errcomp.propagation.propagating import propagate
from errcomp.tables import Kernels

#: Assumptions on what kernels share that the examples are propagated under.
ASSUMED = ("independent", "repeats", "classes", "comonotonic")
#: The lowest level: the kernels of one layer, none of whose errors cancels.
KERNELS = "kernels"
#: Probability of the bands.
LEVEL = 0.9


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Time of one level.

    Attributes
    ----------
    level : str
        Its name.
    predicted : float
        Without any error, in milliseconds.
    mean, median, low, high : float
        Mean, median and 90 % band, in milliseconds.
    relative_sd : float
        sd / mean, a fraction.
    growth : float
        relative_sd over that of the level below; NaN for the lowest, and where nothing errs below.
    since_kernels : float
        relative_sd over that of the kernels.
    """

    level: str
    predicted: float
    mean: float
    median: float
    low: float
    high: float
    relative_sd: float
    growth: float
    since_kernels: float


@dataclass(frozen=True, slots=True)
class LevelsTable:
    """Levels from the kernels up, under one assumption; prints as a table.

    Attributes
    ----------
    assumption : str
        What the errors of kernels share.
    rows : tuple of LevelRow
        From the kernels up.
    """

    assumption: str
    rows: tuple[LevelRow, ...]

    def row(self, level: str) -> LevelRow:
        """Return one level.

        Raises
        ------
        InputError
            There is no such level.
        """
        for row in self.rows:
            if row.level == level:
                return row
        names = [row.level for row in self.rows]
        raise InputError(f"no level {level!r}. Levels: {describe_names(names, wanted=level)}")

    def __str__(self) -> str:
        lines = [
            f"errors of kernels: {self.assumption}",
            f"{'level':<24}{'predicted':>11}{'mean':>10}{'90 % band':>23}{'rel. sd':>9}"
            f"{'growth':>8}{'vs kernels':>12}",
        ]
        for row in self.rows:
            band = f"{format_time(row.low)} – {format_time(row.high)}"
            lines.append(
                f"{row.level:<24}{format_time(row.predicted):>11}{format_time(row.mean):>10}"
                f"{band:>23}{100 * row.relative_sd:>7.2f} %{_factor(row.growth):>8}"
                f"{_factor(row.since_kernels):>12}"
            )
        return "\n".join(lines)


def _factor(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def format_time(milliseconds: float) -> str:
    """Write a time with four digits or so, from one second on in seconds.

    Examples
    --------
    >>> format_time(52_340.0), format_time(17.04), format_time(0.1514), format_time(float("inf"))
    ('52.34 s', '17.04 ms', '0.151 ms', 'never')
    """
    if math.isinf(milliseconds):
        return "never"
    value, unit = (milliseconds / 1000, "s") if milliseconds >= 1000 else (milliseconds, "ms")
    decimals = 0 if value >= 1000 else 1 if value >= 100 else 2 if value >= 1 else 3
    return f"{value:.{decimals}f} {unit}"


def outcome_of(
    kernels: Kernels,
    errors: ErrorModel,
    graph: Node,
    assumption: str,
    *,
    levels: Sequence[float],
    draws: int,
    seed: int,
) -> Outcome:
    """Propagate one graph under one of the assumptions that give a distribution.

    Raises
    ------
    InputError
        The assumption is not one of `ASSUMED`.
    """
    if assumption not in ASSUMED:
        raise InputError(f"assumption must be one of {', '.join(ASSUMED)}, got {assumption!r}")
    return propagate(
        kernels,
        correlation=assumption,
        errors=errors,
        graph=graph,
        levels=levels,
        draws=draws,
        seed=seed,
    ).of()


def propagate_levels(
    kernels: Kernels,
    errors: ErrorModel,
    graphs: Mapping[str, Node],
    assumption: str,
    *,
    draws: int,
    seed: int,
) -> LevelsTable:
    """Propagate each level's graph under one assumption.

    The first graph is a layer: with all its errors alike it is also the level of the kernels.

    Raises
    ------
    InputError
        The assumption is not one of `ASSUMED`.
    """
    layer = next(iter(graphs.values()))
    steps = [(KERNELS, layer, "comonotonic"), *((n, g, assumption) for n, g in graphs.items())]
    rows: list[LevelRow] = []
    for name, graph, assumed in steps:
        outcome = outcome_of(
            kernels, errors, graph, assumed, levels=(LEVEL,), draws=draws, seed=seed
        )
        band = outcome.band(LEVEL)
        assert outcome.mean is not None  # normal errors, and no queue below the service
        assert outcome.median is not None
        assert outcome.relative_sd is not None
        spread = outcome.relative_sd
        below = rows[-1].relative_sd if rows else 0.0
        kernel = rows[0].relative_sd if rows else spread
        rows.append(
            LevelRow(
                name,
                outcome.prediction,
                outcome.mean,
                outcome.median,
                band.low,
                band.high,
                spread,
                spread / below if below else math.nan,
                spread / kernel if kernel else math.nan,
            )
        )
    return LevelsTable(assumption, tuple(rows))
