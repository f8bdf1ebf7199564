"""Results as one HTML file: verdicts first, figures that answer, tables to sort, and the method."""

from errcomp.report.page._html import fragment, page
from errcomp.report.page._parts import (
    Advice,
    Cell,
    Grid,
    Head,
    Picture,
    Section,
    Verdict,
    grid_of,
)

__all__ = [
    "Advice",
    "Cell",
    "Grid",
    "Head",
    "Picture",
    "Section",
    "Verdict",
    "fragment",
    "grid_of",
    "page",
]
