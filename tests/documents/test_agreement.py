"""Propagated totals whose values contradict each other are refused, with field and remedy."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest

from errcomp import Kernels, propagate
from errcomp.documents import load
from errcomp.errors import InputError
from errcomp.propagation import ClassError, ErrorModel
from errcomp.propagation.graph import Kernel, Queue


def _with(document: Mapping[str, Any], path: tuple[Any, ...], value: Any) -> Any:
    """Change one value; a function makes the new one of the old one."""
    found = copy.deepcopy(dict(document))
    here: Any = found
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value(here[path[-1]]) if callable(value) else value
    return found


def _more(value: float) -> float:
    return value * 1.01


CONTRADICTIONS = [
    (("rows", 0, "mean"), _more, r"rows\[0\]\.bias is .*, but must be .*follows from mean / predi"),
    (("rows", 0, "sd"), _more, r"rows\[0\]\.relative_sd is .*, which follows from sd / mean"),
    (("rows", 0, "relative_sd"), None, r"rows\[0\]\.relative_sd is null, but must be 0\."),
    (("rows", 0, "growth"), 3.0, r"rows\[0\]\.growth is 3, but must be .* relative_sd / kernel_sd"),
    (("rows", 1, "prediction"), _more, r"rows\[1\]\.bias is"),
    (("rows", 1, "measured"), _more, r"rows\[1\]\.measured is .* from the other rows of this run"),
    (("rows", 3, "kernel_sd"), _more, r"rows\[3\]\.kernel_sd is .* the other rows of this run"),
    (("rows", 0, "bands", 2, "low"), lambda low: 1.6 * low,
     r"rows\[0\]\.bands\[2\]\.low is .*at most .* contain the median"),
    (("rows", 0, "bands", 3, "high"), lambda high: 0.8 * high,
     r"rows\[0\]\.bands\[3\]\.high is .*at least .* contain the band of 0\.9"),
    (("rows", 0, "bands", 3, "high"), None, r"bands\[3\]\.high is null, .* no queue is saturated"),
    (("rows", 3, "bands", 3, "low"), lambda low: low * 1.1,
     r"rows\[3\]\.bands\[3\]\.low is .*at most .* contain the band of 0\.9"),
    (("rows", 0, "by_class", 0, "share_of_time"), 0.999, r"by_class: the values of share_of_"),
    (("rows", 0, "by_kernel", 1, "first_order"), 0.999, r"by_kernel: the values of first_order"),
    (("rows", 0, "by_class", 0, "total"), 1.2, r"total is 1.2, but must be at most 1"),
    (("rows", 0, "by_class"), None, r"by_class is null, but must be a list, because"),
    (("errors", "components", "n"), 7, r"errors\.components\.n is 7, but must be 36, the sum of"),
    (("errors", "components", "n_clusters"), 99, r"n_clusters is 99, but must be from 1 to n_runs"),
    (("errors", "classes", "gemm", "n_clusters"), 9, r"errors\.classes\.gemm\.n_clusters is 9"),
    (("errors", "components", "levels", 0, "correlation"), 1.5,
     r"levels\[0\]\.correlation is 1\.5, but must be from 0 to 1"),
    (("caveats", 0, "evidence", "n_runs"), 5, r"caveats\[0\]\.evidence\.n_runs is 5, but must be"),
]  # fmt: skip


@pytest.fixture(scope="module")
def one_run(written: Any) -> Mapping[str, Any]:
    """The document of one run, its errors and caveats those of all runs of the table."""
    document: Mapping[str, Any] = {
        **written("propagate one run").document,
        **{name: written("propagate").document[name] for name in ("errors", "caveats")},
    }
    load(document)
    return document


@pytest.mark.parametrize(("path", "value", "message"), CONTRADICTIONS)
def test_contradictions_are_refused(
    one_run: Mapping[str, Any], path: tuple[Any, ...], value: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message) as raised:
        load(_with(one_run, path, value))
    assert str(raised.value).startswith("errcomp.propagate/1: ")
    assert str(raised.value).endswith(
        " part of the document was changed. Write the document again with this errcomp: errcomp "
        "propagate … -o FILE.json"
    )


VALIDATIONS = [
    (("rows", 0, "n"), 5, r"rows\[0\]\.n is 5, but must be 12, the number of runs"),
    (("rows", 0, "n_clusters"), 13, r"rows\[0\]\.n_clusters is 13, but must be from 1 to n, 12"),
    (("rows", 1, "coverage_low"), 0.9, r"rows\[1\]\.coverage is .*inside its interval \[0\.9"),
    (("rows", 2, "coverage"), lambda share: share - 0.01, r"rows\[2\]\.coverage is .*/12"),
]


@pytest.mark.parametrize(("path", "value", "message"), VALIDATIONS)
def test_contradictions_of_a_validation_are_refused(
    written: Any, path: tuple[Any, ...], value: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message) as raised:
        load(_with(written("validation").document, path, value))
    assert str(raised.value).endswith("errcomp propagate validate … -o FILE.json")


def test_a_wider_band_that_holds_less_is_refused(written: Any) -> None:
    document = copy.deepcopy(dict(written("validation").document))
    widest = next(row for row in document["rows"] if row["level"] == 0.95)
    widest |= {"coverage": 0.0, "coverage_low": 0.0}
    with pytest.raises(
        InputError,
        match=r"rows\[3\].coverage is 0, but must be at least 1, the coverage at level 0.9:",
    ):
        load(document)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def test_rounding_is_no_contradiction(written: Any) -> None:
    document = dict(written("propagate one run").document)
    document["rows"] = _rounded(document["rows"])
    assert document != written("propagate one run").document
    load(document)


@pytest.mark.parametrize("assumption", ["repeats", "unknown"])
@pytest.mark.parametrize("rate", [0.5, 0.9, 1.02, 1.5])
def test_what_a_saturated_queue_gives_is_no_contradiction(rate: float, assumption: str) -> None:
    kernels = Kernels({"kernel": ["g"], "count": [1], "predicted": [1.0]}, unit="ms")
    errors = ErrorModel({}, other=ClassError(0.0, 0.3))
    graph = Queue(Kernel("g"), rate)
    found = propagate(kernels, errors=errors, graph=graph, correlation=assumption, draws=512)
    again = load(json.loads(found.to_json()))
    assert [band.high for band in again.of().bands] == [band.high for band in found.of().bands]
