"""YAML that would end the process is refused; what tools write is read."""

from __future__ import annotations

import pytest
import yaml

from errcomp.system import strict_yaml
from errcomp.system.strict_yaml import loads


@pytest.mark.parametrize("piece", ["[", "- ", '{"a": ', "? "])
def test_deep_nesting_is_refused(piece: str) -> None:
    # With the parser in C it would be the end of this process.
    with pytest.raises(ValueError, match="nested too deeply: more than 200 levels"):
        loads(f"x: 1\ny:\n  {piece * 50_000}\n")


def test_some_nesting_is_fine() -> None:
    found = loads("[" * 200 + "1" + "]" * 200)
    for _ in range(200):
        (found,) = found
    assert found == 1
    with pytest.raises(ValueError, match="nested too deeply"):
        loads("[" * 201 + "1" + "]" * 201)


def grown(levels: int, each: str) -> str:
    """Return lists of ten times the list before."""
    lines = ["a0: &a0 {k: 1}"]
    for i in range(1, levels):
        of = ", ".join([f"*a{i - 1}"] * 10)
        lines.append(f"a{i}: &a{i} {each.format(of)}")
    return "\n".join(lines)


@pytest.mark.parametrize("each", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_that_multiply_are_refused(each: str) -> None:
    with pytest.raises(ValueError, match="its aliases stand for more than 10,000,000 values"):
        loads(grown(9, each))
    assert set(loads(grown(4, each))) == {"a0", "a1", "a2", "a3"}


def test_only_what_aliases_repeat_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    # A list of two numbers, and it again within a list: 3 and 1 + 3 + 1 values; and a number.
    text = "{a: &x [1, 2], b: &y [*x, 5], c: *y, d: &z 3, e: *z}"
    monkeypatch.setattr(strict_yaml, "_MOST", 9)
    assert loads(text) == {"a": [1, 2], "b": [[1, 2], 5], "c": [[1, 2], 5], "d": 3, "e": 3}
    monkeypatch.setattr(strict_yaml, "_MOST", 8)
    with pytest.raises(ValueError, match="its aliases stand for more than 8 values"):
        loads(text)
    assert loads(str([*range(100)])) == [*range(100)]


def test_what_holds_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="a holds itself"):
        loads("x: &a [1, *a]")


def test_what_is_no_yaml_is_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        loads("x: [1, 2")
    with pytest.raises(yaml.YAMLError):
        loads("!!python/object:os.system {}")
    with pytest.raises(yaml.YAMLError):
        loads("x: *unknown")


@pytest.mark.parametrize(
    ("error", "message"),
    [(RecursionError(), "^nested too deeply$"), (TypeError("no key\nat line 1"), "^no key$")],
)
def test_an_error_within_the_parser_is_that_of_the_text(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(yaml, "load", fail)
    with pytest.raises(ValueError, match=message):
        loads("a: 1")
