"""Compare the figures of a whole with those of its parts, and printed errors with printed times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from errcomp.claims.forensics.reading import Figure, Figures, FiguresTable
from errcomp.claims.forensics.rules import percent

__all__ = ["Found", "of_cases", "of_parts"]


@dataclass(frozen=True, slots=True)
class Found:
    """One finding about several sets: impossible, or possible only under a condition."""

    figures: tuple[Figure, ...]
    part: str
    proof: str
    condition: str = ""
    low: float = -math.inf
    high: float = math.inf


def of_parts(table: FiguresTable, *, cut: bool = False) -> Iterator[Found]:
    """Compare each figure of the whole with the same figure of all parts.

    The mean of all is the mean of the parts weighted by their numbers of cases; the largest error
    of all is the largest of the parts, and the median of all lies between the medians of the parts.
    """
    for figure in table.whole.figures:
        parts = [(part, same) for part in table.parts if (same := _same(part, figure))]
        if len(parts) < 2 or len(parts) < len(table.parts):
            continue
        if figure.quantity in ("mean", "bias", "share"):
            yield from _weighted(figure, table.whole.n, parts, cut)
        elif figure.quantity in ("max", "min"):
            yield from _extreme(figure, [same for _, same in parts], cut)
        elif figure.quantity in ("median", "geomean", "rms"):
            yield from _between(figure, [same for _, same in parts], cut)


def _same(part: Figures, figure: Figure) -> Figure | None:
    def key(one: Figure) -> tuple[str, float]:
        return one.quantity, -1.0 if math.isnan(one.at) else one.at

    return next((one for one in part.figures if key(one) == key(figure)), None)


def _ends(figure: Figure, cut: bool) -> tuple[float, float]:
    return figure.cut if cut else (figure.low, figure.high)


def _weighted(
    figure: Figure, n: int | None, parts: Sequence[tuple[Figures, Figure]], cut: bool
) -> Iterator[Found]:
    figures = (figure, *(same for _, same in parts))
    if any(part.n is None for part, _ in parts):
        yield from _between(figure, figures[1:], cut)
        return
    sizes = [part.n or 0 for part, _ in parts]
    total = sum(sizes)
    low, high = _ends(figure, cut)
    lows, highs = zip(*(_ends(same, cut) for same in figures[1:]), strict=True)
    least = sum(size * end for size, end in zip(sizes, lows, strict=True)) / total
    most = sum(size * end for size, end in zip(sizes, highs, strict=True)) / total
    if not _apart(low, high, least, most):
        return
    terms = " + ".join(
        f"{size} × {same.text}" for size, same in zip(sizes, figures[1:], strict=True)
    )
    proof = (
        f"({terms}) / {total} is between {percent(least, 4)} and {percent(most, 4)}, not "
        f"{figure.text}."
    )
    condition = ""
    if n is not None and n != total:
        condition = f"the parts are not the whole: their n sum to {total}, not {n}"
    elif not _apart(low, high, sum(lows) / len(lows), sum(highs) / len(highs)):
        condition = f"{figure} is the plain mean of the parts' figures, not of all cases"
    yield Found(figures, "", proof, condition, least, most)


def _extreme(figure: Figure, parts: Sequence[Figure], cut: bool) -> Iterator[Found]:
    choose = max if figure.quantity == "max" else min
    low, high = _ends(figure, cut)
    least = choose(_ends(part, cut)[0] for part in parts)
    most = choose(_ends(part, cut)[1] for part in parts)
    if _apart(low, high, least, most):
        word = "largest" if choose is max else "smallest"
        nearest = choose(parts, key=lambda part: part.low)
        yield Found(
            (figure, nearest),
            "",
            f"The {word} of the parts is {nearest.text}, not {figure.text}.",
            "",
            least,
            most,
        )


def _between(figure: Figure, parts: Sequence[Figure], cut: bool) -> Iterator[Found]:
    low, high = _ends(figure, cut)
    smallest = min(parts, key=lambda part: _ends(part, cut)[0])
    largest = max(parts, key=lambda part: _ends(part, cut)[1])
    if _apart(low, high, _ends(smallest, cut)[0], _ends(largest, cut)[1]):
        yield Found(
            (figure, smallest, largest),
            "",
            f"The {figure.name} of all cases lies between those of the parts, from "
            f"{smallest.text} to {largest.text}; {figure.text} does not.",
            "",
            _ends(smallest, cut)[0],
            _ends(largest, cut)[1],
        )


def of_cases(table: FiguresTable, *, cut: bool = False) -> Iterator[Found]:
    """Compare printed errors and speed-ups with the times beside them, and figures with errors."""
    for case in table.cases:
        yield from _of_case(case, cut)
    errors = [one for case in table.cases if (one := _error_of(case, cut))]
    n = table.whole.n
    if len(errors) < max(len(table.cases), 2) or (n is not None and n != len(errors)):
        return
    lows, highs = (sorted(ends) for ends in zip(*(ends for _, ends in errors), strict=True))
    for figure in table.whole.figures:
        ends = _recomputed(figure, lows, highs)
        if ends is not None and _apart(*_ends(figure, cut), *ends):
            yield Found(
                (figure, *(one for one, _ in errors)),
                "",
                f"Of the {len(errors)} cases printed, the {figure.name} is between "
                f"{percent(ends[0], 4)} and {percent(ends[1], 4)}, not {figure.text}.",
                "",
                *ends,
            )


def _error_of(case: Figures, cut: bool) -> tuple[Figure, tuple[float, float]] | None:
    """Return the absolute error of a case: as printed, else computed from its times."""
    if printed := case.of("error"):
        return printed, _ends(printed, cut)
    if signed := case.of("signed error"):
        return signed, _absolute(_ends(signed, cut))
    predicted, measured = case.of("predicted"), case.of("measured")
    if predicted and measured and measured.low > 0:
        low, high = _ratio(predicted, measured, cut)
        return predicted, _absolute((low - 1, high - 1))
    return None


def _recomputed(
    figure: Figure, lows: Sequence[float], highs: Sequence[float]
) -> tuple[float, float] | None:
    n = len(lows)
    if figure.quantity == "mean":
        return math.fsum(lows) / n, math.fsum(highs) / n
    if figure.quantity == "max":
        return lows[-1], highs[-1]
    if figure.quantity == "min":
        return lows[0], highs[0]
    if figure.quantity == "median":
        return lows[(n - 1) // 2], highs[n // 2]
    if figure.quantity == "share":
        # An error of exactly the limit may count as within it or not.
        within = (sum(high < figure.at for high in highs), sum(low <= figure.at for low in lows))
        return within[0] / n, within[1] / n
    return None


def _of_case(case: Figures, cut: bool) -> Iterator[Found]:
    predicted, measured = case.of("predicted"), case.of("measured")
    if predicted and measured and predicted.low > 0 and measured.low > 0:
        ratio = _ratio(predicted, measured, cut)
        inverse = _ratio(measured, predicted, cut)
        for name in ("error", "signed error"):
            if not (printed := case.of(name)):
                continue
            low, high = _ends(printed, cut)
            ends = (ratio[0] - 1, ratio[1] - 1)
            other = (1 - inverse[1], 1 - inverse[0])
            if name == "error":
                ends, other = _absolute(ends), _absolute(other)
            if not _apart(low, high, *ends):
                continue
            condition = ""
            if not _apart(low, high, *other):
                condition = "the error is relative to the prediction, not to the measurement"
            elif name == "signed error" and not _apart(low, high, -ends[1], -ends[0]):
                condition = "the error is measured − predicted"
            yield Found(
                (printed, predicted, measured),
                case.name,
                f"{predicted.text} against {measured.text} is an error between "
                f"{percent(ends[0], 4)} and {percent(ends[1], 4)}, not {printed.text}.",
                condition,
                *ends,
            )
    before, after, speedup = case.of("baseline"), case.of("time"), case.of("speedup")
    if before and after and speedup and before.low > 0 and after.low > 0:
        low, high = _ends(speedup, cut)
        ends = _ratio(before, after, cut)
        if _apart(low, high, *ends):
            inverse = _ratio(after, before, cut)
            condition = "" if _apart(low, high, *inverse) else "it is new over old time"
            yield Found(
                (speedup, before, after),
                case.name,
                f"{before.text} over {after.text} is between {ends[0]:.4g} and {ends[1]:.4g}, not "
                f"{speedup.text}.",
                condition,
            )


def _ratio(above: Figure, below: Figure, cut: bool) -> tuple[float, float]:
    (low, high), (least, most) = _ends(above, cut), _ends(below, cut)
    return low / most, high / least


def _absolute(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if low <= 0 <= high:
        return 0.0, max(-low, high)
    return min(abs(low), abs(high)), max(abs(low), abs(high))


def _apart(low: float, high: float, least: float, most: float) -> bool:
    """Say whether two intervals have no number in common, beyond the rounding of sums."""
    slack = 1e-9 * max(1e-3, *(abs(end) for end in (low, least) if math.isfinite(end)), 0.0)
    return low > most + slack or high < least - slack
