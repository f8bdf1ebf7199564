"""The figures that the NeuSight authors published: the subset behind them is searched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from errcomp.claims.replicate.judging import Candidate, PrintedCell, Source
from errcomp.claims.replicate.rules import AGGREGATIONS

if TYPE_CHECKING:
    from errcomp.claims.search import Match

__all__ = ["BY_NEUSIGHT", "published_rules"]

BY_NEUSIGHT = "published by the NeuSight authors"

#: Predictor in the artifact and the line with its figure; all three figures are of one subset.
_LINES: Mapping[str, str] = {
    "neusight": f"{BY_NEUSIGHT}: NeuSight, abstract",
    "habitat": f"{BY_NEUSIGHT}: Habitat, abstract",
    "micro": f"{BY_NEUSIGHT}: Li et al., abstract",
}


def published_rules(source: Source, cell: PrintedCell) -> tuple[list[Candidate], str]:
    """Return all configurations first, then the subset that prints all three figures at once.

    The second value is a remark on the search.
    """
    tool = next((name for name, line in _LINES.items() if line == cell.row), "neusight")
    part = source.pairs.where({"tool": tool})
    every = Candidate(
        f"mean APE, all {part.n} configurations of {tool}",
        AGGREGATIONS["mean APE"](part),
        stated=True,
    )
    match = source.once("published", lambda: _search(source))
    if match is None:
        return [every], "No subset prints the three figures together."
    return [every, Candidate(match.description, match.values[tool])], (
        "Found by searching for one subset that prints the published figures of all three "
        f"predictors at once; {match.expected_by_chance:.2g} such matches are expected by chance."
    )


def _search(source: Source) -> Match | None:
    from errcomp.claims.search import search_claim

    printed = {cell.row: cell.printed for cell in source.cells["text_neusight"]}
    figures = {tool: printed[line] for tool, line in _LINES.items()}
    return next(iter(search_claim(source.pairs, figures).matches), None)
