"""Colours that can be read on white and told apart in grey, lines that break where they may."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from errcomp.propagation.view.figures import growth, save
from errcomp.report.drawing import style as _style
from errcomp.report.drawing.saving import _letters, borrow

KNOWN = ["estimated", "independent", "classes", "comonotonic", "repeats", "devices", "matrix",
         "unknown"]  # fmt: skip
OTHERS = [f"assumption {i}" for i in range(49)]


@pytest.mark.extras
def test_marks_stand_out_and_text_can_be_read(contrast):
    pytest.importorskip("matplotlib")
    tints = _style.colours(KNOWN)
    assert len(set(tints)) == 8
    for tint in (*tints, _style.BLUE, _style.ORANGE, _style.FAINT):
        assert contrast(tint) >= 3, tint
    for tint in (_style.INK, _style.MUTED, *map(_style.legible, (*tints, "#ffffff"))):
        assert contrast(tint) >= 4.5, tint


def test_text_is_darkened_no_further_than_it_must():
    assert _style.legible(_style.BLUE) == _style.BLUE.lower()
    for tint in _style.colours(KNOWN):
        found = [int(_style.legible(tint)[i : i + 2], 16) for i in (1, 3, 5)]
        given = [int(tint[i : i + 2], 16) for i in (1, 3, 5)]
        share = sum(found) / max(sum(given), 1)
        assert share >= 0.75 or not sum(given)
        np.testing.assert_allclose(found, share * np.array(given), atol=1)


@pytest.mark.extras
def test_text_on_any_tint_can_be_read(contrast):
    pytest.importorskip("matplotlib")
    for share in np.linspace(0, 1, 101):
        ground = _style.blend(_style.BLUE, share)
        over_white, of_text = contrast(ground), contrast(_style.on(ground))
        assert max(over_white, of_text) / min(over_white, of_text) >= 4.5, share
        assert contrast(_style.interval(_style.MUTED)) >= 3


@pytest.mark.extras
def test_lines_can_be_told_apart_in_grey(lightness):
    """By their marks: eight colours of enough contrast cannot all differ enough in lightness."""
    pytest.importorskip("matplotlib")
    assert len(set(_style.markers(KNOWN))) == 8
    tones = sorted(map(lightness, _style.colours(KNOWN)))
    assert (np.diff(tones[:4]) > 8).all()  # as far as lightness goes


def test_forty_nine_lines_have_looks_of_their_own():
    looks = list(zip(_style.colours(OTHERS), _style.markers(OTHERS), strict=True))
    assert len(set(looks)) == 49
    assert looks[0][0] == looks[7][0]
    assert len(set(_style.markers(OTHERS)[:7])) == 7


@pytest.mark.extras
@pytest.mark.parametrize(
    ("note", "lines"),
    [
        (f"{'x' * 64} about 95 % interval", [f"{'x' * 64} about", "95 % interval"]),
        (f"{'x' * 62}, of 12 models", [f"{'x' * 62}, of", "12 models"]),
        (f"{'x' * 62} predicted / measured", ["x" * 62, "predicted / measured"]),
    ],
)
def test_lines_break_where_they_may(note, lines):
    pytest.importorskip("matplotlib")
    ax = _style.canvas(None, 3.0)
    _style.heading(ax, "title", [note])
    assert [text.get_text() for text in ax.texts] == lines[::-1]


@pytest.fixture
def carried(monkeypatch):
    """No fonts but those that Matplotlib carries."""
    manager = pytest.importorskip("matplotlib.font_manager")
    some = [font for font in manager.fontManager.ttflist if "mpl-data" in font.fname]
    monkeypatch.setattr(manager.fontManager, "ttflist", some)


@pytest.mark.extras
@pytest.mark.usefixtures("carried")
def test_letters_are_borrowed_from_other_fonts(tmp_path):
    ax = growth([("Ядро µ", 0.2, None, None), ("𝒜", 0.1, None, None)])
    for _ in range(2):
        assert borrow(ax.figure) == ""
        families = {label.get_text(): label.get_fontfamily() for label in ax.get_xticklabels()}
        assert families["𝒜"] == ["sans-serif", "STIXGeneral"]
    save(ax, tmp_path / "a.png")  # a warning would be an error


@pytest.mark.extras
@pytest.mark.usefixtures("carried")
def test_letters_that_no_font_has_are_told_once(tmp_path):
    name = "計算" * 3
    ax = growth([(name, 0.2, None, None)])
    with pytest.warns(
        UserWarning,
        match="a.png: no installed font has '算計': these characters are drawn as boxes",
    ) as told:
        save(ax, tmp_path / "a.png")
    assert [warning.filename for warning in told] == [__file__]
    ax = growth([("".join(map(chr, range(0x4E00, 0x4E20))), 0.2, None, None)])
    with pytest.warns(UserWarning, match="no installed font has '一丁丂七丄丅丆万丈三' and more:"):
        save(ax, tmp_path / "a.pdf")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(growth([(name, 0.2, None, None)]), tmp_path / "a.svg")
    assert "計算計算" in (tmp_path / "a.svg").read_text(encoding="utf-8").replace("\n", "")


@pytest.mark.extras
@pytest.mark.usefixtures("carried")
def test_tick_labels_that_were_never_drawn_are_looked_at():
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedFormatter, FixedLocator

    for side in ("xaxis", "yaxis"):
        figure = Figure()
        axis = getattr(figure.add_subplot(), side)
        axis.set_major_locator(FixedLocator([0.5]))
        axis.set_major_formatter(FixedFormatter(["計"]))
        assert borrow(figure) == "計"


@pytest.mark.extras
def test_a_font_whose_file_cannot_be_read_has_no_letters(tmp_path):
    manager = pytest.importorskip("matplotlib.font_manager")
    usual = manager.findfont("DejaVu Sans")
    assert {"a", "µ", "Я"} <= _letters(usual)
    assert "計" not in _letters(usual)
    broken = tmp_path / "a.ttf"
    broken.write_bytes(b"no font")
    assert _letters(str(broken)) == set()
    assert _letters(str(tmp_path / "gone.ttf")) == set()
