"""Keys that files lack: given by the user, or in their names."""

from __future__ import annotations

from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.readers.core.keys import keys_in_name, with_keys, with_keys_from_names
from errcomp.readers.core.output import Output, output


def made(name: str = "a.log", **columns: Any) -> Output:
    rows = {"predicted": [1.0, 2.0], **columns}
    return output(name, "x", rows, tool="x", level="model", quantity="time", unit="ms")


@pytest.mark.parametrize(
    ("name", "pattern", "found"),
    [
        ("bert_b8.json", "{model}_b{batch}.json", [{"model": "bert", "batch": "8"}]),
        ("bert_b8.json.gz", "{model}_b{batch}.json", [{"model": "bert", "batch": "8"}]),
        ("bert_b8.json.zst", "{model}_b{batch}.json.zst", [{"model": "bert", "batch": "8"}]),
        ("bert_b8.json", "{model}_b{batch}", [{"model": "bert", "batch": "8"}]),
        ("x/H100/bert.json", "{device}/{model}.json", [{"device": "H100", "model": "bert"}]),
        ("H100/bert.json", "{model}.json", [{"model": "bert"}]),
        ("bert.json", "{device}/{model}.json", []),
        ("run-7-bert.log", "*-{model}.log", [{"model": "7-bert"}, {"model": "bert"}]),
        ("run-7-bert.log", "run-7-{model}.log", [{"model": "bert"}]),
        ("a_b_c", "{x}_{y}", [{"x": "a", "y": "b_c"}, {"x": "a_b", "y": "c"}]),
        ("a.b.json", "{x}.json", [{"x": "a.b"}]),
        ("_b8.json", "{model}_b{batch}.json", []),
        ("bert_b.json", "{model}_b{batch}.json", []),
        ("bert.txt", "{model}.json", []),
        ("bert (1).json", "{model} (*).json", [{"model": "bert"}]),
    ],
)
def test_keys_in_a_name(name: str, pattern: str, found: list[dict[str, str]]) -> None:
    assert keys_in_name(name, pattern) == found


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("plain.json", "has no key in braces. Example"),
        ("{model}_{model}", "has the key 'model' twice"),
        ("{model}{device}", "needs text between two of its keys"),
        ("{model}*_b", "needs text between two of its keys"),
        ("{model_b8", "has no key in braces"),
        ("{model}_b{}", "a brace without a key"),
        ("{model}_x{device", "a brace without a key"),
        ("{device}.csv", r"a.log: the pattern '{device}.csv' does not fit this name\."),
        ("{count}.log", "'count' cannot be the name of a key"),
    ],
)
def test_patterns_that_cannot_be_used(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_keys_from_names(made(), pattern)


def test_files_that_do_not_fit_are_named() -> None:
    read = made(file=["a_b", "cd"])
    read = Output(read.rows, read.formats, ("a_b", "cd"))
    with pytest.raises(InputError, match=r"cd: the pattern '\{x\}_\{y\}' .* 1 of 2 file names\."):
        with_keys_from_names(read, "{x}_{y}")


def test_numbers_and_names() -> None:
    keys = {"batch": "8", "version": "10", "layers": "012", "alpha": "0.5", "huge": "9" * 16}
    rows = with_keys(made(), keys).rows
    assert rows.select(*keys).row(0) == (8, "10", "012", "0.5", "9" * 16)
    read = made(file=["a_b8", "c_bx"])
    mixed = with_keys_from_names(
        Output(read.rows, read.formats, ("a_b8", "c_bx")), "{model}_b{batch}"
    )
    assert mixed.rows["batch"].to_list() == ["8", "x"]


def test_other_values_are_replaced_with_a_note() -> None:
    read = with_keys(made(device=["NVIDIA H100 80GB", None]), {"device": "H100"})
    assert read.rows["device"].to_list() == ["H100", "H100"]
    assert read.notes == ("device of 1 row was NVIDIA H100 80GB in the files; it is now H100.",)
    assert with_keys(made(device=["H100", None]), {"device": "H100"}).notes == ()
    (note,) = with_keys(made(device=["H200", "A100"]), {"device": "H100"}).notes
    assert note == "device of 2 rows was H200, A100 in the files; it is now H100."


def test_runs_of_one_file_keep_their_names() -> None:
    with pytest.raises(
        InputError, match=r"holds 2 runs\. The key 'run' would give them all the same name"
    ):
        with_keys(made(run=["a", "b"]), {"run": "x"})
    assert with_keys(made(run=["a", "a"]), {"run": "x"}).rows["run"].to_list() == ["x", "x"]
    assert with_keys(made(), {"run": "x"}).rows["run"].to_list() == ["x", "x"]


def test_a_name_that_fits_in_several_ways_is_refused_with_two_of_them() -> None:
    with pytest.raises(
        InputError,
        match=r"^a_b_c_d\.log: fits the pattern '\{model\}_\{device\}' in several ways: "
        r"model=a; device=b_c_d, or model=a_b; device=c_d\. In the pattern, write the text of the "
        r"name in place of one \{key\}",
    ):
        with_keys_from_names(made("a_b_c_d.log"), "{model}_{device}")
