"""What cannot be stored is refused, with the place, the value and the remedy."""

from __future__ import annotations

import io

import numpy as np
import pytest

from errcomp.calibration.modelfile import KINDS, FeatureRange, Member, content, portable
from errcomp.calibration.modelfile.container import decode, describe, encode
from errcomp.calibration.modelfile.content import plain_json
from errcomp.errors import InputError

ONES = np.ones(2)


def line(**changed):
    return Member(**{"name": "line", "kind": "linear", "meta": {}, "arrays": {}, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task": "both"}, "task must be one of"),
        ({"unit": "kB"}, "unit must be a unit of time"),
        ({"devices": ["A100"]}, r"devices must be a tuple of names, got \['A100'\]"),
        ({"models": (None,)}, "models must be a tuple of names"),
        ({"modes": ("\ud800",)}, "modes must be a tuple of names"),
        ({"modes": ("a", "a")}, "modes has 'a' twice"),
        ({"levels": [0.5]}, "levels must be a tuple"),
        ({"levels": (1,)}, "levels must be a tuple"),
        ({"levels": (0.5, 1.0)}, "levels must be a tuple"),
        ({"levels": (0.5, 0.5)}, "levels must be a tuple"),
        ({"levels": (float("nan"),)}, "levels must be a tuple"),
        ({"fingerprint": None}, "fingerprint must be"),
        ({"fingerprint": "A" * 64}, "fingerprint must be"),
        ({"created": None}, "created must be a date, YYYY-MM-DD, got None"),
        ({"created": "20250131"}, "created must be a date"),
        ({"created": "2025-13-01"}, "created must be a date"),
        ({"versions": {}}, "versions must be a mapping"),
        ({"versions": {"errcomp": 1}}, "versions must be a mapping"),
        ({"versions": ["errcomp"]}, "versions must be a mapping"),
        ({"conformal": [{}]}, "conformal must be a tuple"),
        ({"conformal": (1,)}, r"conformal\[0\] must be a mapping, got 1"),
        ({"extra": None}, "extra must be a mapping"),
        ({"extra": {"a": [1, {"b": object}]}}, r"extra.a\[1\].b must be a value for JSON"),
        ({"features": [1]}, "features must be a tuple of FeatureRange"),
        ({"features": (FeatureRange("a", "1", 0.0, 1.0),) * 2}, "features has 'a' twice"),
        ({"features": (FeatureRange("a", None, 0.0, 1.0),)}, "'a': unit must be text"),
        ({"features": (FeatureRange("a", "1", 0.0, None),)}, "low and high must be finite"),
        ({"features": (FeatureRange("a", "1", 0.0, float("inf")),)}, "low and high must be"),
        ({"features": (FeatureRange("a", "1", 1.0, 0.0),)}, "low and high must be"),
        ({"members": ()}, "at least one fitted model"),
        ({"members": [line()]}, "members must be a tuple of Member"),
        ({"members": (line(), line())}, "members has 'line' twice"),
        ({"members": (line(name="../a"),)}, "name of a member must be"),
        ({"members": (line(name="a.b"),)}, "name of a member must be"),
        ({"members": (line(name="n" * 65),)}, "name of a member must be"),
        ({"members": (line(kind="forest"),)}, "unknown kind of model: 'forest'"),
        ({"members": (line(meta={"a": np.int64(1)}),)}, "member 'line': meta.a must be"),
        ({"members": (line(booster="text"),)}, "booster must be bytes or None"),
        ({"members": (line(arrays=[ONES]),)}, "arrays must be a mapping"),
        ({"members": (line(arrays={"a/b": ONES}),)}, "name of an array must be"),
        ({"members": (line(arrays={1: ONES}),)}, "name of an array must be"),
        ({"members": (line(arrays={"a": [1.0]}),)}, "array 'a' must be a NumPy array, got list"),
        (
            {"members": (line(arrays={"a": np.array([1.0, np.nan, np.inf])}),)},
            r"array 'a' has NaN or infinite values \(2 of 3\)",
        ),
        (
            {"members": (line(non_finite=("b",), arrays={"a": ONES}),)},
            r"'b', which is not an array\. Arrays: a",
        ),
    ],
)
def test_what_cannot_be_stored(make, changed, said):
    with pytest.raises(InputError, match=said):
        make(**changed).check()


def test_what_is_odd_and_can_be_stored(make):
    content = make(unit=None, devices=("",), models=(), levels=(), features=(), conformal=())
    content.check()
    assert content.unit is None


def test_plain_json_keeps_numbers_and_turns_tuples_into_lists():
    given = {"a": (1, 2.5, True, None, "ö"), "b": {"c": [np.float64(0.1)]}, "d": -(2**63)}
    found = plain_json(given, "meta")
    assert found == {"a": [1, 2.5, True, None, "ö"], "b": {"c": [0.1]}, "d": -(2**63)}
    assert type(found["a"][2]) is bool
    assert type(found["b"]["c"][0]) is float


@pytest.mark.parametrize("value", [float("nan"), 2**63, b"a", {1: 2}, {"\ud800": 1}, np.ones(1)])
def test_plain_json_refuses_what_would_be_lost(value):
    with pytest.raises(InputError, match=r"meta\[0\] must be a value for JSON"):
        plain_json([value], "meta")


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_plain_json_is_32_levels_deep(wrap):
    deep = 1
    for _ in range(32):
        deep = wrap(deep)
    assert plain_json(deep, "meta") == deep
    with pytest.raises(InputError, match="nested more than 32 levels deep"):
        plain_json(wrap(deep), "meta")


def test_plain_json_refuses_what_contains_itself():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InputError, match="nested more than 32 levels deep"):
        plain_json(loop, "meta")


ARRAYS = [
    np.array([1.5, -0.0]),
    np.array([[1, 2], [3, 4]], dtype=np.int32),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(8)[::2],
    np.array([1, 2], dtype=">i8"),
    np.array(["a", "größe"], dtype=">U5"),
    np.array([True, False]),
    np.array(3.0),
    np.zeros((0, 3), dtype=np.float32),
    np.array([-128, 127], dtype=np.int8),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype.str}{a.shape}")
def test_arrays_come_back_and_numpy_reads_them(array):
    data = encode(array)
    for found in (decode(data, describe(array)), np.load(io.BytesIO(data), allow_pickle=False)):
        np.testing.assert_array_equal(found, array)
        assert found.shape == array.shape
        assert found.dtype.newbyteorder("<") == array.dtype.newbyteorder("<")
    assert decode(data, describe(array)).dtype.isnative


@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (10**9, 0), (1,) * 8])
def test_the_header_is_the_one_that_the_format_asks_for(shape):
    data = encode(np.zeros(shape, dtype=np.int8))
    file = io.BytesIO(data)
    assert np.lib.format.read_magic(file) == (1, 0)
    assert np.lib.format.read_array_header_1_0(file) == (shape, False, np.dtype(np.int8))
    assert file.tell() % 64 == 0


@pytest.mark.parametrize(
    "array",
    [
        np.array([None, 1]),
        np.array(["a", "b"], dtype=object),
        np.array([1j]),
        np.array([1], dtype=np.uint64),
        np.array([1.0], dtype=np.float16),
        np.array(["2025-01-31"], dtype="datetime64[D]"),
        np.array([b"a"]),
        np.array([(1, 2.0)], dtype="i4,f8"),
        np.array(["a" * 257]),
    ],
    ids=lambda a: a.dtype.str,
)
def test_types_that_are_not_held(array):
    with pytest.raises(InputError, match=r"is of type .* which model files do not allow"):
        describe(array)


def test_what_only_looks_like_an_array():
    with pytest.raises(InputError, match="must be a NumPy array, got MaskedArray"):
        describe(np.ma.masked_array([1.0], mask=[True]))
    with pytest.raises(InputError, match="must be a NumPy array, got float64"):
        describe(np.float64(1))


def test_truth_values_are_0_and_1():
    data = bytearray(encode(np.array([True, False])))
    data[-1] = 2
    with pytest.raises(InputError, match="Boolean values other than 0 and 1"):
        decode(bytes(data), {"dtype": "|b1", "shape": [2], "finite": True})
    data[-1] = 255
    with pytest.raises(InputError, match="Boolean values other than 0 and 1"):
        decode(bytes(data), {"dtype": "|b1", "shape": [2], "finite": True})


@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800, 0xDFFF])
def test_text_is_unicode(code):
    data = encode(np.array(["ab"]))[:-4] + code.to_bytes(4, "little")
    with pytest.raises(InputError, match="not Unicode"):
        decode(data, {"dtype": "<U2", "shape": [1], "finite": True})


class Line:
    KIND = "linear"

    def __init__(self, slope):
        self.slope = slope

    def to_arrays(self):
        return {"scale": 2.0}, {"slope": self.slope}

    @classmethod
    def from_arrays(cls, meta, arrays):
        return cls(meta["scale"] * arrays["slope"])


def test_members_are_taken_apart_and_made_again(monkeypatch):
    member = Member.of("line", Line(ONES), non_finite=["slope"], booster=b"1")
    assert (member.kind, member.meta, member.booster) == ("linear", {"scale": 2.0}, b"1")
    assert member.non_finite == ("slope",)
    monkeypatch.setattr(content, "kinds", lambda: {"linear": (__name__, "Line")})
    monkeypatch.setattr(content, "import_module", lambda name: {__name__: _Here}[name])
    assert portable("linear") is Line
    assert member.restore().slope.tolist() == [2.0, 2.0]


class _Here:
    Line = Line


def test_kinds_that_are_not_known():
    with pytest.raises(InputError, match="Kinds: " + ", ".join(KINDS)):
        portable("forest")


def test_a_model_that_cannot_be_restored_says_so_in_one_line():
    broken = line(meta={"intercept": 0.1, "spreads": {}}, arrays={"coefficients": np.ones((2, 2))})
    with pytest.raises(InputError) as refused:
        broken.restore()
    assert str(refused.value) == (
        "coefficients must be one finite float64 per feature, got [[1. 1.] [1. 1.]]. Fit the model "
        "again."
    )
