"""Fonts for names in letters that the usual font has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["borrow"]

#: A font that has every letter, as a box with the name of its script.
_BOXES = "Last Resort"


def borrow(figure: Figure) -> str:
    """Let texts borrow letters from other installed fonts where their own has none.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Its texts are changed.

    Returns
    -------
    str
        The letters that no font has, each once, sorted.
    """
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # labels of ticks have no text before they are asked for
    texts = [text for text in figure.findobj(Text) if not text.get_text().isascii()]
    if not texts:
        return ""
    usual = _letters(str(fontManager.findfont(texts[0].get_fontproperties())))
    missing = {letter for text in texts for letter in text.get_text() if letter > " "} - usual
    families: list[str] = []
    for font in sorted(fontManager.ttflist, key=lambda font: (font.name, font.fname)):
        if missing and not font.name.startswith(_BOXES) and missing & _letters(font.fname):
            families.append(font.name)
            missing -= _letters(font.fname)
    for text in texts if families else []:
        own = text.get_fontfamily()
        text.set_fontfamily([*own, *(name for name in families if name not in own)])
    return "".join(sorted(missing))


def _letters(path: str) -> set[str]:
    """Return the letters that a font has; none if its file cannot be read."""
    from matplotlib.font_manager import get_font

    try:
        return set(map(chr, get_font(path).get_charmap()))
    except (OSError, RuntimeError):
        return set()
