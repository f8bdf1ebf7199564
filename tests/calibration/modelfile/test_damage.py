"""Damage anywhere in a file is found, and nothing but InputError is raised."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_st

from errcomp.calibration import modelfile
from errcomp.calibration.modelfile import (
    FeatureRange,
    Member,
    ModelContent,
    read_model,
    write_model,
)
from errcomp.errors import InputError

settings = hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)


def refused(path, data):
    """Read these bytes in the place of the file's; a disk would take its time with thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modelfile, "_bytes_of", lambda _: data)
        with pytest.raises(InputError):
            read_model(path)


def test_every_byte_counts(path):
    whole = path.read_bytes()
    for at in range(len(whole)):
        refused(path, whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])


@settings
@hypothesis.given(st.integers(min_value=0), st.integers(1, 255))
def test_any_flipped_byte(path, at, mask):
    whole = path.read_bytes()
    at %= len(whole)
    refused(path, whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])


@settings
@hypothesis.given(st.integers(min_value=0), st.booleans())
def test_any_truncation(path, at, front):
    whole = path.read_bytes()
    at %= len(whole)
    refused(path, whole[at + 1 :] if front else whole[:at])


@settings
@hypothesis.given(st.integers(min_value=0), st.binary(min_size=1, max_size=64), st.booleans())
def test_any_inserted_or_overwritten_bytes(path, at, data, insert):
    whole = path.read_bytes()
    at %= len(whole) + 1
    changed = whole[:at] + data + whole[at if insert else at + len(data) :]
    hypothesis.assume(changed != whole)
    refused(path, changed)


@settings
@hypothesis.given(st.binary(max_size=300))
def test_any_bytes(tmp_path, data):
    refused(tmp_path / "any", data)
    refused(tmp_path / "any", b"PK\x03\x04" + data)
    ending = b"PK\x05\x06" + bytes(4) + b"\x01\x00\x01\x00"
    refused(tmp_path / "any", b"PK\x03\x04" + data + ending + bytes(10))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


def places(value, path=()):
    """Yield the way to every value in a document."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from places(part, (*path, key))


@settings
@hypothesis.given(st.randoms(use_true_random=False), JSON | st.just([[]]) | st.just({"a": {}}))
def test_any_value_anywhere_in_a_manifest_with_fitting_checksums(forge, random, value):
    def change(manifest):
        *way, last = random.choice([path for path in places(manifest) if path])
        for key in way:
            manifest = manifest[key]
        manifest[last] = value

    # Some values may be others: nothing but InputError is raised, and what is read is sound.
    path = forge()
    whole, names = path.read_bytes(), [member.name for member in read_model(path).members]
    path = forge(change)
    try:
        found = read_model(path)
        found.check()
        assert len(found.members) == len(names)
    except InputError:
        pass
    finally:
        path.write_bytes(whole)


TYPES = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "|i1", "|b1", "<U1", "<U9"])
SHAPES = numpy_st.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
NAMES = st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True)


@settings
@hypothesis.given(
    st.dictionaries(NAMES, numpy_st.arrays(TYPES, SHAPES), max_size=3),
    st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=3),
)
def test_whatever_is_written_is_read(tmp_path, arrays, meta):
    member = Member("one", "linear", meta, arrays, non_finite=tuple(arrays))
    content = ModelContent(
        task="prediction",
        unit=None,
        features=(FeatureRange("a", "1", 0.0, 1.0),),
        devices=tuple(meta),
        models=(),
        modes=(),
        levels=(0.9,),
        members=(member,),
        fingerprint="f" * 64,
        versions={"errcomp": "0.1.0"},
        created="2025-01-31",
        extra=meta,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modelfile.os, "fsync", lambda _: None)  # this disk need not last
        write_model(tmp_path / "any.errcomp", content)
    found = read_model(tmp_path / "any.errcomp")
    assert found.extra == meta
    assert found.members[0].meta == meta
    assert found.devices == tuple(meta)
    assert set(found.members[0].arrays) == set(arrays)
    for name, array in arrays.items():
        assert found.members[0].arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.members[0].arrays[name], array)
