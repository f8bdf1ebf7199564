"""Formulas as MathML, made when the site is built: no page needs a script or a font for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

#: What the converter does not know, written in what it does.
_INSTEAD = {r"\arg": r"\operatorname{arg}"}
_LOG = logging.getLogger(__name__)


def mathml(latex: str, *, display: str) -> str:
    """Convert one formula; several lines or columns are aligned.

    Raises
    ------
    ValueError
        A command is unknown, which the converter would show as text.
    """
    for command, instead in _INSTEAD.items():
        latex = re.sub(re.escape(command) + r"(?![A-Za-z])", lambda _, new=instead: new, latex)
    many = r"\begin" not in latex and (r"\\" in latex or "&" in latex)
    text = rf"\begin{{aligned}}{latex}\end{{aligned}}" if many else latex
    found = convert(text, display=display)
    if unknown := re.findall(r"\\[A-Za-z]+", found):
        raise ValueError(f"MathML has no {', '.join(unknown)}")
    return found


def _converted(node: nodes.math | nodes.math_block, latex: str, display: str) -> str:
    try:
        return mathml(latex, display=display)
    except Exception as reason:  # whatever the converter trips over, the formula is named
        _LOG.warning("formula %r: %s", latex, reason, location=node)
        return f"<code>{nodes.unescape(latex)}</code>"


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_converted(node, node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    # Blank lines separate formulas, as for other renderers.
    formulas = [part.strip() for part in re.split(r"\n\s*\n", node.astext()) if part.strip()]
    shown = "".join(_converted(node, one, "block") for one in formulas)
    self.body.append(f'<div class="formula">{shown}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer as ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
