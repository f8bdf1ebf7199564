r"""Rules by which a set of pairs becomes a published figure.

With :math:`a_i = |p_i - m_i| / d_i` and the denominator :math:`d_i` one of measured, predicted,
smaller, larger, or mean of both:

================== ================================================= ====
aggregation        error                                             bits
================== ================================================= ====
mean               :math:`\frac1n \sum a_i`                          0
median             middle value of :math:`a_i`                       2
geometric mean     :math:`\exp(\frac1n \sum \ln a_i)`                2
weighted           :math:`\sum |p_i - m_i| / \sum d_i`               2
root mean square   :math:`\sqrt{\frac1n \sum a_i^2}`                 3
ratio of totals    :math:`|\sum p_i - \sum m_i| / d(\sum p, \sum m)` 3
mean of rounded    :math:`\frac1n \sum` of :math:`a_i` as printed    3–4
share within       share of :math:`a_i` up to 5 %, or 10 %           3
correlation        Pearson's :math:`r`                               2
R²                 :math:`1 - \sum (p_i - m_i)^2 / \sum (m_i - \bar   2
                   m)^2`
squared            :math:`r^2`, which is often printed as R²         3
correlation
================== ================================================= ====

The bits say how far a rule is from the most common one, on the scale of the complexity. Any
denominator but the measurement costs 3 more, and so does reading the figure as 100 % minus the
error. The ratio of totals is also the relative difference of the two means. The geometric mean is 0
if an error is 0.

The last three have no denominator (``errcomp.metrics.pearson``, ``errcomp.metrics.r2``). They are
rarely below 50 %, so they cost 6 more there. They need three pairs. They are left out where the
measurements (for a correlation, also the predictions) of a subset differ by less than a thousandth
(standard deviation over root mean square).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from errcomp.claims.printed import Printed, tolerance
from errcomp.claims.search.keys import BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DENOMINATORS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "measured": lambda p, m: m,
    "predicted": lambda p, m: p,
    "smaller": np.minimum,
    "larger": np.maximum,
    "mean of both": lambda p, m: (p + m) / 2,
}

#: Stands for the logarithm of zero: so low that no other errors outweigh it in a mean.
_LOG_ZERO = -1e9

#: Variance over mean square below which sums say too little about the variance.
_CONSTANT = 1e-6
_FEWEST = 3  # pairs of a correlation: two are always on a line
_FAR_FETCHED = 6  # bits for reading a low figure as a correlation

Reading = Literal["error", "100 - error", "share", "agreement"]
Kind = Literal["mean", "log", "square", "weighted", "totals", "median", "agreement"]


class Sums(Protocol):
    """Sums over the pairs of each of many sets, by the name of the term."""

    def __call__(self, name: str) -> Floats:
        """Return the sums."""

    def inverse(self, name: str) -> Floats:
        """Return one over the sums."""

    def once(self, name: str, make: Callable[[Sums], Floats]) -> Floats:
        """Return a result computed from sums, only once for all families that need it."""


@dataclass(frozen=True, slots=True)
class Family:
    """An aggregation with a denominator: one number for a set of pairs.

    ``kind`` says how the number follows from sums over the pairs (all but the median do); ``term``
    names the term that is summed, see ``rows_for``.
    """

    aggregation: str
    denominator: str
    kind: Kind
    term: str
    cost: int

    def combine(self, sums: Sums) -> Floats:
        """Compute the number of many sets from their sums; for some kinds its logarithm or square.

        NaN where it is not defined.
        """
        if self.kind == "agreement":
            return _AGREEMENTS[self.aggregation](sums)
        if self.kind == "totals":
            p, m = sums("predicted"), sums("measured")
            return np.abs(p - m) / DENOMINATORS[self.denominator](p, m)
        above, below = self.terms
        return sums(above) * sums.inverse(below)

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of ``rows_for`` that this family needs."""
        total = f"total {self.denominator}"
        if self.kind == "totals":
            return ("predicted", "measured", total)
        if self.kind == "agreement":
            return ("one", "predicted", "measured", *_PRODUCTS)
        return (self.term, total if self.kind == "weighted" else "one")

    def scale(self, values: Floats) -> Floats:
        """Convert values to the scale of ``combine``, which keeps their order."""
        if self.kind == "log":
            with np.errstate(divide="ignore"):
                return np.log(values)
        return values**2 if self.kind == "square" else values

    def unscale(self, values: Floats) -> Floats:
        """Undo ``scale``."""
        if self.kind == "log":
            return np.exp(values)
        return np.sqrt(values) if self.kind == "square" else values


@dataclass(frozen=True, slots=True)
class Rule:
    """A family and the reading of the published word.

    Error, 100 % minus the error, share, or agreement (a correlation or R²).
    """

    family: Family
    reading: Reading
    cost: int

    @property
    def aggregation(self) -> str:
        """Name of the aggregation."""
        return self.family.aggregation

    @property
    def denominator(self) -> str:
        """Name of the denominator."""
        return self.family.denominator

    def read(self, values: Floats) -> Floats:
        """Turn values of the family into figures as they are published."""
        return 1 - values if self.reading == "100 - error" else values


def _families() -> tuple[Family, ...]:
    shapes: list[tuple[str, Kind, str, int]] = [
        ("mean", "mean", "error", 0),
        ("median", "median", "error", 2),
        ("geometric mean", "log", "log", 2),
        ("weighted", "weighted", "absolute", 2),
        ("root mean square", "square", "square", 3),
        ("ratio of totals", "totals", "", 3),
        ("mean of rounded (1 decimal)", "mean", "rounded 1", 3),
        ("mean of rounded (0 decimals)", "mean", "rounded 0", 4),
        ("mean of rounded (2 decimals)", "mean", "rounded 2", 4),
        ("share within 5 %", "mean", "within 5", 3),
        ("share within 10 %", "mean", "within 10", 3),
    ]
    own = ("absolute", "")
    agreements = [("correlation", 2), ("R²", 2), ("squared correlation", 3)]
    return tuple(
        Family(
            aggregation,
            denominator,
            kind,
            term if term in own else f"{term} {denominator}",
            BITS * (bits + (0 if denominator == "measured" else 3)),
        )
        for denominator in DENOMINATORS
        for aggregation, kind, term, bits in shapes
    ) + tuple(Family(name, "", "agreement", "", BITS * bits) for name, bits in agreements)


def _rules() -> tuple[Rule, ...]:
    rules = []
    for family in FAMILIES:
        if family.aggregation.startswith("share"):
            rules.append(Rule(family, "share", family.cost))
        elif family.kind == "agreement":
            rules.append(Rule(family, "agreement", family.cost))
        else:
            rules.append(Rule(family, "error", family.cost))
            rules.append(Rule(family, "100 - error", family.cost + 3 * BITS))
    return tuple(rules)


def _spread(sums: Sums, name: str) -> Floats:
    """Sum of the squared deviations from the mean, NaN where rounding errors may dominate it."""
    total, squares = sums(name), sums(f"{name} squared")
    spread = squares - total * total * sums.inverse("one")
    known = spread > _CONSTANT * squares
    known &= sums.inverse("one") <= 1 / _FEWEST
    return np.where(known, spread, np.nan)


def _measured_spread(sums: Sums) -> Floats:
    return _spread(sums, "measured")


def _r2(sums: Sums) -> Floats:
    return 1 - sums("difference squared") / sums.once("spread", _measured_spread)


def _r(sums: Sums) -> Floats:
    both = sums("predicted") * sums("measured")
    both *= -sums.inverse("one")
    both += sums("predicted measured")
    both /= np.sqrt(_spread(sums, "predicted"))
    both /= np.sqrt(sums.once("spread", _measured_spread))
    return np.clip(both, -1, 1, out=both)


def _correlation(sums: Sums) -> Floats:
    return sums.once("correlation", _r)


_PRODUCTS = ("predicted squared", "measured squared", "predicted measured", "difference squared")
_AGREEMENTS: dict[str, Callable[[Sums], Floats]] = {
    "correlation": _correlation,
    "R²": _r2,
    "squared correlation": lambda sums: _correlation(sums) ** 2,
}
FAMILIES = _families()
RULES = _rules()


def rules_for(figures: Sequence[Printed]) -> tuple[Rule, ...]:
    """Return the rules, with their costs for these figures.

    Examples
    --------
    >>> from errcomp.claims.printed import parse_printed
    >>> for text in ("0.9986", "2.3%"):
    ...     rules = rules_for([parse_printed(text)])
    ...     print([rule.cost // BITS for rule in rules if rule.aggregation == "R²"])
    [2]
    [8]
    """
    if all(figure.low >= 0.5 for figure in figures):
        return RULES
    more = _FAR_FETCHED * BITS
    return tuple(replace(r, cost=r.cost + more) if r.reading == "agreement" else r for r in RULES)


def errors(predicted: Floats, measured: Floats, denominator: str) -> Floats:
    """Absolute error of each pair relative to the denominator."""
    return np.abs(predicted - measured) / DENOMINATORS[denominator](predicted, measured)


def rows_for(predicted: Floats, measured: Floats) -> dict[str, Floats]:
    """Compute the terms of each pair that the families sum.

    Terms that overflow are left out, and those with a denominator that is not positive for every
    pair. The families that need them cannot be searched.
    """
    rows = {
        "one": np.ones_like(measured),
        "predicted": predicted,
        "measured": measured,
        "absolute": np.abs(predicted - measured),
        "predicted squared": predicted**2,
        "measured squared": measured**2,
        "predicted measured": predicted * measured,
        "difference squared": (predicted - measured) ** 2,
    }
    for name, denominator in DENOMINATORS.items():
        total = denominator(predicted, measured)
        if not (total > 0).all():
            continue
        error = errors(predicted, measured, name)
        positive = np.where(error > 0, error, 1.0)
        rows[f"total {name}"] = total
        rows[f"error {name}"] = error
        rows[f"log {name}"] = np.where(error > 0, np.log(positive), _LOG_ZERO)
        with np.errstate(over="ignore"):
            rows[f"square {name}"] = error**2
        for decimals in (0, 1, 2):
            rows[f"rounded {decimals} {name}"] = np.round(100 * error, decimals) / 100
        for percent in (5, 10):
            rows[f"within {percent} {name}"] = (error <= percent / 100).astype(np.float64)
    with np.errstate(over="ignore"):
        return {name: values for name, values in rows.items() if np.isfinite(values.sum())}


def evaluate(rule: Rule, *, predicted: Floats, measured: Floats) -> float:
    """Compute the figure of one set of pairs from its definition.

    It checks the sums of the search, so it shares no code with them.

    Parameters
    ----------
    rule : Rule
        Aggregation, denominator and reading.
    predicted, measured : ndarray, shape (n,)
        Same unit; the denominator must be positive.

    Returns
    -------
    float
        A fraction; NaN where the figure is not defined.

    Examples
    --------
    >>> evaluate(RULES[0], predicted=np.array([11.0, 90.0]), measured=np.array([10.0, 100.0]))
    0.1
    """
    family = rule.family
    if family.kind == "totals":
        p, m = predicted.sum(keepdims=True), measured.sum(keepdims=True)
        value = errors(p, m, family.denominator)[0]
    elif family.kind == "weighted":
        total = DENOMINATORS[family.denominator](predicted, measured).sum()
        value = np.abs(predicted - measured).sum() / total
    elif family.kind == "agreement":
        value = _agreement(family.aggregation, predicted, measured)
    else:
        error = errors(predicted, measured, family.denominator)
        value = _AGGREGATIONS[family.aggregation](error)
    return float(1 - value if rule.reading == "100 - error" else value)


def _geometric_mean(error: Floats) -> np.float64:
    return np.float64(0) if (error == 0).any() else np.exp(np.log(error).mean())


def _agreement(name: str, predicted: Floats, measured: Floats) -> float:
    p, m = predicted - predicted.mean(), measured - measured.mean()
    if len(m) < _FEWEST or not m.any() or (name != "R²" and not p.any()):
        return math.nan
    if name == "R²":
        return float(1 - ((predicted - measured) ** 2).sum() / (m**2).sum())
    r = float((p * m).sum() / (np.sqrt((p**2).sum()) * np.sqrt((m**2).sum())))
    return r**2 if name == "squared correlation" else r


_AGGREGATIONS: dict[str, Callable[[Floats], np.floating]] = {
    "mean": np.mean,
    "median": np.median,
    "geometric mean": _geometric_mean,
    "root mean square": lambda e: np.sqrt(np.mean(e**2)),
    "mean of rounded (0 decimals)": lambda e: np.mean(np.round(100 * e, 0)) / 100,
    "mean of rounded (1 decimal)": lambda e: np.mean(np.round(100 * e, 1)) / 100,
    "mean of rounded (2 decimals)": lambda e: np.mean(np.round(100 * e, 2)) / 100,
    "share within 5 %": lambda e: np.mean(e <= 0.05),
    "share within 10 %": lambda e: np.mean(e <= 0.10),
}


# Values on the edge of a printed figure: the last bit of a sum must not decide.


def contains(figure: Printed, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which values would be printed like the figure, or are in its range.

    Like ``Printed.contains``, for values with a rounding error.

    Parameters
    ----------
    figure : Printed
        The published figure.
    values : ndarray
        Fractions.

    Returns
    -------
    ndarray of bool
        Of the same shape.

    Examples
    --------
    >>> from errcomp.claims.printed import parse_printed
    >>> contains(parse_printed("0.3"), np.array([0.25, np.nextafter(0.25, 0), 0.2499]))
    array([ True,  True, False])
    """
    slack = tolerance(figure)
    for edge in figure.ends:
        values = np.where(np.abs(values - edge) <= slack, edge, values)
    inside: NDArray[np.bool_] = (figure.low <= values) & (values < figure.high)
    return inside | (values == figure.high) if figure.closed else inside
