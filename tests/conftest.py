"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import hypothesis
import pytest
from markdown_it import MarkdownIt

from errcomp.cli import main

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
    """Folder of third-party data beside the checkout: mandatory under CI, else skipped."""
    path = Path(__file__).resolve().parents[2] / "shared" / "data"
    if path.is_dir():
        return path
    message = "the third-party data folder (../shared/data) is not beside this checkout"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the command line in this process."""

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
                    if entry.name not in (room, "__pycache__"):
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
