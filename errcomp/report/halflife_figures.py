"""Figures of half-life: axes in, axes out, one message each.

`draw_error_by_release` how the error of a frozen model grew, with the releases to blame;
`draw_survival` how many series are still valid; `draw_variogram` how far errors drift by lag;
`draw_releases_heat` which groups moved at which release. None shows anything, touches pyplot or
changes Matplotlib's settings; Matplotlib is imported at first use
(``pip install 'errcomp[figures]'``). `errcomp.report.figures.save` writes the axes to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from errcomp.errors import InputError, describe_names
from errcomp.report._halflife_errors import draw_error_by_release
from errcomp.report._halflife_heat import draw_releases_heat
from errcomp.report._halflife_survival import draw_survival
from errcomp.report._halflife_variogram import draw_variogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from errcomp.halflife.results import GroupHalfLife, HalfLives

__all__ = [
    "FIGURES",
    "draw",
    "draw_error_by_release",
    "draw_releases_heat",
    "draw_survival",
    "draw_variogram",
]


def _errors(found: HalfLives, ax: Axes | None = None) -> Axes:
    return draw_error_by_release(_only_group(found, "errors"), note=found.source, ax=ax)


def _survival(found: HalfLives, ax: Axes | None = None) -> Axes:
    return draw_survival(_only_group(found, "survival"), note=found.source, ax=ax)


def _variogram(found: HalfLives, ax: Axes | None = None) -> Axes:
    return draw_variogram(_only_group(found, "variogram"), note=found.source, ax=ax)


def _heat(found: HalfLives, ax: Axes | None = None) -> Axes:
    return draw_releases_heat(found, note=found.source, ax=ax)


#: What can be drawn of half-lives, by name. All but ``heat`` show one group and refuse several.
FIGURES: Mapping[str, Callable[..., Axes]] = {
    "errors": _errors,
    "survival": _survival,
    "variogram": _variogram,
    "heat": _heat,
}


def draw(found: HalfLives, name: str, ax: Axes | None = None) -> Axes:
    """Draw one of `FIGURES`.

    Raises
    ------
    InputError
        There is no such figure, or it shows one group and there are several.
    MissingExtraError
        Matplotlib is not installed.
    """
    if name not in FIGURES:
        known = describe_names(list(FIGURES))
        raise InputError(f"no figure {name!r} of half-lives. Figures: {known}")
    return FIGURES[name](found, ax)


def _only_group(found: HalfLives, name: str) -> GroupHalfLife:
    if len(found.groups) == 1:
        return found.groups[0]
    labels = [", ".join(map(str, group.key.values())) for group in found.groups]
    raise InputError(
        f"{name} shows one group, and there are {len(labels)}: {describe_names(labels)}. Choose "
        "the rows of one (--where KEY=VALUE), leave out the keys to group by, or draw heat."
    )
