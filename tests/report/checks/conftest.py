"""What all reports of checks must be: JUnit XML of a form that CI systems read, any names."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

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
