"""``errcomp plan``: bad usage is one line, exit 2, and nothing on stdout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("claim", "--error", "5"), "'5' means 500 %. Did you mean '5%'?"),
        (("claim", "--error", "5%", "--expected", "3"), "'3' means 300 %. Did you mean '3%'?"),
        (("claim", "--error", "5%", "--expected", "x"), "--expected: 'x' is not a fraction"),
        (
            ("claim", "--error", "5%", "--cluster", "model"),
            "--cluster applies only to a pilot",
        ),
        (
            ("claim", "--error", "5%", "--tool", "x"),
            "--tool applies only to a pilot",
        ),
        (("claim", "--error", "5%", "--power", "40%"), "power must be between 0.5 and 1"),
        (("runs", "--model", "no.errcomp", "--candidates", "ort-cpu"), "no.errcomp"),
        (("runs", "--model", "a", "--candidates", "b", "-k", "0"), "'0' is not a count"),
    ],
)
def test_bad_usage(run: Callable[..., Any], argv: tuple[str, ...], message: str) -> None:
    ran = run("plan", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_large_errors_have_a_per_cent_sign(run: Callable[..., Any]) -> None:
    found = run("plan", "claim", "--error", "150%", "--expected", "60%,0.9", "--json").json
    assert found["limit"] == 1.5
    assert [row["error"] for row in found["rows"]] == [0.6, 0.9]
