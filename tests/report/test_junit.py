"""The common base of JUnit files and summaries."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree as ET

import pytest

from errcomp.caveats import remedies
from errcomp.errors import InputError
from errcomp.report.junit import Case, CheckReport, junit_xml, token
from errcomp.report.markdown import head, table
from errcomp.results import Caveat


def written(cases, **options):
    return junit_xml("suite", cases, properties={"level": "0.95"}, summary="done", **options)


def test_every_outcome_has_its_form(schema):
    root = schema(
        written([Case("a"), Case("b", "failure", "far off", "error"), Case("c", "skipped", "no n")])
    )
    suite = root[0]
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["3", "1", "0", "1"]
    failure = root.find(".//failure")
    assert (failure.get("message"), failure.get("type")) == ("far off", "error")
    # Without a text of its own the message is shown: some systems show the text alone.
    assert failure.text == "far off"
    assert root.find(".//skipped").get("message") == "no n"
    assert suite.find("system-out").text == "done"


def test_names_that_come_again_are_numbered(schema):
    root = schema(written([Case("a"), Case("a"), Case("a (2)"), Case("a")]))
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["a", "a (2)", "a (2) (2)", "a (3)"]


def test_no_case_is_a_suite_as_well(schema):
    assert schema(written([]))[0].get("tests") == "0"


def test_any_text_is_escaped(nasty, schema):
    cases = [Case(nasty, "failure", nasty, nasty, nasty), Case(nasty, "skipped", nasty)]
    xml = junit_xml(f"s{nasty}", cases, properties={"source": nasty}, summary=nasty)
    root = schema(xml)
    assert b"\x00" not in xml
    assert root.find(".//failure") is not None


def test_ctrl_c_while_cases_are_written_stays_ctrl_c(monkeypatch):
    """An element that takes a generator would make a TypeError of it."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("errcomp.report.junit._element", interrupt)
    with pytest.raises(KeyboardInterrupt):
        written([Case("a")])


def test_a_suite_needs_a_name():
    with pytest.raises(InputError, match="name of the suite must not be empty"):
        junit_xml(" ", [], properties={}, summary="")


def test_markdown_shows_any_text_as_it_is(nasty, rendered):
    lines = [*head(f"t{nasty}", f"v{nasty}"), *table(["key", "n"], [[nasty, "1"], ["x", "2"]])]
    html = rendered("\n".join(lines))
    assert html.count("<td>") == 4
    assert html.count("<h2>") == html.count("<strong>") == 1
    for tag in ("<script", "<b>", "<a ", "<img", "<em>", "<code>", "<s>"):
        assert tag not in html
    cell = ET.fromstring(html[html.index("<table>") :]).find(".//td")
    assert "".join(cell.itertext()) == token(nasty)


def test_long_tables_say_how_many_rows_are_left_out():
    lines = table(["n"], [[str(i)] for i in range(23)])
    assert lines[-2:] == ["and 3 more.", ""]
    assert sum(line.startswith("| ") for line in lines) == 21
    assert table(["n"], [[""]])[2] == "| – |"


def test_remedies_come_once_and_the_gravest_first():
    few, tail = Caveat("few-configurations", ""), Caveat("tail", "")
    lines = remedies({"A": [tail, few], "B": [few], "C": [few], "D": [few]})
    assert len(lines) == 2
    assert lines[0].startswith("few-configurations: ")
    assert "(A; B; C; …). " in lines[0]
    assert lines[1].startswith(
        "tail: a few errors are far larger than the mean (A). Quote the largest"
    )


def test_many_kinds_of_caveats_are_cut():
    from errcomp.caveats import CHECKS

    codes = [one.code for one in CHECKS if one.scope == "pairs"]
    assert remedies({"A": [Caveat(code, "") for code in codes]})[-1] == (
        f"and {len(codes) - 6} more kinds of caveats."
    )


def test_a_time_is_written_in_that_of_greenwich(schema):
    east = datetime(2026, 1, 31, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    for when, text in (
        (east, "2026-01-30T23:30:00"),
        (east.replace(tzinfo=None), "2026-01-31T01:30:00"),
        (None, "1970-01-01T00:00:00"),
    ):
        assert schema(written([Case("a")], timestamp=when))[0].get("timestamp") == text


def test_a_check_fails_if_any_case_does(schema):
    cases = (Case("a"), Case("b", "skipped", "no n"))
    report = CheckReport("checks", cases, {"level": "0.95"}, "Pass: nothing.", "# checks")
    assert not report.failed
    assert replace(report, cases=(*cases, Case("c", "failure", "off"))).failed
    when = datetime(2026, 1, 31, tzinfo=UTC)
    (suite,) = schema(report.junit(timestamp=when))
    assert (suite.get("name"), suite.get("timestamp")) == ("checks", "2026-01-31T00:00:00")
    assert suite.find("properties")[0].get("value") == "0.95"
    assert suite.find("system-out").text == "Pass: nothing."
    assert report.junit() == junit_xml(
        "checks", cases, properties={"level": "0.95"}, summary="Pass: nothing."
    )
