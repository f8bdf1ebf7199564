"""Tables of pairs: what is written is read, and junk is refused with a message."""

from __future__ import annotations

from typing import Any

import hypothesis
import polars as pl
from hypothesis import strategies as st

from errcomp.errors import InputError
from errcomp.readers.plain import read_pairs

#: Each example takes 30 ms: half of them, but all where many are tried (`make simulations`).
FEW = hypothesis.settings(
    max_examples=hypothesis.settings.default.max_examples
    // (1 if hypothesis.settings.default.max_examples > 25 else 2)
)

NUMBERS = st.floats(min_value=1e-300, max_value=1e300, allow_nan=False)
NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1
)


@FEW
@hypothesis.given(st.lists(st.tuples(NAMES, NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_what_is_written_is_read(
    tmp_path_factory: Any, rows: list[tuple[str, float, float]]
) -> None:
    device, predicted, measured = (list(column) for column in zip(*rows, strict=True))
    frame = pl.DataFrame({"device": device, "predicted": predicted, "measured": measured})
    folder = tmp_path_factory.mktemp("round", numbered=True)
    frame.write_csv(folder / "a.csv")
    frame.write_csv(folder / "a.tsv", separator="\t")
    frame.write_parquet(folder / "a.parquet")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_json(folder / "a.json")
    for path in sorted(folder.iterdir()):
        pairs = read_pairs(path)
        assert pairs.predicted.tolist() == predicted
        assert pairs.measured.tolist() == measured
        assert pairs.column("device").tolist() == device


@hypothesis.given(
    st.binary(max_size=60), st.sampled_from([b"", b"PAR1", b"[", b"{", b"\x1f\x8b", b"a,b\n"])
)
def test_nothing_but_an_input_error_comes_out(
    tmp_path_factory: Any, tail: bytes, head: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "junk"
    path.write_bytes(head + tail)
    try:
        read_pairs(path)
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017 - valid junk may also be read
