"""Version numbers, and what puts versions in order where numbers do not."""

from __future__ import annotations

import numpy as np
import pytest
from packaging.version import Version

from errcomp.errors import InputError
from errcomp.tables.memory.versions import order_versions, version_number

NUMBERS = [
    "1.0.dev456",
    "1.0a1",
    "1.0a2.dev456",
    "1.0a12.dev456",
    "1.0a12",
    "1.0b1.dev456",
    "1.0b2",
    "1.0b2.post345.dev456",
    "1.0b2.post345",
    "1.0rc1.dev456",
    "1.0rc1",
    "1.0",
    "1.0+abc.5",
    "1.0+abc.7",
    "1.0+5",
    "1.0.post456.dev34",
    "1.0.post456",
    "1.0.15",
    "1.1.dev1",
    "1.9",
    "1.10",
    "1.15.1",
    "1.16.0",
    "2.0",
    "v2.1",
    "2.2-rc.1",
    "2.2-3",
    "2.7.0rc1",
    "2.7.0",
    "2.8.0.dev20251001+rocm7.0.0.git64359f59",
    "2.8.0",
    "25.09",
    "25.11",
    "26.02.01",
    "0.11.0a0",
    "0.11.0a0+build.1579841125.jan",
    "0.10.0a",
    "0.7.99.9000",
    "19.11.3.11",
    "1.1.0rc2.post2",
]


def dates(*texts: str) -> np.ndarray:
    return np.asarray([text or "NaT" for text in texts], dtype="M8[s]")


def order(names, *, given=None, released=None, first=None, source=""):
    nothing = [""] * len(names)
    return order_versions(
        names,
        order=given,
        released=dates(*(released or nothing)),
        first=dates(*(first or nothing)),
        source=source,
    )


def test_numbers_are_ordered_as_pep_440_orders_them():
    # The order of `packaging`, which nobody here wrote.
    for a in NUMBERS:
        for b in NUMBERS:
            mine = (version_number(a) > version_number(b)) - (version_number(a) < version_number(b))
            theirs = (Version(a) > Version(b)) - (Version(a) < Version(b))
            assert mine == theirs, (a, b)


@pytest.mark.parametrize(("older", "newer"), [("1.9", "1.10"), ("2.0-nightly", "2.0"), ("7", "v8")])
def test_numbers_in_order(older, newer):
    assert version_number(older) < version_number(newer)


@pytest.mark.parametrize("name", ["3012eb184330", "3723b12", "12345678", "main", "1.2.x", "", "v"])
def test_what_is_no_number(name):
    assert version_number(name) is None


@pytest.mark.parametrize("name", ["20260131", "123456", "v3"])
def test_whole_numbers_and_dates_are(name):
    assert version_number(name) is not None


def test_release_dates_come_first_and_disagreement_is_noted():
    found = order(["1.16.0", "1.15.1"], released=["2023-09-20", "2023-10-05"])
    assert (found.names, found.by) == (("1.16.0", "1.15.1"), "released")
    assert found.notes == (
        "numbers and release dates disagree: 1.16.0 (2023-09-20) was released before 1.15.1 "
        "(2023-10-05); ordered by release date",
    )
    assert order(["1.15.1", "1.16.0"], released=["2023-06-20", "2023-10-05"]).notes == ()
    assert order(["main", "1.16.0"], released=["2023-06-20", "2023-10-05"]).notes == ()


def test_numbers_where_a_release_date_is_missing():
    found = order(["1.10", "1.9", "1.11"], released=["2025-01-01", "", "2024-01-01"])
    assert (found.names, found.by) == (("1.9", "1.10", "1.11"), "number")
    assert "1.11 (2024-01-01) was released before 1.10" in found.notes[0]
    assert found.notes[0].endswith("ordered by number")


def test_dates_of_validation_last():
    found = order(["beef", "cafe"], first=["2025-02-01", "2025-01-01"])
    assert (found.names, found.by, found.notes) == (("cafe", "beef"), "date", ())


def test_one_release_date_is_settled_by_number_or_the_other_date():
    day = ["2025-01-01"] * 2
    assert order(["1.10", "1.9"], released=day).names == ("1.9", "1.10")
    assert order(["beef", "cafe"], released=day, first=["2025-03-01", "2025-02-01"]).names == (
        "cafe",
        "beef",
    )


def test_a_single_version_needs_no_order():
    assert order(["beef"]).by == "single"


def test_an_order_is_taken_as_given():
    found = order(["b", "a"], given=["a", "x", "b"], released=["2025-01-01", "2025-02-01"])
    assert (found.names, found.by) == (("a", "b"), "order")
    assert found.notes == (
        "1 version was named in the given order but never validated: left out",
        "the given order differs from the release dates: b (2025-01-01) was "
        "released before a (2025-02-01)",
    )


def test_versions_of_one_date_and_number_are_ordered_by_their_first_validation():
    same = {"released": ["2025-01-01"] * 2, "first": ["2025-02-02", "2025-02-01"]}
    assert order(["1.0", "1.0.0"], **same).names == ("1.0.0", "1.0")
    # Numbers come first where they differ.
    assert order(["1.0", "1.1"], **same).names == ("1.0", "1.1")


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (
            ["a", "b"],
            {"given": ["a"]},
            r"h\.csv: order lacks 1 of 2 versions: b\. Name all versions",
        ),
        (["a", "b"], {"given": ["a", "b", "a"]}, "the order has version 'a' twice"),
        (
            ["a", "b", "c", "d"],
            {"first": ["2025-01-01", "", "", ""]},
            r"cannot be ordered: no release date: a, b, c \(and 1 more\); not a version number: "
            r"a, b, c \(and 1 more\); no date of validation: b, c, d\. List the versions, oldest "
            r"first, with order=\[\.\.\.\] \(--order A,B,C\),",
        ),
        (
            ["a", "b", "c"],
            {"released": ["2025-01-02", "2025-01-01", "2025-01-02"]},
            "a, c share one release date, 2025-01-02",
        ),
        (
            ["a", "b"],
            {"released": ["2025-01-01"] * 2, "first": ["2025-01-01", ""]},
            "a, b share one release date, 2025-01-01",
        ),
        (["1.0", "1.0.0"], {}, "'1.0' and '1.0.0' are the same number"),
    ],
)
def test_what_cannot_be_ordered_says_why(names, options, message):
    with pytest.raises(InputError, match=message):
        order(names, source="h.csv", **options)


FULL = ["0123456789abcdef", "fedcba9876543210", "0123456fffffffff"]


@pytest.mark.parametrize(
    "names",
    [FULL, ["fedcba9", "0123456f", "01234567"], ["fedcba9876543210aa", *FULL[2:], "012345678"]],
)
def test_hashes_may_be_shorter_or_longer_than_in_the_order(names: list[str]) -> None:
    ordered = order(names, given=[FULL[0], "aaaaaaaaaa", "v1", *FULL[1:]])
    starts = [name[:8] for name in ordered.names]
    assert starts[0] == "01234567"
    assert starts[1].startswith("fedcba9")
    assert starts[2] == "0123456f"
    assert ordered.notes == ()  # most commits are never validated


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["0123456"],
            "version '0123456' may be commit '0123456789abcdef' or commit '0123456fffffffff': both "
            "begin with it.",
        ),
        (["fedcba9", "fedcba98"], "fedcba9 and fedcba98 are the same commit. Use one name."),
        (["fedcba"], "order lacks 1 of 1 versions: fedcba."),  # too short for a hash
        (["fedcba98765432100", "abc"], "order lacks 1 of 2 versions: abc."),
    ],
)
def test_hashes_that_fit_none_or_several_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        order(names, given=FULL)
    assert message in str(error.value)
