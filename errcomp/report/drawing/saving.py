"""Write figures to files: never partially, and with the same bytes every time."""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from errcomp.errors import InputError, MissingExtraError
from errcomp.system.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Metadata to leave out, because it would differ between runs or releases of Matplotlib.
_METADATA: dict[str, dict[str, None]] = {
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
    ".svg": {"Creator": None, "Date": None},
}
_DPI = 200
#: Number of missing characters that a warning names.
_MOST_LETTERS = 10

#: A font that shows every character as a box with the name of its script.
_BOXES = "Last Resort"


def save(drawn: Axes | Figure, path: str | PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF, by suffix.

    The same figure gives the same bytes: without dates and random names. An SVG keeps its text as
    text. An interrupted run leaves an existing file unchanged. Characters that the default font
    lacks are taken from other installed fonts; a warning names those that no font has.

    Parameters
    ----------
    drawn : matplotlib.axes.Axes or matplotlib.figure.Figure
        For axes, the whole figure that contains them is written.
    path : path
        Ends in .png, .svg or .pdf.

    Raises
    ------
    InputError
        The suffix is unknown, `drawn` is not a figure or axes, or the file cannot be written.
    MissingExtraError
        Matplotlib is not installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from errcomp.propagation.view.figures import growth
    >>> with TemporaryDirectory() as folder:
    ...     save(growth([("kernel", 0.12, None, None), ("model", 0.04, 0.03, 0.06)]),
    ...          Path(folder) / "growth.svg")
    ...     [file.name for file in Path(folder).iterdir()]
    ['growth.svg']
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _METADATA:
        raise InputError(
            f"{path}: the suffix of the name sets the format of a figure. Use one of: "
            f"{', '.join(_METADATA)}"
        )
    figure = drawn_figure(drawn)
    import matplotlib as mpl

    settings = mpl.rc_context({"svg.hashsalt": "errcomp", "svg.fonttype": "none"})
    missing = borrow(figure)
    with settings, replacing(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # one warning below
        figure.savefig(temporary, format=suffix[1:], dpi=_DPI, metadata=_METADATA[suffix])
    if missing and suffix != ".svg":  # an SVG is shown in the fonts of its reader
        warnings.warn(
            f"{path}: no installed font has "
            f"{missing[:_MOST_LETTERS]!r}{' and more' if len(missing) > _MOST_LETTERS else ''}: "
            "these characters are drawn as boxes. Install a font that has them, or write an .svg "
            "file, which is shown with the fonts of the reader.",
            stacklevel=2,
        )


def drawn_figure(drawn: Axes | Figure) -> Figure:
    """Return the whole figure that contains these axes.

    Raises
    ------
    InputError
        `drawn` is not a figure, nor axes of a figure.
    MissingExtraError
        Matplotlib is not installed.
    """
    try:
        from matplotlib.artist import Artist
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "figures", "drawing figures") from error
    figure = drawn.figure if isinstance(drawn, Artist) else None
    while figure is not None and not isinstance(figure, Figure):  # a subfigure
        figure = figure.figure
    if figure is None:
        raise InputError(f"expected a figure or axes of a figure, got {drawn!r}")
    return figure


def borrow(figure: Figure) -> str:
    """Let texts use other installed fonts for the characters that their own font lacks.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Changed in place: the font families of its texts.

    Returns
    -------
    str
        The characters that no font has, each once, sorted.
    """
    from matplotlib.font_manager import fontManager
    from matplotlib.text import Text

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            axis.get_ticklabels()  # Matplotlib sets the texts of tick labels on demand
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
    """Return the characters of a font; an empty set if its file cannot be read."""
    from matplotlib.font_manager import get_font

    try:
        return set(map(chr, get_font(path).get_charmap()))
    except (OSError, RuntimeError):
        return set()
