"""Figures as small inline SVG for a page: without clashing ids, and with texts on hover."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from errcomp.errors import InputError
from errcomp.report.drawing.hover import spots
from errcomp.report.drawing.saving import borrow, drawn_figure
from errcomp.report.model import Figure as Drawing
from errcomp.report.model import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_DIGITS = re.compile(r"(\d+\.\d\d)\d+")
#: Attributes with positions, which are rounded to a hundredth of a point.
_PLACES = {"d", "height", "points", "transform", "viewBox", "width", "x", "y"}
#: Begins the ids of what draws a series.
_SERIES = "errcomp-series-"
#: Points per inch in an SVG that Matplotlib writes.
_POINTS = 72


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure.

    Attributes
    ----------
    name : str
        Unique on its page.
    caption : str
        How to read it.
    alt : str
        Description for screen readers.
    svg : Element
        Its ids are only unique within the figure.
    spots : sequence of (float, float, str)
        Points in units of the SVG, with the text to show on hover.
    series : sequence of str
        Names of its series. An element of the i-th has the attribute ``data-series="i"``.
    """

    name: str
    caption: str
    alt: str
    svg: ET.Element
    spots: Sequence[tuple[float, float, str]] = ()
    series: Sequence[str] = ()


def pictures(figures: Sequence[Drawing]) -> tuple[list[Picture], list[str]]:
    """Draw figures; return them, and a note for each figure that cannot be drawn."""
    if not figures:
        return [], []
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError:
        return [], [
            "Figures are left out, because Matplotlib is not installed. Install it with: "
            "pip install 'errcomp[figures]'"
        ]
    except ImportError as error:
        return [], [f"Figures are left out: Matplotlib cannot be imported ({error})."]
    drawn, notes = [], []
    for drawing in figures:
        try:
            drawn.append(picture(drawing.draw(), drawing.name, drawing.caption))
        except InputError as error:
            notes.append(f"Not drawn ({drawing.name}): {error}")
    return drawn, notes


def picture(ax: Axes, name: str, caption: str) -> Picture:
    """Convert axes to a `Picture` for a page.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The whole figure that contains these axes is converted.
    name : str
        Unique in its section.
    caption : str
        How to read it.

    Returns
    -------
    Picture
    """
    figure = drawn_figure(ax)
    series = _series(figure)
    svg = _svg(figure)  # also makes all text printable
    return Picture(name, caption, _words(figure), svg, _spots(figure), series)


def _series(figure: Figure) -> list[str]:
    """Return the names of the series, and mark what draws each of them."""
    names: list[str] = []
    for ax in figure.axes:
        known = _in_legend(ax)
        for artist in ax.get_children():
            label = str(artist.get_label())
            # Matplotlib gives what has no label one that begins with an underscore.
            shown = _cleaned(label).split("\n")[0]
            if not label or label.startswith("_") or shown not in known:
                continue
            if shown not in names:
                names.append(shown)
            artist.set_gid(f"{_SERIES}{names.index(shown)}")
    return names


def _in_legend(ax: Axes) -> set[str]:
    from matplotlib.legend import Legend

    texts = (text.get_text() for one in ax.findobj(Legend) for text in one.get_texts())
    return {_cleaned(text).split("\n")[0] for text in texts}


def _svg(figure: Figure) -> ET.Element:
    import matplotlib as mpl
    from matplotlib.text import Text

    stream = io.BytesIO()
    borrow(figure)
    for text in figure.findobj(Text):  # an SVG must not contain control characters
        text.set_text(_cleaned(text.get_text()))
    grounds = [ax.patch for ax in figure.axes if ax.patch.get_visible()]
    for ground in grounds:  # the page has its own background
        ground.set_visible(False)
    try:
        settings = mpl.rc_context({"svg.hashsalt": "errcomp", "svg.fonttype": "none"})
        with settings, warnings.catch_warnings():
            # The browser's fonts have the characters that Matplotlib's font lacks.
            warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
            figure.savefig(
                stream, format="svg", facecolor="none", metadata={"Creator": None, "Date": None}
            )
    finally:
        for ground in grounds:
            ground.set_visible(True)
    return _tidied(ET.fromstring(stream.getvalue()))


def _tidied(tree: ET.Element) -> ET.Element:
    """Return an SVG without namespaces, metadata, style and superfluous digits."""
    for element in tree.iter():
        element.tag = element.tag.rpartition("}")[2]
        if (name := element.get("id", "")).startswith(_SERIES):
            element.set("data-series", name.removeprefix(_SERIES))
        for key in [key for key in element.attrib if "}" in key]:
            element.set(key.rpartition("}")[2], element.attrib.pop(key))
        for key in _PLACES & element.attrib.keys():
            element.set(key, _DIGITS.sub(r"\1", element.attrib[key]))
        element.tail = (element.tail or "").strip() or None
        if element.tag != "text":
            element.text = (element.text or "").strip() or None
    for parent in list(tree.iter()):
        for child in list(parent):
            # The page has one style for all figures, and needs no metadata.
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    for name in ("width", "height", "version"):
        tree.attrib.pop(name, None)
    return tree


def _words(figure: Figure) -> str:
    """Describe a figure: its titles, the texts above its axes, and the axis labels."""
    from matplotlib.text import Annotation

    texts = []
    for ax in figure.axes:
        texts.append(ax.get_title(loc="left") or ax.get_title())
        notes = [
            child
            for child in ax.get_children()
            if isinstance(child, Annotation) and child.xycoords == "axes fraction"
        ]
        texts += [n.get_text() for n in sorted(notes, key=lambda n: -n.xyann[1]) if n.xy == (0, 1)]
        axes = [label for label in (ax.get_xlabel(), ax.get_ylabel()) if label]
        if axes:
            texts.append(f"Axes: {', '.join(axes)}")
    return ". ".join(" ".join(part.split()).rstrip(".") for part in texts if part) + "."


def _spots(figure: Figure) -> list[tuple[float, float, str]]:
    scale = _POINTS / figure.dpi
    height = figure.bbox.height
    places = []
    for ax in figure.axes:
        for spot in spots(ax):
            at = ax.transData.transform(list(zip(spot.x, spot.y, strict=True)))
            places += [
                (round(float(x) * scale, 1), round(float(height - y) * scale, 1), _cleaned(text))
                for (x, y), text in zip(at, spot.texts, strict=True)
            ]
    return places


def _cleaned(text: str) -> str:
    return "\n".join(map(clean, text.split("\n")))
