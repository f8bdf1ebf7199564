"""What the figures of one set of n relative errors must satisfy, and a proof where they do not.

All errors are absolute relative errors, at least 0. A figure stands for every number that is
printed like it, so that rounding never makes a table impossible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from errcomp.claims.forensics.order import Block, Bound, clash, highest, lowest
from errcomp.claims.forensics.reading import Figure
from errcomp.results import format_number

__all__ = ["MOST", "Conflict", "conflicts", "least_n"]

Ends = Callable[[Figure], tuple[float, float]]
#: Sizes that are tried where n is not stated.
MOST = 400
#: Means that lie between those of the lowest and the highest set: the power that each takes.
_POWERS = {"mean": 1.0, "rms": 2.0, "geomean": 0.0}


@dataclass(frozen=True, slots=True)
class Conflict:
    """Figures that exclude each other, and why, in sentences that can be followed by hand.

    The others allow the first figure from ``low`` to ``high``, where that is an interval.
    """

    figures: tuple[Figure, ...]
    proof: str
    low: float = -math.inf
    high: float = math.inf


def conflicts(figures: Sequence[Figure], n: int | None, *, cut: bool = False) -> list[Conflict]:
    """Return what is impossible about the figures of one set of errors.

    Parameters
    ----------
    figures : sequence of Figure
    n : int or None
        Number of errors; None: what is impossible for every number.
    cut : bool
        Whether digits were cut off instead of rounded.

    Returns
    -------
    list of Conflict
    """
    ends: Ends = (lambda figure: figure.cut) if cut else (lambda figure: (figure.low, figure.high))
    found = list(_shares(figures, n, ends))
    if not found:
        found += _ordered(figures, n, ends)
    found += _pairs(figures, n, ends)
    return found


def least_n(figures: Sequence[Figure]) -> int | None:
    """Return the smallest number of errors for which the figures are possible, if one is found."""
    return next((n for n in range(1, MOST + 1) if not conflicts(figures, n)), None)


def _shares(figures: Sequence[Figure], n: int | None, ends: Ends) -> Iterator[Conflict]:
    """Yield the shares that no whole number of n cases gives."""
    for figure in figures:
        if figure.quantity == "share" and n is not None:
            low, high = _counts(figure, n, ends)
            if low > high:
                below, above = high, high + 1
                yield Conflict(
                    (figure,),
                    f"A share of {n} cases is k / {n}. {below} of {n} are {percent(below / n, 4)}, "
                    f"{above} of {n} are {percent(above / n, 4)}; none is printed as "
                    f"{figure.text}.",
                )


def _counts(figure: Figure, n: int, ends: Ends) -> tuple[int, int]:
    """Return the smallest and largest k for which k / n is printed like this share."""
    low, high = ends(figure)
    return math.ceil(n * low - 1e-9 * n), math.floor(n * high + 1e-9 * n)


def bounds_of(figures: Sequence[Figure], n: int | None, ends: Ends) -> list[Bound]:
    """Return what the figures say about the values of the ordered set."""
    size = 1.0 if n is None else float(n)
    found: list[Bound] = []
    for i, figure in enumerate(figures):
        low, high = ends(figure)
        if figure.quantity == "max":
            found.append(Bound(True, size, high, i))
            if n is not None:
                found.append(Bound(False, n - 1, low, i))
        elif figure.quantity == "min":
            found.append(Bound(False, 0, low, i))
            if n is not None:
                found.append(Bound(True, 1, high, i))
        elif figure.quantity == "median":
            # Of an even number, the median is any number between the two in the middle.
            at = (0.5, 0.5) if n is None else ((n + 1) // 2, n // 2)
            found += [Bound(True, at[0], high, i), Bound(False, at[1], low, i)]
        elif figure.quantity == "quantile" and n is not None:
            # Wide enough for every usual definition of a quantile.
            first = max(1, math.floor(n * figure.at))
            last = min(n, math.ceil(n * figure.at) + 1)
            found += [Bound(True, first, high, i), Bound(False, last - 1, low, i)]
        elif figure.quantity == "share":
            k = (low, high) if n is None else _counts(figure, n, ends)
            if k[0] > 0:
                found.append(Bound(True, k[0], figure.at, i))
            if k[1] < size:
                found.append(Bound(False, k[1], figure.at, i))
    return found


def _ordered(figures: Sequence[Figure], n: int | None, ends: Ends) -> Iterator[Conflict]:
    """Yield what the order of the errors excludes, then what their sum excludes."""
    bounds = bounds_of(figures, n, ends)
    if pair := clash(bounds):
        most, least = pair
        proof = _of_clash(figures, n, pair)
        upper, lower = figures[most.figure], figures[least.figure]
        if upper.quantity == "share":
            yield Conflict((lower, upper), proof, high=most.value)
        else:
            yield Conflict((upper, lower), proof, low=least.value)
        return
    for figure in figures:
        if figure.quantity in _POWERS and (one := _of_mean(figures, n, ends, figure)):
            yield one


def _of_clash(figures: Sequence[Figure], n: int | None, pair: tuple[Bound, Bound]) -> str:
    most, least = pair
    if n is None:
        smaller = f"at least {percent(most.position)} of the errors are at most"
        larger = f"at least {percent(1 - least.position)} are at least"
        both = "together more than all"
    else:
        smaller = f"{_ends_of(int(most.position), n, 'smallest')} at most"
        larger = f"{_ends_of(n - int(least.position), n, 'largest')} at least"
        both = "at least one error would be both"
    return (
        f"By {figures[most.figure]}, {smaller} {percent(most.value, 4)}; by "
        f"{figures[least.figure]}, {larger} {percent(least.value, 4)}: {both}."
    )


def _ends_of(many: int, n: int, word: str) -> str:
    if many == n:
        return f"all {n} are"
    return f"the {word} of {n} is" if many == 1 else f"the {many} {word} of {n} are"


def _of_mean(
    figures: Sequence[Figure], n: int | None, ends: Ends, figure: Figure
) -> Conflict | None:
    """Compare a mean with the lowest and the highest set; name only the figures that it takes."""
    others = [one for one in figures if one.quantity != figure.quantity]
    for upper in (False, True):
        if not _excluded(others, n, ends, figure, upper):
            continue
        needed = list(others)
        for other in others:
            fewer = [one for one in needed if one is not other]
            if _excluded(fewer, n, ends, figure, upper):
                needed = fewer
        blocks, end = _extreme(needed, n, ends, figure, upper)
        whose = "Their mean" if figure.quantity == "mean" else f"The {figure.name}"
        proof = (
            f"{_in_words(blocks, needed, n, upper)}. {whose} is at "
            f"{'most' if upper else 'least'} {percent(end, 4)}, not {figure.text}."
        )
        limits = {"high": end} if upper else {"low": end}
        return Conflict((figure, *needed), proof, **limits)
    return None


def _excluded(
    others: Sequence[Figure], n: int | None, ends: Ends, figure: Figure, upper: bool
) -> bool:
    low, high = ends(figure)
    _, end = _extreme(others, n, ends, figure, upper)
    return end < low - _slack(low) if upper else end > high + _slack(high)


def _extreme(
    others: Sequence[Figure], n: int | None, ends: Ends, figure: Figure, upper: bool
) -> tuple[list[Block], float]:
    """Return the lowest or the highest set that the others allow, and its mean of this kind."""
    size = 1 if n is None else n
    blocks = (highest if upper else lowest)(bounds_of(others, n, ends), size)
    return blocks, _power_mean(blocks, size, _POWERS[figure.quantity])


def _in_words(
    blocks: Sequence[Block], figures: Sequence[Figure], n: int | None, upper: bool
) -> str:
    """Describe the lowest or the highest set: how many errors are at least or at most how large."""
    told = []
    for block in reversed(blocks):
        if block.figure is None:
            continue
        many = percent(block.size) if n is None else f"{int(block.size)} of {n}"
        told.append(
            f"{many} {'are' if n is None or block.size > 1 else 'is'} at "
            f"{'most' if upper else 'least'} {percent(block.value, 4)} ({figures[block.figure]})"
        )
    rest = "" if upper or all(b.figure is not None for b in blocks) else ", the others at least 0"
    return f"Of the errors, {', '.join(told)}{rest}" if told else "No error is below 0"


def _power_mean(blocks: Sequence[Block], size: float, power: float) -> float:
    if any(math.isinf(block.value) for block in blocks):
        return math.inf
    if power:
        total = math.fsum(block.size * block.value**power for block in blocks)
        return float((total / size) ** (1 / power))
    if any(block.value <= 0 for block in blocks):
        return 0.0
    return math.exp(math.fsum(block.size * math.log(block.value) for block in blocks) / size)


def _pairs(figures: Sequence[Figure], n: int | None, ends: Ends) -> Iterator[Conflict]:
    """Yield inequalities between two or three figures that no bound of single errors shows."""
    by = {figure.quantity: figure for figure in reversed(figures)}
    for small, large, why in _INEQUALITIES:
        if small in by and large in by:
            low, high = ends(by[small])[0], ends(by[large])[1]
            if low > high + _slack(high):
                told = f"{why}; {by[small].text} exceeds {by[large].text}."
                yield Conflict((by[small], by[large]), told, high=high)
    if "bias" in by:
        yield from _of_bias(by["bias"], by, ends)
    if "rms" in by and "mean" in by:
        yield from _of_rms(by, n, ends)
    if "sd" in by and n != 1:
        yield from _of_sd(by, n, ends)


#: Figures that bound an sd; of these, a proof names as few as it takes.
_OF_SD = ("rms", "max", "mean", "bias")


def _of_sd(by: dict[str, Figure], n: int | None, ends: Ends) -> Iterator[Conflict]:
    """Compare the sd with the RMS less the mean, of absolute and of signed errors."""
    sd = by["sd"]
    low, high = ends(sd)
    known = [name for name in _OF_SD if name in by]
    for size in range(1, len(known) + 1):
        for names in itertools.combinations(known, size):
            allowed = _sds({name: ends(by[name]) for name in names}, n)
            if any(low <= most + _slack(most) and high >= least for least, most in allowed):
                continue
            absolute, signed = allowed
            apart = absolute[0] > signed[1] or signed[0] > absolute[1]
            told = _span(*absolute)
            if signed != absolute:
                told = f"{told} for absolute errors and {_span(*signed)} for signed ones"
            hull = (min(absolute[0], signed[0]), max(absolute[1], signed[1]))
            yield Conflict(
                (sd, *(by[name] for name in names)),
                "An sd is √(RMS² − mean²) of absolute errors, √(RMS² − bias²) of signed ones, or "
                f"√(n / (n − 1)) times as much: {told}, not {sd.text}.",
                low=-math.inf if apart or not hull[0] else hull[0],
                high=math.inf if apart else hull[1],
            )
            return


def _span(low: float, high: float) -> str:
    if not low:
        return f"at most {percent(high, 4)}"
    if math.isinf(high):
        return f"at least {percent(low, 4)}"
    return f"between {percent(low, 4)} and {percent(high, 4)}"


def _sds(known: dict[str, tuple[float, float]], n: int | None) -> list[tuple[float, float]]:
    """Return from where to where the sd of absolute, then of signed errors may lie."""
    free = (0.0, math.inf)
    largest = known.get("max", free)[1]
    mean = (known.get("mean", free)[0], min(known.get("mean", free)[1], largest))
    of_mean = mean[1] * math.sqrt(n) if n else math.inf
    rms = (
        max(known.get("rms", free)[0], mean[0]),
        min(known.get("rms", free)[1], largest, math.sqrt(mean[1] * largest), of_mean),
    )
    mean = (mean[0], min(mean[1], rms[1]))
    low, high = known.get("bias", (-math.inf, math.inf))
    bias = (max(low, -high, 0.0), min(max(-low, high), mean[1]))
    factor = math.sqrt(2 if n is None else n / (n - 1))
    return [(_leg(rms[0], centre[1]), factor * _leg(rms[1], centre[0])) for centre in (mean, bias)]


def _leg(hypotenuse: float, other: float) -> float:
    """Return the third side of a right triangle, 0 where there is none."""
    if math.isinf(hypotenuse):
        return math.inf
    return math.sqrt(max(hypotenuse**2 - other**2, 0.0))


#: The first is never larger than the second, in any set.
_INEQUALITIES = (
    ("geomean", "mean", "The geometric mean is at most the arithmetic mean"),
    ("mean", "rms", "The root mean square is at least the mean"),
    ("wape", "max", "A weighted mean of the errors is at most the largest"),
    ("min", "wape", "A weighted mean of the errors is at least the smallest"),
)


def _of_bias(bias: Figure, by: dict[str, Figure], ends: Ends) -> Iterator[Conflict]:
    low, high = ends(bias)
    nearest = max(low, -high, 0.0)  # the smallest |bias|
    for name, what in (("mean", "mean error"), ("max", "largest error"), ("rms", "RMS")):
        if name in by and nearest > ends(by[name])[1] + _slack(nearest):
            yield Conflict(
                (bias, by[name]),
                f"The mean of signed errors is at most the {what} in size; {bias.text} exceeds "
                f"{by[name].text}.",
                -ends(by[name])[1],
                ends(by[name])[1],
            )
            return
    if "mean" in by and (under := (ends(by["mean"])[0] - high) / 2) > 1 + 1e-9:
        yield Conflict(
            (by["mean"], bias),
            f"Underestimates alone have the mean (mean − bias) / 2 = {percent(under, 4)}; a "
            "prediction that is not negative is at most 100 % below the measurement.",
            high=2 + high,
        )


def _of_rms(by: dict[str, Figure], n: int | None, ends: Ends) -> Iterator[Conflict]:
    rms, mean = by["rms"], by["mean"]
    most = math.inf if n is None else ends(mean)[1] * math.sqrt(n)
    used, why = [rms, mean], f"the mean × √{n}"
    if "max" in by and (other := math.sqrt(ends(mean)[1] * ends(by["max"])[1])) < most:
        most, used, why = other, [rms, mean, by["max"]], "√(mean × max)"
    if ends(rms)[0] > most + _slack(most):
        yield Conflict(
            tuple(used),
            f"The root mean square is at most {why}, here {percent(most, 4)}, not {rms.text}.",
            high=most,
        )


def percent(fraction: float, digits: int = 3) -> str:
    """Write a fraction in per cent.

    Examples
    --------
    >>> percent(0.83333, 4)
    '83.33 %'
    """
    return f"{format_number(100 * fraction, digits)} %"


def _slack(value: float) -> float:
    return 1e-9 * max(abs(value), 1e-3) if math.isfinite(value) else 0.0
