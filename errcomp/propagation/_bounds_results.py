"""Results of bounds that hold whatever the dependence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from errcomp.results import Caveat, format_number

__all__ = ["QuantileBounds", "VarianceBounds", "WorstCase"]


@dataclass(frozen=True, slots=True)
class VarianceBounds:
    """Mean of a sum, which no dependence changes, and the range of its standard deviation.

    Attributes
    ----------
    mean : float
        In the unit of the terms.
    low, high : float
        Standard deviation at least and at most. ``high`` is attained if all errors are increasing
        functions of one cause (comonotonic).
    low_attained : bool
        Whether some dependence has the standard deviation ``low``.
    triangle : float
        Sum of the standard deviations; above ``high`` where log-normal terms have different
        spreads, else equal.
    unit : str or None
    """

    mean: float
    low: float
    high: float
    low_attained: bool
    triangle: float
    unit: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class QuantileBounds:
    """How far a quantile of a sum can be moved by the dependence of its terms.

    The sharp bounds lie in [low, low_attained] and [high_attained, high].

    Attributes
    ----------
    q : float
        The quantile.
    low, high : float
        No dependence goes beyond these.
    low_attained, high_attained : float
        Some dependence goes as far as these.
    gap : float
        The larger of low_attained − low and high − high_attained: how much sharper the bounds
        could be at most.
    caveats : tuple of Caveat
        Whether the gap is above the tolerance, and whether a term has no mean.
    unit : str or None
    """

    q: float
    low: float
    high: float
    low_attained: float
    high_attained: float
    gap: float
    caveats: tuple[Caveat, ...]
    unit: str | None

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{100 * self.q:g} % quantile within [{format_number(self.low)}, "
            f"{format_number(self.high)}]{unit} whatever the dependence "
            f"(sharp to {format_number(self.gap, 2)}{unit})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        caveats = [caveat.to_dict() for caveat in self.caveats]
        return {**asdict(self), "caveats": caveats}


@dataclass(frozen=True, slots=True)
class WorstCase:
    """Largest error of a sum whose terms have bounded errors.

    Attributes
    ----------
    total : float
        Sum of the values.
    error : float
        Largest relative error of the sum, a fraction.
    low, high : float
        total · (1 − error) and total · (1 + error).
    """

    total: float
    error: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
