"""Basic blocks of GRANITE."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.output import Output
from errcomp.readers.learned import granite

DATA = Path(__file__).resolve().parents[1] / "data" / "readers"


def fixture(name: str, scenario: str = "good") -> Output:
    return ingest(DATA / name / scenario, among=granite.FORMATS)


def text_of(tmp_path: Path, text: str | bytes, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("text", ["inverse_throughputs { }", "basic_block { }"])
def test_one_of_two_words_is_no_sign_of_it(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="format"):
        ingest(text_of(tmp_path, text), among=granite.FORMATS)


def test_a_row_for_each_value_of_each_source() -> None:
    found = fixture("granite-throughputs")
    rows = found.rows.select("tool", "device", "predicted", "measured", "repeat").rows()
    assert rows == [
        ("llvm_sim", "haswell", 1.0, None, 1),
        ("llvm_sim", "haswell", 2.0, None, 2),
        ("llvm_sim", "haswell", 1.5, None, 3),
        ("bhive", None, None, 2.25, None),
        ("test", None, 5.0, None, 1),
        ("test", None, 4.0, None, 2),
        ("uica", None, None, None, None),
    ]
    assert found.rows["status"].to_list()[-1] == "no throughput"
    assert found.rows["mnemonics"].unique().to_list() == ["LEA NOP"]
    assert found.rows["kernel"].n_unique() == 1
    assert found.dropped[0].n == 1
    assert "made up" in found.notes[1]


def test_a_file_of_one_block() -> None:
    rows = fixture("granite-throughputs", "single_block").rows
    assert rows.select("predicted", "measured", "status").rows() == [
        (None, None, "no value"),
        (None, 1.0, None),
    ]


def test_the_same_block_has_the_same_name(tmp_path: Path) -> None:
    block = 'basic_blocks { basic_block { canonicalized_instructions { mnemonic: "RET" } } '
    block += 'inverse_throughputs { source: "uica" inverse_throughput_cycles: 1 } }\n'
    rows = granite.read(text_of(tmp_path, block * 2)).rows
    assert rows["kernel"].n_unique() == 1
    assert rows["block"].to_list() == [1, 2]


HEAD = "basic_blocks { basic_block { } inverse_throughputs { "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inverse_throughput_cycles: [1, 2", r"line 1: the text proto ends within a message"),
        ("source: ", r"the text proto ends within a message"),
        ('source: "x" ', r"the text proto ends within a message"),
        ("source: ] } }", r"expected a value, got '\]'"),
        ("7: 1 } }", r"expected the name of a field, got '7'"),
        ("\n% } }", "line 2: not valid text proto: '% "),
        ("inverse_throughput_cycles: abc } }", r"of block 1 must be a number, got 'abc'"),
        ("a { " * 60, r"nested too deeply"),
    ],
)
def test_what_cannot_be_used(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        granite.read(text_of(tmp_path, HEAD + text))


def test_a_source_without_anything(tmp_path: Path) -> None:
    rows = granite.read(text_of(tmp_path, HEAD + "} }")).rows
    assert rows.select("tool", "status").rows() == [("unknown", "no throughput")]


def test_blocks_and_sources_of_other_shapes(tmp_path: Path) -> None:
    text = (
        "basic_blocks: 7 basic_blocks { basic_block: 1 inverse_throughputs: 2 "
        "inverse_throughputs { inverse_throughput_cycles: 1 } }"
    )
    found = granite.read(text_of(tmp_path, text))
    assert found.rows.select("tool", "predicted", "instructions").rows() == [("unknown", 1.0, 0)]
    assert found.dropped[0].n == 1


@pytest.mark.shared
def test_the_sample(shared_data: Path) -> None:
    folder = shared_data / "tools" / "granite"
    found = granite.read(folder / "gematria_basic_blocks_with_throughput.pbtxt")
    rows = found.rows
    assert rows["block"].n_unique() == 35
    first = rows.filter((rows["block"] == 1) & (rows["tool"] == "llvm_sim"))
    assert first["predicted"].to_list() == [1.0] * 15
    assert first["device"].unique().to_list() == ["haswell"]
    made_up = rows.filter(rows["source"] == "test: made up values")
    assert made_up["predicted"].to_list()[:5] == [5.0, 4.0, 3.0, 2.0, 1.0]
    assert rows["measured"].null_count() == len(rows)
    assert any("made up" in note for note in found.notes)
