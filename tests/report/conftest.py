"""Results made by hand, with numbers that are easy to recognise in a picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errcomp.propagation import Band, Outcome, Propagation, given_errors
from errcomp.propagation.sums import Budget
from errcomp.propagation.validation import Validation, ValidationRow

LEVELS = (0.5, 0.8, 0.9, 0.95)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let pictures be packed little where they are only compared: their pixels are the same."""
    if getattr(config.option, "mpl_generate_path", None) is None:
        for item in items:
            for mark in item.iter_markers("mpl_image_compare"):
                mark.kwargs["savefig_kwargs"]["pil_kwargs"] = {"compress_level": 1}


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    """Make an outcome: median 100, bands of ±10, 20, 30 and 40, unless told otherwise."""

    def make(assumption: str = "estimated", **changes: Any) -> Outcome:
        plain: dict[str, Any] = {
            "run": "gpu/model",
            "assumption": assumption,
            "prediction": 120.0,
            "mean": 100.0,
            "sd": 10.0,
            "median": 100.0,
            "bias": -1 / 6,
            "relative_sd": 0.1,
            "kernel_sd": 0.4,
            "growth": 0.25,
            "effective_number": 16.0,
            "bands": tuple(
                Band(level, 100.0 - 10 * i, 100.0 + 10 * i) for i, level in enumerate(LEVELS, 1)
            ),
            "saturated": 0.0,
            "method": "by hand",
            "by_class": None,
            "by_kernel": None,
            "critical": {},
            "measured": 95.0,
            "caveats": (),
        }
        return Outcome(**{**plain, **changes})

    return make


@pytest.fixture
def bounds(outcome: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """Make the outcome of bounds: no distribution."""

    def make(low: float, high: float, level: float = 0.9) -> Outcome:
        return outcome(
            "unknown", mean=None, sd=None, median=None, bias=None, relative_sd=None, growth=None,
            effective_number=None, bands=(Band(level, low, high),),
        )  # fmt: skip

    return make


@pytest.fixture
def propagation() -> Callable[..., Propagation]:
    """Put outcomes together."""

    def make(*outcomes: Outcome, unit: str | None = "ms") -> Propagation:
        return Propagation(outcomes, given_errors(0.1), unit, 0, ())

    return make


@pytest.fixture
def budget_of() -> Callable[..., Budget]:
    """Make a budget of these contributions; time is shared out evenly."""

    def make(first_order: list[float], names: list[str] | None = None) -> Budget:
        n = len(first_order)
        names = names or [f"class{i}" for i in range(n)]
        share = np.asarray(first_order, float)
        return Budget("class", np.array(names), np.full(n, 1 / max(n, 1)), share, share)

    return make


@pytest.fixture
def validation() -> Validation:
    """Two assumptions with a distribution and bounds, at two levels."""
    rows = tuple(
        ValidationRow(
            name, level, share, max(share - 0.1, 0), min(share + 0.05, 1), 40, 8, 0.2, 0.3
        )
        for name, shares in (
            ("estimated", (0.55, 0.9)),
            ("independent", (0.1, 0.25)),
            ("unknown", (1.0, 1.0)),
        )
        for level, share in zip((0.5, 0.9), shares, strict=True)
    )
    u = (np.arange(40) + 0.5) / 40
    return Validation(
        rows,
        {"estimated": u, "independent": np.concatenate([np.zeros(20), np.ones(20)])},
        tuple(f"run{i}" for i in range(40)),
        "device",
        "sum of the measured kernels",
        (),
    )


def _luminance(colour: Any) -> float:
    """Return the relative luminance of a colour on white (WCAG 2.1), from 0 to 1."""
    from matplotlib.colors import to_rgba

    *parts, alpha = to_rgba(colour)
    total = 0.0
    for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True):
        seen = 1 - alpha * (1 - part)
        total += weight * (seen / 12.92 if seen <= 0.04045 else ((seen + 0.055) / 1.055) ** 2.4)
    return total


@pytest.fixture(scope="session")
def contrast() -> Callable[[Any], float]:
    """Return the contrast of a colour against white (WCAG 2.1): 1 is none, 21 is black."""
    return lambda colour: 1.05 / (_luminance(colour) + 0.05)


@pytest.fixture(scope="session")
def lightness() -> Callable[[Any], float]:
    """Return the lightness of a colour (CIE L*), all that print in grey keeps: 0 to 100."""

    def of(colour: Any) -> float:
        y = _luminance(colour)
        return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else y * 24389 / 27

    return of


@pytest.fixture
def readable(
    contrast: Callable[[Any], float], lightness: Callable[[Any], float]
) -> Callable[..., Any]:
    """Return the figure of axes, after a look at its contrasts and at what is left in grey."""
    from matplotlib.collections import Collection, QuadMesh
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    def seen(*looks: Any) -> bool:
        return max(map(contrast, looks), default=21.0) >= 3

    def check(ax: Any) -> Any:
        figure = ax.figure
        figure.get_layout_engine().execute(figure)  # ticks have their texts and places then
        grids = [line for each in figure.axes for line in [*each.get_xgridlines(),
                                                           *each.get_ygridlines()]]  # fmt: skip
        grounds = [figure.patch, *(each.patch for each in figure.axes)]
        for artist in figure.findobj():
            if artist in grids or artist in grounds or not artist.get_visible():
                continue
            if isinstance(artist, Text) and artist.get_text():
                assert contrast(artist.get_color()) >= 4.5, artist
                arrow = getattr(artist, "arrow_patch", None)
                assert arrow is None or seen(arrow.get_edgecolor()), artist
            elif isinstance(artist, Line2D):
                on_a_mark = contrast(artist.get_color()) == 1  # white: it does not stand on white
                drawn = artist.get_linestyle() != "None" and not on_a_mark
                assert not drawn or seen(artist.get_color()), artist
                marker = artist.get_marker() not in ("", "None", None)
                assert not marker or seen(artist.get_mfc(), artist.get_mec()), artist
            elif isinstance(artist, Collection) and not isinstance(artist, QuadMesh):
                assert seen(*artist.get_facecolor(), *artist.get_edgecolor()), artist
            elif isinstance(artist, Patch) and artist.get_fill():
                edge = [artist.get_edgecolor()] if artist.get_linewidth() else []
                assert seen(artist.get_facecolor(), *edge), artist
        lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        for i, one in enumerate(lines):
            for other in lines[:i]:
                looks = [
                    (line.get_marker(), line.get_linestyle(), line.get_linewidth(),
                     contrast(line.get_mfc()) < 3)
                    for line in (one, other)
                ]  # fmt: skip
                grey = abs(lightness(one.get_color()) - lightness(other.get_color()))
                assert looks[0] != looks[1] or grey >= 15, (one, other)
        return figure

    return check


def _hidden(figure: Any) -> set[Any]:
    """Return the labels of ticks beyond the limits."""
    found = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low <= tick.get_loc() <= high:
                    found |= {tick.label1, tick.label2}
    return found


@pytest.fixture(scope="session")
def fits() -> Callable[[Any], None]:
    """Fail where a label of a figure of its own leaves it, or overlaps another label."""
    from matplotlib.text import Text

    extent = Text.get_window_extent  # of an annotation: without its line

    def check(ax: Any) -> None:
        figure = ax.figure
        assert figure.get_size_inches()[0] * figure.dpi == 640
        figure.draw_without_rendering()
        hidden = _hidden(figure)
        texts = [
            text
            for text in figure.findobj(Text)
            if text.get_text() and text.get_visible() and text not in hidden
        ]
        shown = figure.bbox.padded(1)
        assert len(texts) > 4
        level: list[tuple[str, Any]] = []
        for text in texts:
            box = extent(text)
            assert shown.x0 <= box.x0, text
            assert box.x1 <= shown.x1, text
            assert shown.y0 <= box.y0, text
            assert box.y1 <= shown.y1, text
            if text.get_rotation() % 90 == 0:  # else the box is far larger than the text
                level.append((text.get_text(), box))
        for i, (name, box) in enumerate(level):
            for other, its in level[:i]:
                inner = box.padded(-1)
                assert not (inner.x0 < its.x1 and its.x0 < inner.x1
                            and inner.y0 < its.y1 and its.y0 < inner.y1), (name, other)  # fmt: skip

    return check


#: Names of 80 characters that begin alike.
_PREFIX = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "


@pytest.fixture(scope="session")
def long_names() -> Callable[[int], list[str]]:
    """Return n names of 80 characters that differ at the end only."""
    return lambda n: [f"{_PREFIX[:76]}{i:04d}" for i in range(n)]
