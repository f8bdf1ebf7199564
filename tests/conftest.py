"""Fixtures shared by all tests."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import hypothesis
import numpy as np
import polars as pl
import pytest
from markdown_it import MarkdownIt

from errcomp.cli import main
from errcomp.documents import load
from errcomp.errors import InputError, NotDefinedError

# The same examples every time; `make simulations` tries more (--hypothesis-profile=thorough).
for _profile, _examples in (("quick", 25), ("thorough", 60)):
    hypothesis.settings.register_profile(
        _profile,
        max_examples=_examples,
        derandomize=True,
        database=None,
        # A busy machine is no defect.
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("quick")


@dataclass(frozen=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of third-party data beside the checkout."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not path.is_dir():
        pytest.skip("the third-party data folder (../shared/data) is not beside this checkout")
    return path


STORED = Path(__file__).parent / "data" / "stored"


@pytest.fixture
def stored() -> Callable[..., None]:
    """Compare a whole result with the one stored in tests/data/stored, numbers to six digits.

    Numbers that differ by the share ``rel`` or by ``least`` are equal: where an optimizer stops,
    the last bits of a processor's sums decide.

    ``stored("readers/vidur", found)`` takes results, arrays, frames, and lists and mappings of
    such. After a change that is meant to change results, ``STORE=1 pytest ...`` writes the files
    anew; read their diff.
    """

    def check(name: str, found: object, rel: float = 1e-6, least: float = 1e-12) -> None:
        path = STORED / f"{name}.json"
        found = _plain(found)
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        # Lists without lists in one line each: shorter, and easier to compare.
        inner, ends = re.compile(r"\[\n +([^][{}]*?)\n +\]"), re.compile(r"\n +")
        text = inner.sub(lambda some: f"[{ends.sub(' ', some[1])}]", text)
        if os.environ.get("STORE"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        expected = json.loads(path.read_text(encoding="utf-8"))
        differences = list(_differences(expected, found, "", (rel, least)))
        assert not differences, f"other than stored in {path}:\n" + "\n".join(differences[:20])

    return check


#: Values of an array that are stored; of longer ones as many, and their sums.
_MOST = 40


def _plain(found: Any) -> Any:
    """Return what JSON can hold of a result, eight digits of each number."""
    if isinstance(found, Mapping):
        return {str(_plain(name)): _plain(value) for name, value in found.items()}
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        names = [one.name for one in dataclasses.fields(found)]
        return {name: _plain(getattr(found, name)) for name in names}
    if hasattr(found, "_asdict"):
        return _plain(found._asdict())
    if isinstance(found, pl.DataFrame):
        return _plain(found.to_dict(as_series=False))
    if isinstance(found, np.ndarray):
        return _plain(found.tolist()) if found.size <= _MOST else _sums(found)
    if isinstance(found, list | tuple | set | frozenset):
        items = sorted(found, key=str) if isinstance(found, set | frozenset) else found
        return [_plain(value) for value in items]
    if isinstance(found, bool | int | str) or found is None:
        return found
    if isinstance(found, float):
        return float(f"{found:.8g}")
    if isinstance(found, np.generic):
        return _plain(found.item())
    if isinstance(found, Path | date):
        return str(found)
    return type(found).__name__


def _sums(found: np.ndarray) -> dict[str, Any]:
    """Return some values of a long array, and sums in which every value counts."""
    flat = found.ravel()
    some = flat[:: -(-flat.size // _MOST)].tolist()
    if flat.dtype.kind not in "biufc":
        return {
            "shape": list(found.shape),
            "some": _plain(some),
            "sum": zlib.crc32(str(flat.tolist()).encode()),
        }
    values = np.where(np.isfinite(flat), flat, 0).astype(float)
    sums = [float(values.sum()), float(values @ np.sin(np.arange(flat.size)))]
    return {"shape": list(found.shape), "some": _plain(some), "sums": _plain(sums)}


#: What numbers may differ by: a share of the expected one, or this much.
Close = tuple[float, float]


def _differences(expected: Any, found: Any, place: str, close: Close) -> Iterator[str]:
    """Say where two documents differ."""
    if isinstance(expected, dict) and isinstance(found, dict) and [*expected] == [*found]:
        for name in expected:
            yield from _differences(expected[name], found[name], f"{place}.{name}", close)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from _differences(one, other, f"{place}[{i}]", close)
    elif isinstance(expected, float) and isinstance(found, float):
        # Most are equal, and `approx` takes its time.
        if found != expected and found != pytest.approx(
            expected, rel=close[0], abs=close[1], nan_ok=True
        ):
            yield f"{place}: {found} instead of {expected}"
    elif type(expected) is not type(found) or expected != found:
        yield f"{place}: {found!r} instead of {expected!r}"


@pytest.fixture
def seen() -> Callable[[Any], dict[str, Any]]:
    """Return all that people see of a result, on every medium, as `stored` takes it."""
    return _seen


@pytest.fixture
def drawn() -> Callable[[Callable[[], Any]], Any]:
    """Return what a figure is made of, as `stored` takes it."""
    return _drawing


def _seen(result: Any) -> dict[str, Any]:
    report = result.view()
    return {
        "title": report.title,
        "line": report.line,
        "verdicts": [[one.tone, one.head, one.text] for one in report.verdicts],
        "advice": [_advised(one) for one in report.advice],
        "notes": report.notes,
        "method": report.method,
        "tables": [_table(one) for one in report.tables],
        "figures": {one.name: [one.caption, _drawing(one.draw)] for one in report.figures},
        "figure": _drawing(report.draw) if report.draw and not report.figures else None,
    }


def _advised(advice: Any) -> list[str]:
    return [advice.title, advice.text, advice.remedy]


def _table(table: Any) -> dict[str, Any]:
    cells = [[column.cell(row) for column in table.columns] for row in table.rows]
    return {
        "title": [table.title, table.on],
        "columns": [_column(one) for one in table.columns],
        "rows": [[[cell.text, cell.value, cell.tone] for cell in row] for row in cells],
        "more": [
            [_advised(one) for one in cell.more] for row in cells for cell in row if cell.more
        ],
        "notes": [[one.mark, one.text, one.below, one.apart, one.on] for one in table.remarks()],
    }


def _column(one: Any) -> list[Any]:
    side = "right" if one.right else "left"
    return [one.header, one.key, one.choice, one.about, one.on, side]


def _drawing(draw: Callable[[], Any]) -> Any:
    """Return what a figure is made of, or why there is none: places, texts, colours, order."""
    from matplotlib import pyplot

    try:
        figure = draw().figure
    except (InputError, NotDefinedError) as error:
        return str(error)
    figure.canvas.draw()
    pyplot.close(figure)
    return [figure.get_size_inches().tolist(), *(_axes(ax) for ax in figure.axes)]


def _axes(ax: Any) -> dict[str, Any]:
    from matplotlib.axis import Axis

    from errcomp.report.drawing.hover import spots

    children = [child for child in ax.get_children() if not isinstance(child, Axis)]
    there = [part for child in children for part in child.findobj(lambda one: one.get_visible())]
    shapes = [(part, _shape(part)) for part in there if part is not ax.patch]
    return {
        "limits": [ax.get_xlim(), ax.get_ylim(), ax.get_xscale(), ax.get_yscale()],
        "axis": [
            [axis.get_label_text(), [[*one.get_position(), one.get_text()] for one in labels]]
            for axis, labels in ((ax.xaxis, ax.get_xticklabels()), (ax.yaxis, ax.get_yticklabels()))
        ],
        "parts": [
            [type(part).__name__, part.get_zorder(), part.get_alpha(), *shape]
            for part, shape in shapes
            if shape
        ],
        "told": [[one.x, one.y, np.asarray(one.texts, dtype=object)] for one in spots(ax)],
    }


def _shape(part: Any) -> list[Any]:
    """Return where a line, a text, a patch or a collection is and how it looks."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    if isinstance(part, Text) and part.get_text():
        look = [part.get_rotation(), part.get_ha(), part.get_va(), part.get_fontsize()]
        return [part.get_text(), str(part.get_color()), [*part.get_position()], *look]
    if isinstance(part, Line2D):
        looks = [part.get_color(), part.get_marker(), part.get_linestyle(), part.get_linewidth()]
        if part.get_marker() not in ("None", ""):
            looks += [part.get_markersize(), part.get_markerfacecolor()]
        return [np.asarray(part.get_xydata()), *map(str, looks)]
    if isinstance(part, Patch):
        place = part.get_path().transformed(part.get_patch_transform()).vertices
        return [place, str(part.get_facecolor()), str(part.get_edgecolor())]
    if isinstance(part, Collection):
        places = [np.zeros((0, 2)), *(path.vertices for path in part.get_paths())]
        return [np.concatenate(places), np.asarray(part.get_offsets()), part.get_facecolor()]
    return []


@pytest.fixture
def changed() -> Callable[[Mapping[str, Any], str, Any], dict[str, Any]]:
    """Copy a document and set the value at a path such as ``rows.0.n``.

    A function makes it of the old value; ``...`` drops it.
    """

    def change(document: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
        copied = copy.deepcopy(dict(document))
        here: Any = copied
        *first, last = (int(part) if part.isdigit() else part for part in path.split("."))
        for part in first:
            here = here[part]
        if value is ...:
            del here[last]
        else:
            here[last] = value(here[last]) if callable(value) else value
        return copied

    return change


@pytest.fixture
def refusal() -> Callable[[Mapping[str, Any]], str]:
    """Load a document that must be refused; return why, after its schema, without the remedy."""

    def load_it(document: Mapping[str, Any]) -> str:
        with pytest.raises(InputError) as raised:
            load(document)
        schema, _, rest = str(raised.value).partition(": ")
        assert schema == document["schema"]
        return rest.partition(". Write the document again")[0]

    return load_it


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command line in this process, without lines of progress if it is slow."""
    monkeypatch.setattr("errcomp.cli.streams._PATIENCE_S", 3600.0)

    def call(*argv: object) -> Ran:
        try:
            code = main([str(a) for a in argv])
        except SystemExit as leave:
            code = int(leave.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def run_with_file(tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs Python with an errcomp that has one file more.

    ``run(file, text, *arguments)`` puts the text at that place in the package, runs Python with the
    arguments in ``tmp_path``, and returns what it prints.
    """
    import errcomp

    own = Path(errcomp.__file__).parent

    def run(file: str, text: str, *arguments: str) -> str:
        added = tmp_path / "errcomp" / file
        if not added.exists():
            room = added.parent.name
            added.parent.mkdir(parents=True)
            for folder, copy in ((own, added.parent.parent), (own / room, added.parent)):
                for entry in folder.iterdir():
                    # With what is compiled already; nothing new is, see below.
                    if entry.name != room:
                        (copy / entry.name).symlink_to(entry)
            added.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


# What all reports of checks must be: JUnit XML of a form that CI systems read, any names.

NASTY = [
    "<&\"'>]]>",
    "a\x00b\x1b[31mc",
    "line\nbreak\ttab\r",
    "\ud800 lone surrogate",
    "pipe | `tick` *star* [x](http://y) <b>",
    "\ufffe",
    "😀 ü",
    " ",
    "<script>alert(1)</script> @team #12 $x$ ~~no~~ ![i](j)",
]


def _insist(element, *, attributes, children, optional=()):
    """Insist on an element's attributes and the order of its children."""
    assert set(attributes) <= set(element.attrib) <= {*attributes, *optional}
    assert re.fullmatch(children, "".join(f"{child.tag} " for child in element))


def _schema(xml):
    """Insist on what both the Ant and the Jenkins schema of JUnit XML ask for."""
    root = ET.fromstring(xml)
    _insist(root, attributes=(), children=r"(testsuite )*")
    assert root.tag == "testsuites"
    for k, suite in enumerate(root):
        _insist(
            suite,
            attributes=("name", "package", "id", "timestamp", "hostname", "tests", "failures",
                        "errors", "skipped", "time"),
            children=r"properties (testcase )*system-out system-err ",
        )  # fmt: skip
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        assert suite.get("id") == str(k)
        cases = suite.findall("testcase")
        for kind, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(count)) == sum(case.find(kind) is not None for case in cases)
        assert int(suite.get("tests")) == len(cases)
        names = [case.get("name") for case in cases]
        assert len(set(names)) == len(names)
        for one in suite.find("properties"):
            _insist(one, attributes=("name", "value"), children="")
            assert one.tag == "property"
            assert one.get("name")
        for case in cases:
            _insist(
                case,
                attributes=("name", "classname", "time"),
                children=r"(failure |error |skipped )?",
            )
            assert case.get("name") == " ".join(case.get("name").split()) != ""
            for found in case:
                wanted = ("type",) if found.tag == "failure" else ()
                _insist(found, attributes=wanted, optional=("message",), children="")
    return root


@pytest.fixture
def schema():
    return _schema


@pytest.fixture(params=NASTY)
def nasty(request):
    return request.param


@pytest.fixture
def rendered():
    """Render as GitHub does, raw HTML let through: what was not escaped would show."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render
