"""Sections about half-lives, forecasts and checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from errcomp.report.page import Section, Verdict, grid_of
from errcomp.report.page._parts import Tone
from errcomp.report.sections._common import Drawing, pictures
from errcomp.report.tables.check import check_tables
from errcomp.report.tables.forecast import forecast_tables
from errcomp.report.tables.halflife import fit_tables, written

if TYPE_CHECKING:
    from errcomp.halflife.checking import Checked
    from errcomp.halflife.design import HalfLife
    from errcomp.halflife.outlook import Outlook
    from errcomp.halflife.results import GroupHalfLife, HalfLives

__all__ = ["check_section", "forecast_section", "half_lives_section"]

#: Groups of which each is drawn.
_DRAWN = 6
_OUTCOMES: dict[str, Tone] = {"pass": "good", "regression": "bad"}


def half_lives_section(found: HalfLives) -> Section:
    """Return the section of half-lives by group."""
    drawn, notes = pictures(_drawings(found))
    return Section(
        title=f"Until which release does it hold? {found.source or 'The history given'}",
        verdicts=[_of_group(found, group) for group in found.groups],
        pictures=drawn,
        grids=[grid_of(table) for table in fit_tables(found)],
        method=[
            ("Half-life", "The time until the error of a model calibrated at the first version "
             "has doubled."),
            ("Releases", f"{len(found.versions)}, in the order of {found.order_by}"),
            ("Noise of one validation", f"{found.noise.source}"),
            ("Coverage of the intervals", f"{100 * found.level:g} %"),
            ("False alarms of steps per series", f"{100 * found.alpha:g} %"),
            ("Seed", str(found.seed)),
        ],
        notes=notes,
    )  # fmt: skip


def _drawings(found: HalfLives) -> list[Drawing]:
    from errcomp.report import halflife_figures as draw

    if len(found.groups) > 1:
        caption = "Which groups moved at which release."
        return [("heat", caption, partial(draw.draw_releases_heat, found, note=found.source))]
    captions = {
        "errors": "The error of the frozen model, release by release; steps are marked.",
        "survival": "The share of the series that is still valid.",
        "variogram": "How far errors drift apart with the releases between them.",
    }
    return [(name, text, partial(draw.draw, found, name)) for name, text in captions.items()]


def _of_group(found: HalfLives, group: GroupHalfLife) -> Verdict:
    whose = ", ".join(str(value) or "–" for value in group.key.values()) or "all series"
    single = group.panel.n_series == 1
    known = [
        (clock, group.estimate("expiry" if single else "turnbull", clock)) for clock in found.clocks
    ]
    told = [f"{written(one)} {clock}" for clock, one in known if one is not None and _is_told(one)]
    if not told:
        return Verdict("Cannot be told", f"— {whose}: too few series expired.", "doubt")
    return Verdict(" or ".join(told), f"— {whose}, until half of the series have expired.")


def _is_told(one: HalfLife) -> bool:
    return not one.refused and one.half_life is not None


def forecast_section(found: Outlook) -> Section:
    """Return the section of a forecast."""
    return Section(
        title=f"Does the promise hold tomorrow? {found.source or 'The history given'}",
        grids=[grid_of(table) for table in forecast_tables(found)],
        method=[("Coverage of the intervals", f"{100 * found.level:g} %"),
                ("Seed", str(found.seed))],
    )  # fmt: skip


def check_section(found: Checked) -> Section:
    """Return the section of a check of new validations."""
    result = found.result
    counts = {name: n for name, n in result.counts().items() if n}
    return Section(
        title=f"Is it still valid at {result.version}?",
        verdicts=[
            Verdict(
                result.outcome.capitalize(),
                f"— {_listed([f'{n} series {name}' for name, n in counts.items()])}.",
                _OUTCOMES.get(result.outcome, "doubt"),
            )
        ],
        grids=[grid_of(table) for table in check_tables(found)],
        method=[
            ("Look", str(result.look)),
            ("Level of this look", f"{result.level:.3g} of {result.alpha:g} over all looks"),
            ("Margin", "none" if math.isnan(result.margin) else f"{result.margin:g} (log scale)"),
        ],
        notes=list(found.notes),
    )


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts) or "no series"
