"""Figures of an audit against images of them.

Run ``pytest --mpl-generate-path=tests/report/baseline`` on this file, and look at each image, after
a change that is meant.
"""

from __future__ import annotations

import pytest

import errcomp as ec
from errcomp.claims.view import figures as draw

pytest.importorskip("matplotlib")
pytest.importorskip("pytest_mpl")
pytestmark = pytest.mark.extras

image = pytest.mark.mpl_image_compare(
    baseline_dir="baseline",
    tolerance=0.2,
    style="default",
    savefig_kwargs={"dpi": 100, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}},
)


@pytest.fixture(scope="module")
def table():
    return ec.datasets.load("neusight")


@pytest.fixture(scope="module")
def one(table):
    return table.of_tool("neusight")


@image
def test_claimed(table, readable):
    some = table.where({"device": ["H100", "L4", "T4"]})
    return readable(draw.claimed(ec.audit(some, by=["device", "mode"], resamples=999)))


@pytest.mark.slow
@image
def test_claimed_of_several_tools(table, readable):
    some = table.where({"tool": ["neusight", "habitat", "roofline"]})
    return readable(draw.claimed(ec.audit(some, by=["mode"], tool="all", resamples=999)))


@image
def test_predicted_against_measured(one, readable):
    some = one.where({"device": ["H100", "L4", "T4", "V100", "P4"]})
    return readable(draw.predicted_against_measured(some))


@image
def test_ecdf(one, readable):
    return readable(draw.ecdf(one))


@image
def test_ecdf_of_several_tools(table, readable):
    return readable(draw.ecdf(table.where({"tool": ["neusight", "habitat"]})))


@image
def test_bland_altman(one, readable):
    return readable(draw.bland_altman(one))


@image
def test_by_group(one, readable):
    return readable(draw.by_group(one.where({"vendor": "NVIDIA"})))


@image
def test_coverage_map(table):
    return draw.coverage_map(table).figure  # text on tints: see test_style
