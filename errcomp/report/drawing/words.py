"""Names and numbers in figures: short, on one line, with significant digits only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from errcomp.results import format_fraction

#: Most characters of a name: beside a row, in a legend or in a sentence; in a title, which wraps.
_NAME_WIDTH, _TITLE_WIDTH = 34, 80


def shorten(name: str, width: int = _NAME_WIDTH) -> str:
    """Return a name on one line; a long name is cut at the start: the end is more specific.

    Examples
    --------
    >>> shorten("bert_encoder_layer_0_attention_self_query", 24)
    '…_0_attention_self_query'
    """
    return _end(_line(name), width)


def fitting(names: Sequence[str], width: int = _NAME_WIDTH) -> list[str]:
    """Shorten names so that different names stay different.

    A long name keeps its end. Names with the same end keep the part around their first difference.
    Names that would still be equal are numbered.

    Examples
    --------
    >>> fitting(["void elementwise_kernel<4, 1>", "void elementwise_kernel<4, 2>"], 16)
    ['…se_kernel<4, 1>', '…se_kernel<4, 2>']
    >>> fitting(["a" * 20 + "1" + "b" * 20, "a" * 20 + "2" + "b" * 20], 12)
    ['…aaaa1bbbbb…', '…aaaa2bbbbb…']
    """
    lines = {name: _line(name) for name in names}
    short = {name: _end(line, width) for name, line in lines.items()}
    alike: dict[str, list[str]] = {}
    for name, text in short.items():
        alike.setdefault(text, []).append(name)
    for same in alike.values():
        if len({lines[name] for name in same}) > 1:
            short.update(_around_difference({name: lines[name] for name in same}, width))
    taken: set[str] = set()
    for name, text in short.items():
        unique, times = text, 1
        while unique in taken:
            times += 1
            mark = f" ({times})"
            unique = _end(text, width - len(mark)) + mark
        taken.add(unique)
        short[name] = unique
    return [short[name] for name in names]


def _line(name: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(text.split()) or "(no name)"


def _end(line: str, width: int) -> str:
    return line if len(line) <= width else f"…{line[1 - width :].lstrip(' ')}"


def _around_difference(lines: dict[str, str], width: int) -> dict[str, str]:
    """Return the part of each line around the first position at which the lines differ."""
    letters = zip(*lines.values(), strict=False)
    shortest = min(map(len, lines.values()))
    differ = next((i for i, these in enumerate(letters) if len(set(these)) > 1), shortest)
    start = max(0, differ - width // 3)
    shown = {}
    for name, line in lines.items():
        part = line[start : start + width - 2]
        text = f"{'…' if start else ''}{part}{'…' if start + len(part) < len(line) else ''}"
        shown[name] = text if len(line) > width else line
    return shown


def count(n: int, noun: str) -> str:
    """Write a number with a noun in singular or plural.

    Examples
    --------
    >>> count(1, "class"), count(1200, "kernel"), count(2, "series")
    ('1 class', '1,200 kernels', '2 series')
    """
    plural = noun if noun.endswith("series") else noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def number(value: float) -> str:
    """Write a round number, as at a tick; only very large and small ones with an exponent.

    Examples
    --------
    >>> number(0.05), number(-20.0), number(5e6), number(2e9), number(1e-5)
    ('0.05', '−20', '5,000,000', '2e+09', '1e−05')
    """
    plain = not value or 1e-4 <= abs(value) < 1e9
    return (f"{value:,.10g}" if plain else f"{value:.6g}").replace("-", "−")


def with_unit(name: str, unit: str | None) -> str:
    """Return the label of an axis: its name with the unit, or "unit not stated".

    Examples
    --------
    >>> with_unit("measured", "ms"), with_unit("measured", None)
    ('measured (ms)', 'measured (unit not stated)')
    """
    return f"{name} ({unit or 'unit not stated'})"


def of_run(title: str, run: str) -> str:
    """Add the name of the run to a title; all kernels of a table without runs are in run ``"run"``.

    Examples
    --------
    >>> of_run("Sum of kernel times", "H100/bert"), of_run("Sum of kernel times", "run")
    ('Sum of kernel times of H100/bert', 'Sum of kernel times of all kernels')
    """
    return f"{title} of all kernels" if run == "run" else f"{title} of {shorten(run, _TITLE_WIDTH)}"


def share(value: float) -> str:
    """Write a fraction in per cent with two digits; a non-zero value never becomes 0 %.

    Examples
    --------
    >>> share(0.414), share(0.0212), share(0.00012), share(-0.07), share(0.0)
    ('41 %', '2.1 %', '<0.1 %', '−7.0 %', '0 %')
    """
    percent = 100 * value
    if abs(percent) >= 9.95:
        text = f"{percent:,.0f} %"
    elif abs(percent) >= 0.1:
        text = f"{percent:.1f} %"
    else:
        text = "<0.1 %" if percent > 0 else ">-0.1 %" if percent else "0 %"
    return text.replace("-", "−")


def exact(value: float) -> str:
    """Write a fraction in per cent with the same digits as in tables.

    Examples
    --------
    >>> exact(0.1182), exact(-0.034)
    ('11.82 %', '−3.40 %')
    """
    return format_fraction(value).replace("-", "−")


def signed(change: float, write: Callable[[float], str] = share) -> str:
    """Write a relative change with its sign, in the format of `share` or `exact`.

    Examples
    --------
    >>> signed(0.12), signed(-0.034), signed(0.0)
    ('+12 %', '−3.4 %', '0 %')
    >>> signed(0.1182, exact)
    '+11.82 %'
    """
    return f"{'+' if change > 0 else ''}{write(change)}"


def span(low: float, high: float) -> str:
    """Write an interval with as many digits as its bounds need to differ.

    Examples
    --------
    >>> span(128.84, 183.96), span(1000.12, 1000.48), span(3.2, float("inf")), span(0.25, 40343.0)
    ('129 – 184', '1,000.12 – 1,000.48', '3.20 – ∞', '0.25 – 40,343')
    """
    largest = max((abs(end) for end in (low, high) if math.isfinite(end)), default=0.0)
    if not 1e-4 <= largest < 1e9:
        ends = [f"{end:.3g}" for end in (low, high)]
    else:
        width = high - low if 0 < high - low < math.inf else largest
        power = math.floor(math.log10(largest))
        decimals = min(max(1 - math.floor(math.log10(width)), 2 - power, 0), 8)
        ends = [f"{end:,.{decimals}f}" for end in (low, high)]
        for i, end in enumerate((low, high)):
            if end and not float(ends[i].replace(",", "")):  # non-zero, but would be written as 0
                ends[i] = f"{end:.2g}"
    ends = [f"−{end[1:]}" if end.startswith("-") else end for end in ends]
    return " – ".join(ends).replace("inf", "∞")
