"""Reports of a gate: form of the XML, escaping, what is said, the same bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from errcomp.errors import InputError
from errcomp.halflife.gate import check
from errcomp.halflife.panel import Panel
from errcomp.halflife.view.gate import report_halflife

BASE = (0.0, 0.01, -0.01)


def junit_xml(result, *, name="errcomp.halflife", timestamp=None):
    return report_halflife(result, name=name).junit(timestamp=timestamp)


def markdown_summary(result, **options):
    return report_halflife(result, **options).markdown


def panel_of_rows(rows, *, sd=0.01, names=None, versions=None, frozen=True):
    error = np.array(rows, dtype=float)
    s, n = error.shape
    validated = ~np.isnan(error)
    return Panel(
        versions=tuple(versions or (f"1.{k}" for k in range(n))),
        months=np.arange(float(n)),
        names=tuple(names or (f"op{i}" for i in range(s))),
        clusters=np.arange(s),
        starts=np.concatenate([[0], np.cumsum(validated.sum(axis=1))]),
        version=np.tile(np.arange(n), (s, 1))[validated],
        error=error[validated],
        sd=np.broadcast_to(np.asarray(sd, dtype=float), error.shape)[validated],
        noise_df=np.where(np.isnan(np.broadcast_to(sd, error.shape)).all(axis=1), 0.0, 20.0),
        frozen_at_first=frozen,
    )


def mixed(**options):
    """Gelu: one series grew, one did not; Conv: unchanged; New: cannot be tested."""
    panel = panel_of_rows(
        [[*BASE, -0.7], [*BASE, 0.0], [*BASE, 0.01], [np.nan, np.nan, np.nan, 0.3]],
        names=("Gelu 1x128", "Gelu 1x512", "Conv", "New"),
    )
    return check(panel, groups=["Gelu", "Gelu", "Conv", "New"], **options)


# The form that CI systems read


def test_form(schema):
    root = schema(junit_xml(mixed()))
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert list(cases) == ["Gelu", "Conv", "New"]
    assert [child.tag for child in cases["Gelu"]] == ["failure"]
    assert len(cases["Conv"]) == 0
    assert cases["New"].find("skipped").get("message") == "no version in the baseline"


def test_failures_name_operator_release_and_sizes():
    root = ET.fromstring(junit_xml(mixed()))
    failure = root.find(".//failure")
    assert failure.get("message").startswith("the error of 1 of 2 series grew: Gelu 1x128: ")
    assert failure.get("type") == "regression"
    text = failure.text
    assert "Gelu 1x128: error 0.0 % before, -50.3 % now, versions 1.2 to 1.3," in text
    # log(measured before / measured now) = -0.7: twice as slow.
    assert "measured values changed by +101.4 %" in text
    assert "Gelu 1x512" not in text


def test_properties_hold_the_levels():
    root = ET.fromstring(junit_xml(mixed(look=2, margin=0.02)))
    properties = {element.get("name"): element.get("value") for element in root.iter("property")}
    assert properties["level.look"] == "0.000684351"
    assert (properties["look"], properties["alpha"], properties["margin"]) == ("2", "0.05", "0.02")
    assert (properties["series.error grew"], properties["series.cannot be told"]) == ("1", "1")
    assert (properties["outcome"], properties["noise.df"]) == ("regression", "inf")


def test_many_series_are_listed_up_to_a_number():
    panel = panel_of_rows([[*BASE, 0.5 + 0.001 * i] for i in range(60)])
    result = check(panel, groups=["all"] * 60)
    text = ET.fromstring(junit_xml(result)).find(".//failure").text
    assert text.startswith("op59: ")
    assert text.endswith("and 10 more")
    assert len(text.splitlines()) == 51
    summary = markdown_summary(result)
    assert "and 40 more." in summary
    assert summary.count("| op") == 20


def test_any_name_is_escaped(nasty, schema):
    name = nasty
    panel = panel_of_rows(
        [[*BASE, 0.7], [np.nan, np.nan, np.nan, 1.0]],
        names=(name, "x"),
        versions=("1", "2", "3" + name, name),
    )
    result = check(panel, groups=[name, name + "x"])
    root = schema(junit_xml(result, name=f"suite {name}"))
    assert root.find(".//failure") is not None
    for line in markdown_summary(result, title=name).splitlines():
        assert not set(line) & set("\x00\x1b\r\t\ufffe\ud800")
        assert "<b>" not in re.sub(r"\\.", "", line)
    rows = [line for line in markdown_summary(result).splitlines() if line.startswith("| ")]
    blamed = re.sub(r"\\.", "", rows[1])
    assert blamed.count("|") == 8


def test_control_characters_are_shown():
    panel = panel_of_rows([[*BASE, 0.7]], names=("a\x00b",))
    assert b"a\\x00b" in junit_xml(check(panel))


def test_time_stamps():
    def stamp(when):
        return ET.fromstring(junit_xml(mixed(), timestamp=when))[0].get("timestamp")

    assert stamp(None) == "1970-01-01T00:00:00"
    assert stamp(datetime(2026, 11, 21, 1, 2, 3, 4)) == "2026-11-21T01:02:03"
    assert stamp(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=2)))) == "2025-12-31T22:00:00"
    assert stamp(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00"


def test_the_same_result_gives_the_same_bytes():
    assert junit_xml(mixed()) == junit_xml(mixed())
    assert markdown_summary(mixed()) == markdown_summary(mixed())


def test_a_suite_needs_a_name():
    with pytest.raises(InputError, match="name of the suite must not be empty"):
        junit_xml(mixed(), name=" ")


# The summary


def test_summary_of_a_regression():
    text = markdown_summary(mixed(look=1))
    assert text.startswith("## Half-life check\n\n**Regression at 1.3: the error of 1 of 4 series")
    assert "| Gelu 1x128 | Gelu | 1.2 to 1.3 | 0.0 % | -50.3 % | -50.3 % \\[" in text
    assert "- The measurement changed: measure the previous version again on" in text
    assert "| error grew | 1 |" in text
    assert (
        "check number 1 of this history. The probability of any false alarm is at most 0.00075 in"
        in text
    )
    assert "The prediction changed" not in text
    assert "Student t" not in text
    assert "without a regression" not in text


def test_summary_says_what_a_pass_could_have_seen():
    panel = panel_of_rows([[*BASE, 0.0]])
    result = check(panel)
    text = markdown_summary(result)
    seen = np.expm1(result.detectable[0])
    assert f"In the median series a shift of +{100 * seen:.1f} % would be detected half" in text
    assert "What to do: nothing." in text


def test_summary_where_nothing_can_be_told(schema):
    result = check(panel_of_rows([[0.0, 0.5]], sd=np.nan))
    text = markdown_summary(result)
    assert (
        "**Cannot tell yet at 1.1: too few validations to know the noise: 5 more needed.**" in text
    )
    assert (
        "What to do: add validations of earlier versions, or validate each series several" in text
    )
    suite = schema(junit_xml(result))[0]
    assert (suite.get("skipped"), suite.get("failures")) == ("1", "0")


def test_series_that_were_not_validated_are_skipped():
    panel = panel_of_rows([[*BASE, 0.0], [*BASE, np.nan]])
    skipped = ET.fromstring(junit_xml(check(panel))).find(".//skipped")
    assert skipped.get("message") == "not validated"


def test_summary_of_what_moved_and_is_no_regression():
    error = np.array([[*BASE, 0.5], [*BASE, 0.5], [*BASE, 0.0], [0.5, 0.51, 0.49, 0.0]])
    predictor = np.zeros((4, 4))
    predictor[:3, 3] = [0.5, 0.2, 0.3]
    panel = panel_of_rows(error, frozen=False)
    first = np.repeat(error[:, :1], 4, axis=1)
    result = check(
        panel, predictor=predictor.ravel(), reference=(error - first - predictor).ravel()
    )
    text = markdown_summary(result)
    grew, others = text.split("### Changed, without a regression")
    assert "predictions changed by +64.9 %" in grew
    # Both parts: exp(-0.3) - 1 of the measurement, exp(0.2) - 1 of the prediction.
    assert "measured values changed by -25.9 % and predictions changed by +22.1 %" in grew
    assert "| op2 |" in others
    assert others.index("| op3 |") < others.index("| op2 |")
    assert "- The prediction changed: check what changed" in others
    assert "- The measurement changed" in others


def test_summary_where_what_moved_is_not_known():
    text = markdown_summary(check(panel_of_rows([[*BASE, 9.0]], frozen=False)))
    assert "unknown whether measurement or prediction changed" in text
    assert (
        "- It is unknown whether the measurement or the prediction changed: store the "
        "measurement and the prediction" in text
    )
    assert "a factor of 8.1e+03" in text
    assert "The measurement changed" not in text


def test_summary_says_that_the_law_was_widened():
    rng = np.random.default_rng(0)
    panel = panel_of_rows(0.05 * rng.standard_normal((30, 8)))
    text = markdown_summary(check(panel))
    assert re.search(
        r"Validations of successive versions scatter [45]\.\d times as much as repeats\. The test "
        r"allows for this\.",
        text,
    )


def test_summary_says_how_the_noise_is_not_normal():
    rng = np.random.default_rng(0)
    noise = np.where(rng.random((10, 60)) < 0.06, 8.0, 1.0) * rng.standard_normal((10, 60))
    for k in range(1, 60):
        noise[:, k] += 0.5 * noise[:, k - 1]
    text = markdown_summary(check(panel_of_rows(0.01 * noise, sd=np.nan)))
    assert re.search(r"single values far off, as often as a Student t .* of [1-4]\.\d degr", text)
    assert re.search(r"The noise of successive checks is correlated \(0\.[3-6]\d\)\.", text)


@pytest.fixture(scope="module")
def repeated():
    """The check of two series: one value of the first, which was quiet before, is far off."""
    quiet = 0.01 * np.random.default_rng(0).standard_normal((2, 30))
    quiet[0, -1] = -0.4
    return check(panel_of_rows(quiet, sd=np.nan, names=("Gelu", "Conv")))


def test_what_to_repeat_is_said(schema, repeated):
    result = repeated
    assert result.outcome == "repeat"
    n = int(result.repeats_needed[0])
    runs = f"{n} more run{'s' * (n > 1)} like it would make it a regression"
    text = markdown_summary(result)
    assert "**Repeat needed at 1.29: 1 of 2 series may have changed, or may have had a" in text
    assert f"Gelu: {runs}" in text
    assert "What to do: validate these series again under the same version" in text
    suite = schema(junit_xml(result))[0]
    assert (suite.get("skipped"), suite.get("failures")) == ("1", "0")
    skipped = suite.find(".//skipped").get("message")
    assert skipped.startswith("repeat needed in 1 of 1 series: Gelu: error")
    assert skipped.endswith(runs)


def test_a_repeat_may_fail(schema, repeated):
    report = report_halflife(repeated, fail_on=["repeat"])
    failure = schema(report.junit()).find(".//failure")
    assert failure.get("type") == "repeat"
    assert failure.text.startswith("Gelu: error")
    assert report.failed


def test_over_twenty_runs_are_said(repeated):
    result = replace(repeated, repeats_needed=np.zeros(2, dtype=int))
    assert "over 20 more runs like it" in markdown_summary(result)


def test_a_series_whose_corrected_p_is_unknown_is_listed_without_it(repeated):
    result = replace(repeated, p_adjusted=np.array([np.nan, 1.0]))
    text = ET.fromstring(junit_xml(result)).find(".//skipped").get("message")
    assert " versions 1.28 to 1.29, measured values changed by" in text
    assert "p = " not in text
    known = replace(result, p_adjusted=np.array([0.0321, 1.0]))
    text = ET.fromstring(junit_xml(known)).find(".//skipped").get("message")
    assert ", p = 0.032 corrected for all series; " in text
