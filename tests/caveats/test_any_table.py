"""Whatever valid table comes in: no error, known codes, plain evidence."""

from __future__ import annotations

import json

import hypothesis
from hypothesis import strategies as st

from errcomp.caveats import CHECKS, check, check_table

CODES = {one.code for one in CHECKS}

words = st.sampled_from(["a", "b", None])


@hypothesis.given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6),
            st.floats(1e-6, 1e6),
            words,
            words,
            st.booleans(),
            st.integers(1, 8),
        ),
        min_size=1,
        max_size=14,
    )
)
def test_any_valid_table_is_checked_without_error(
    rows: list[tuple[float, float, str | None, str | None, bool, int]],
) -> None:
    names = ("predicted", "measured", "model", "variant", "in_training", "devices")
    table = {
        name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    for caveat in check(table):
        assert caveat.code in CODES
        json.dumps(caveat.to_dict(), allow_nan=False)
    tools = {**table, "tool": [("x", "y")[i % 2] for i in range(len(rows))]}
    for caveat in check_table(tools):
        assert caveat.code in CODES
        json.dumps(caveat.to_dict(), allow_nan=False)
