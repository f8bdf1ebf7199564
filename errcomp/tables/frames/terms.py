"""What is added up over rows: errors of pairs and their products, as expressions of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["MARK", "Sum", "base_terms", "bucket_of", "product_of", "sum_of"]

#: What the names of columns made here begin with, so that they meet none of the user's.
MARK = "_errcomp_"
#: A larger logarithm is that of no float64.
_LARGEST_LOG = 710.0
#: The inverse of a smaller ratio is no float64.
_SMALLEST_RATIO = 1e-307


class Sum(NamedTuple):
    """One figure over the rows of a group.

    Attributes
    ----------
    terms : tuple of str
        What is added up is the product of these terms (see `_TERMS`); ``p`` is the prediction,
        ``m`` the measurement.
    how : {"sum", "max", "count", "within"}
        ``"count"``: rows where the term exists; ``"within"``: rows where it is at most ``limit``.
    limit : float
    """

    terms: tuple[str, ...]
    how: str = "sum"
    limit: float = 0.0

    @property
    def is_product(self) -> bool:
        """Whether it runs over a column of its own, and not over a term."""
        return len(self.terms) > 1 or self.how == "within"

    @property
    def name(self) -> str:
        """Return the column of the result."""
        # Spark takes a point for access to a part of a column.
        end = f"_{self.limit:.17g}".replace(".", "_") if self.how == "within" else ""
        return f"{MARK}{self.how}_{'_'.join(self.terms)}{end}"


class _Term(NamedTuple):
    """One column from others: a function of their expressions, and their names."""

    make: Callable[[Callable[[str], nw.Expr]], nw.Expr]
    needs: tuple[str, ...] = ()


def _positive(expression: nw.Expr) -> nw.Expr:
    """Make other values missing: engines disagree on what the logarithm of zero is."""
    import narwhals as nw

    return nw.when(expression > 0).then(expression)


def _one_where(condition: nw.Expr) -> nw.Expr:
    import narwhals as nw

    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))


def _factor(ratio: nw.Expr) -> nw.Expr:
    import narwhals as nw

    able = nw.when(ratio > _SMALLEST_RATIO).then(ratio)  # some engines fail when they divide by 0
    return nw.when(able > 1.0).then(able).otherwise(1.0 / able) - 1.0


#: Missing where it is not defined, so that a count tells; after those that it is made from.
_TERMS: Mapping[str, _Term] = {
    "signed": _Term(lambda c: c("p") - c("m")),
    "signed_ape": _Term(lambda c: c("signed") / c("m"), ("signed",)),
    "error": _Term(lambda c: (c("p") - c("m")).abs()),
    "ape": _Term(lambda c: c("error") / c("m"), ("error",)),
    "ratio": _Term(lambda c: c("p") / c("m")),
    "symmetric": _Term(lambda c: c("error") * 2.0 / (c("p").abs() + c("m")), ("error",)),
    "high": _Term(lambda c: _one_where(c("p") > c("m"))),
    "low": _Term(lambda c: _one_where(c("p") < c("m"))),
    # By how much too high or too low as a factor: twice either way is 1.
    "factor": _Term(lambda c: _factor(c("ratio")), ("ratio",)),
    "log_ape": _Term(lambda c: _positive(c("ape")).log(), ("error", "ape")),
    "log_ratio": _Term(lambda c: _positive(c("ratio")).log(), ("ratio",)),
}


def _column(name: str) -> nw.Expr:
    import narwhals as nw

    return nw.col(MARK + name)


def base_terms(terms: Iterable[str]) -> list[list[nw.Expr]]:
    """Return the columns of these terms, in steps that build on each other."""
    known = [term for term in terms if term in _TERMS]
    todo = {name for term in known for name in (*_TERMS[term].needs, term)}
    made: set[str] = set()
    steps = []
    while todo:
        ready = [name for name in _TERMS if name in todo and made.issuperset(_TERMS[name].needs)]
        steps.append([_TERMS[name].make(_column).alias(MARK + name) for name in ready])
        made.update(ready)
        todo.difference_update(ready)
    return steps


def product_of(one: Sum) -> nw.Expr:
    """Return the column that a sum of products runs over: engines add up columns."""
    import narwhals as nw

    product = _column(one.terms[0])
    for term in one.terms[1:]:
        product = product * _column(term)
    if one.how == "within":
        product = nw.when(product <= one.limit).then(nw.lit(1)).otherwise(nw.lit(0))
    return product.alias(one.name)


def sum_of(one: Sum) -> nw.Expr:
    """Return the sum over its column."""
    import narwhals as nw

    column = nw.col(one.name) if one.is_product else _column(one.terms[0])
    how = {"max": column.max, "count": column.count}.get(one.how, column.sum)
    return how().alias(one.name)


def bucket_of(log_term: str, width: float) -> nw.Expr:
    """Return the number of the bucket in which the logarithm of a value lies, as a float."""
    import narwhals as nw

    # Spark cannot round what is infinite.
    log = nw.when(_column(log_term) > _LARGEST_LOG).then(nw.lit(1e6)).otherwise(_column(log_term))
    return (log / width).floor().alias(f"{MARK}bucket")
