"""Names and numbers in figures: short, on one line, with the digits that matter."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["count", "fitting", "share", "shorten", "span"]

_NAME_WIDTH = 28


def shorten(name: str, width: int = _NAME_WIDTH) -> str:
    """Return a name on one line; of a long one the start and, as it tells more, the end.

    Examples
    --------
    >>> shorten("bert_encoder_layer_0_attention_self_query", 24)
    'bert_encod…on_self_query'
    """
    text = "".join(c if c.isprintable() else " " for c in name)
    text = " ".join(text.split()) or "(no name)"
    if len(text) <= width:
        return text
    tail = (width - 1) * 3 // 5
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def fitting(names: Sequence[str], width: int = _NAME_WIDTH) -> list[str]:
    """Shorten names so that different ones stay different where they can.

    Examples
    --------
    >>> fitting(["a" * 20 + "1" + "b" * 20, "a" * 20 + "2" + "b" * 20], 12)
    ['…aaaa1bbbbb…', '…aaaa2bbbbb…']
    """
    short = [shorten(name, width) for name in names]
    alike: dict[str, set[str]] = {}
    for name, text in zip(names, short, strict=True):
        alike.setdefault(text, set()).add(name)
    out = []
    for name, text in zip(names, short, strict=True):
        if len(alike[text]) > 1:  # show what tells them apart
            letters = zip(*alike[text], strict=False)
            differ = next((i for i, these in enumerate(letters) if len(set(these)) > 1), 0)
            start = max(0, differ - width // 3)
            part = name[start : start + width - 2]
            text = shorten(f"…{part}{'…' if start + len(part) < len(name) else ''}", width)
        out.append(text)
    return out


def count(n: int, noun: str) -> str:
    """Count things.

    Examples
    --------
    >>> count(1, "class"), count(1200, "kernel")
    ('1 class', '1,200 kernels')
    """
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def share(value: float) -> str:
    """Write a fraction as percent with two digits, and a small one not as nothing.

    Examples
    --------
    >>> share(0.414), share(0.0212), share(0.00012), share(-0.07), share(0.0)
    ('41 %', '2.1 %', '<0.1 %', '−7.0 %', '0 %')
    """
    percent = 100 * value
    if abs(percent) >= 9.95:
        text = f"{percent:.0f} %"
    elif abs(percent) >= 0.1:
        text = f"{percent:.1f} %"
    else:
        text = "<0.1 %" if percent > 0 else ">-0.1 %" if percent else "0 %"
    return text.replace("-", "−")


def span(low: float, high: float) -> str:
    """Write an interval with the digits that tell its ends apart.

    Examples
    --------
    >>> span(128.84, 183.96), span(1000.12, 1000.48), span(3.2, float("inf")), span(0.25, 40343.0)
    ('129 – 184', '1000.12 – 1000.48', '3.20 – ∞', '0.25 – 40343')
    """
    largest = max((abs(end) for end in (low, high) if math.isfinite(end)), default=0.0)
    if not 1e-4 <= largest < 1e9:
        ends = [f"{end:.3g}" for end in (low, high)]
    else:
        width = high - low if 0 < high - low < math.inf else largest
        power = math.floor(math.log10(largest))
        decimals = min(max(1 - math.floor(math.log10(width)), 2 - power, 0), 8)
        ends = [f"{end:.{decimals}f}" for end in (low, high)]
        for i, end in enumerate((low, high)):
            if end and not float(ends[i]):  # small beside the other, but not nothing
                ends[i] = f"{end:.2g}"
    ends = [f"−{end[1:]}" if end.startswith("-") else end for end in ends]
    return " – ".join(ends).replace("inf", "∞")
