"""Formulas as MathML, made during the build: pages need no script or font for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

#: Commands that the converter does not know, and equivalents that it knows.
_INSTEAD = {r"\arg": r"\operatorname{arg}"}
_LOG = logging.getLogger(__name__)


def mathml(latex: str, *, display: str) -> str:
    """Convert one formula. Several lines or columns are aligned.

    Raises
    ------
    ValueError
        The converter does not know a command. It would show it as text.
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
    except Exception as reason:  # the warning names the formula, whatever the cause
        _LOG.warning("formula %r: %s", latex, reason, location=node)
        return f"<code>{nodes.unescape(latex)}</code>"


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_converted(node, node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    # Blank lines separate formulas, as in other renderers.
    formulas = [part.strip() for part in re.split(r"\n\s*\n", node.astext()) if part.strip()]
    shown = "".join(_converted(node, one, "block") for one in formulas)
    self.body.append(f'<div class="formula">{shown}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer as ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
