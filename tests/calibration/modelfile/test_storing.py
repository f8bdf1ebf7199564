"""Model files: what goes in comes out, nothing is half-written, and every forgery is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from errcomp.calibration import modelfile
from errcomp.calibration.modelfile import SCHEMA, Member, read_model, write_model
from errcomp.errors import InputError

ARRAY = "arrays/line/slope.npy"


def files_in(folder):
    return [file.name for file in folder.iterdir()]


def test_what_goes_in_comes_out(make, path):
    given, found = make(), read_model(path)
    for name in given.__dataclass_fields__:
        if name != "members":
            assert getattr(found, name) == getattr(given, name), name
    assert [m.name for m in found.members] == ["boosted", "line"]
    for before in given.members:
        after = found.member(before.name)
        assert (after.kind, after.meta, after.booster) == (before.kind, before.meta, before.booster)
        assert after.non_finite == before.non_finite
        assert set(after.arrays) == set(before.arrays)
        for name, array in before.arrays.items():
            assert after.arrays[name].dtype == array.dtype
            np.testing.assert_array_equal(after.arrays[name], array)
            assert after.arrays[name].flags.writeable


def test_the_same_content_makes_the_same_bytes_in_whatever_order_it_is_given(make, path, tmp_path):
    other = tmp_path / "other.errcomp"
    content = make(versions={"numpy": "2.0", "errcomp": "0.1.0"})
    boosted, line = content.members
    arrays = dict(reversed(boosted.arrays.items()))
    boosted = Member("boosted", "trees", boosted.meta, arrays, ("threshold",), boosted.booster)
    write_model(other, make(members=(boosted, line)))
    assert other.read_bytes() == path.read_bytes()
    write_model(other, read_model(path))
    assert other.read_bytes() == path.read_bytes()


def test_any_zip_program_and_numpy_can_read_it(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(archive.namelist())
        assert {"manifest.json", "manifest.sha256", ARRAY, "boosters/boosted.ubj"} <= set(
            archive.namelist()
        )
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        with archive.open(ARRAY) as file:
            assert np.load(file, allow_pickle=False).tolist() == [[1.5, -2.0]]
        manifest = json.loads(archive.read("manifest.json"))
    assert (manifest["format"], manifest["schema"]) == ("errcomp-model", SCHEMA)
    assert manifest["entries"][ARRAY]["shape"] == [1, 2]


def test_a_member_that_is_not_there_is_named(path):
    with pytest.raises(InputError, match=r"no member 'lines'. Members: boosted, line"):
        read_model(path).member("lines")


# --- writing -----------------------------------------------------------------------------------


def test_a_model_is_replaced_and_nothing_else_is_left(make, path):
    write_model(path, make(unit="us"))
    assert read_model(path).unit == "us"
    assert files_in(path.parent) == [path.name]


@pytest.mark.parametrize("data", [b"", b"run,measured\n", b"PK\x03\x04 cut off"])
def test_a_file_that_is_no_model_is_not_overwritten(make, path, data):
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"gpu.errcomp: exists and is not a readable model file"):
        write_model(path, make())
    assert path.read_bytes() == data
    assert files_in(path.parent) == [path.name]


def test_another_zip_archive_is_not_overwritten(make, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thesis.tex", "years of work")
    with pytest.raises(InputError, match="not overwritten"):
        write_model(path, make())


def test_a_model_of_a_newer_errcomp_may_be_overwritten(make, forge):
    path = forge(lambda manifest: manifest.update(schema=SCHEMA + 1))
    write_model(path, make())
    assert read_model(path).unit == "ms"


def test_folders_links_to_nothing_and_odd_names_are_refused(make, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        write_model(tmp_path, make())
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="not overwritten"):
        write_model(tmp_path / "link", make())
    with pytest.raises(InputError, match="zero byte"):
        write_model("a\0b", make())
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        write_model(tmp_path / "no such folder" / "a.errcomp", make())


def test_an_interrupted_write_leaves_the_old_file(make, path, monkeypatch):
    before = path.read_bytes()

    def fails(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(modelfile.os, "fsync", fails)
    with pytest.raises(KeyboardInterrupt):
        write_model(path, make(unit="us"))
    assert path.read_bytes() == before
    assert files_in(path.parent) == [path.name]


def test_a_full_disk_leaves_the_old_file(make, path, monkeypatch):
    before = path.read_bytes()

    def fails(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(modelfile.os, "fsync", fails)
    with pytest.raises(InputError, match="No space left"):
        write_model(path, make(unit="us"))
    assert path.read_bytes() == before
    assert files_in(path.parent) == [path.name]


def test_content_that_cannot_be_stored_writes_nothing(make, tmp_path):
    with pytest.raises(InputError, match="unit must be a unit of time"):
        write_model(tmp_path / "a.errcomp", make(unit="cycles"))
    assert files_in(tmp_path) == []


def test_a_model_that_is_too_large_is_not_written(make, tmp_path, monkeypatch):
    monkeypatch.setattr(modelfile, "LARGEST", 1000)
    with pytest.raises(InputError, match=r"at most 1,000. Keep fewer posterior draws"):
        write_model(tmp_path / "a.errcomp", make())


def test_what_could_not_be_read_is_not_written(make, tmp_path):
    odd = np.array([0xD800], dtype=np.uint32).view("<U1")
    member = Member("line", "linear", {}, {"names": odd})
    with pytest.raises(InputError, match="not Unicode"):
        write_model(tmp_path / "a.errcomp", make(members=(member,)))
    assert files_in(tmp_path) == []


# --- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no.errcomp", "cannot be read .No such file"),
        (".", "a folder or a special file"),
        ("a\0b", "does not exist"),
        ("n" * 300, "cannot be read .File name too long"),
    ],
)
def test_what_cannot_be_opened(tmp_path, name, said):
    with pytest.raises(InputError, match=said):
        read_model(tmp_path / name)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a folder or a special file"):
        read_model(tmp_path / "pipe")


def test_no_more_is_read_than_a_model_can_have(path, monkeypatch):
    monkeypatch.setattr(modelfile, "LARGEST", 2**20)
    with path.open("r+b") as file:
        file.truncate(2**20 + 1)
    with pytest.raises(InputError, match="is larger than 1 MiB"):
        read_model(path)


def test_messages_name_the_file(path):
    path.write_bytes(b"run,measured\n")
    with pytest.raises(
        InputError, match=r"gpu.errcomp: is not a model file: it begins with b'run,'"
    ):
        read_model(path)


def test_a_newer_schema_says_upgrade(forge):
    path = forge(lambda manifest: manifest.update(schema=SCHEMA + 1, members="otherwise"))
    with pytest.raises(InputError, match=r"newer errcomp \(schema 2; this one reads up to 1\)"):
        read_model(path)


def test_schemas_are_migrated_step_by_step(forge, monkeypatch):
    def first(manifest, found):
        manifest["unit"] = manifest.pop("time_unit")
        return manifest, found

    def second(manifest, found):
        found["arrays/line/slope.npy"] = 2 * found["arrays/line/slope.npy"]
        return manifest, found

    def old(manifest):
        manifest["time_unit"] = manifest.pop("unit")

    path = forge(old)
    monkeypatch.setattr(modelfile, "SCHEMA", 3)
    monkeypatch.setattr(modelfile, "MIGRATIONS", {1: first, 2: second, 3: None})
    found = read_model(path)
    assert found.unit == "ms"
    assert found.member("line").arrays["slope"].tolist() == [[3.0, -4.0]]


def renamed(manifest):
    manifest["entries"]["arrays/nobody/slope.npy"] = manifest["entries"].pop(ARRAY)


def set_in(*keys):
    *path, last, value = keys

    def change(manifest):
        for key in path:
            manifest = manifest[key]
        manifest[last] = value

    return change


FORGERIES = {
    "schema 0": (set_in("schema", 0), "has schema 0, which no version of errcomp has written"),
    "schema true": (set_in("schema", True), "schema must be a whole number"),
    "schema text": (set_in("schema", "1"), "schema must be a whole number"),
    "format": (set_in("format", "other"), "its format is 'other', not 'errcomp-model'"),
    "unknown kind": (
        set_in("members", 0, "kind", "forest"),
        r"unknown kind of model: 'forest'. Kinds: .*newer errcomp",
    ),
    "kind as list": (set_in("members", 0, "kind", []), r"unknown kind of model: \[\]"),
    "unit": (set_in("unit", "parsec"), "unit must be a unit of time .*got 'parsec'"),
    "unit as list": (set_in("unit", ["ms"]), "unit must be"),
    "task": (set_in("task", "training"), "task must be one of composition, prediction"),
    "surplus key": (set_in("more", 1), "manifest should not have 'more'"),
    "missing key": (lambda m: m.pop("levels"), "manifest lacks 'levels'"),
    "no index": (set_in("entries", []), "no index of its entries"),
    "index of numbers": (set_in("entries", ARRAY, 1), "no index of its entries"),
    "missing entry": (
        set_in("entries", "arrays/line/more.npy", {}),
        "lacks the entries arrays/line/more.npy",
    ),
    "surplus entry": (lambda m: m["entries"].pop(ARRAY), "should not have the entries"),
    "renamed": (renamed, "lacks the entries arrays/nobody"),
    "other length": (set_in("entries", ARRAY, "bytes", 1), "was changed: its checksum differs"),
    "other checksum": (set_in("entries", ARRAY, "sha256", "0" * 64), "its checksum differs"),
    "other shape": (set_in("entries", ARRAY, "shape", [2, 1]), r"says: an array of type <f8"),
    "negative shape": (set_in("entries", ARRAY, "shape", [-1, -2]), "has the impossible shape"),
    "shape of truth": (set_in("entries", ARRAY, "shape", [True, 2]), "has the impossible shape"),
    "shape as number": (set_in("entries", ARRAY, "shape", 2), "has the impossible shape"),
    "huge shape": (set_in("entries", ARRAY, "shape", [2**40]), "has the impossible shape"),
    "huge and empty": (set_in("entries", ARRAY, "shape", [0, 2**62]), "has the impossible shape"),
    "deep shape": (set_in("entries", ARRAY, "shape", [1] * 9), "has the impossible shape"),
    "other dtype": (set_in("entries", ARRAY, "dtype", "<i8"), "says: an array of type <i8"),
    "objects": (set_in("entries", ARRAY, "dtype", "|O"), r"is of type '\|O', which model files"),
    "fields": (set_in("entries", ARRAY, "dtype", [["a", "<f8"]]), "which model files do not allow"),
    "long text": (set_in("entries", ARRAY, "dtype", "<U257"), "which model files do not allow"),
    "finite as text": (
        set_in("entries", ARRAY, "finite", "no"),
        "has finite = 'no' in the manifest, not true or false",
    ),
    "about an array": (set_in("entries", ARRAY, "more", 1), "should not have 'more'"),
    "about a booster": (
        set_in("entries", "boosters/boosted.ubj", "dtype", "<f8"),
        "should not have 'dtype'",
    ),
    "NaN not allowed": (
        set_in("entries", "arrays/boosted/threshold.npy", "finite", True),
        "has NaN or infinity, but",
    ),
    "member without arrays": (lambda m: m["members"].pop(), "belong to none of its members"),
    "members as text": (set_in("members", "two"), "members must be a list, got 'two'"),
    "member as text": (set_in("members", 0, "one"), r"members\[0\] must be an object, got 'one'"),
    "member lacks meta": (lambda m: m["members"][0].pop("meta"), r"members\[0\] lacks 'meta'"),
    "meta as list": (set_in("members", 0, "meta", []), "member 'boosted': meta must be a mapping"),
    "features as object": (set_in("features", {}), "features must be a list"),
    "feature range": (set_in("features", 0, "low", 9.0), "low and high must be finite floats"),
    "feature unit": (set_in("features", 0, "unit", 1), "feature 'share': unit must be text"),
    "twice a device": (set_in("devices", ["A", "B", "A"]), "devices has 'A' twice"),
    "devices as numbers": (set_in("devices", [1]), "devices must be a tuple of names"),
    "levels": (set_in("levels", [0.9, 0.5]), "levels must be a tuple of ascending fractions"),
    "conformal": (set_in("conformal", ["x"]), r"conformal\[0\] must be a mapping"),
    "fingerprint": (set_in("fingerprint", "abc"), "fingerprint must be 64 hexadecimal digits"),
    "created": (set_in("created", "2025-02-30"), "created must be a date"),
    "versions": (set_in("versions", {"numpy": "2"}), "versions must be a mapping"),
    "half a character": (
        set_in("extra", {"a": "\ud800"}),
        "manifest.extra.a must be a value for JSON",
    ),
    "large integer": (set_in("extra", {"a": 2**63}), "manifest.extra.a must be a value for JSON"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_with_fitting_checksums(forge, name):
    change, said = FORGERIES[name]
    with pytest.raises(InputError, match=said):
        read_model(forge(change))


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "not valid JSON"),
        (b"\xff{}", "not valid JSON"),
        (b"[]", "its format is"),
        (b"null", "its format is None"),
        (b'{"a": 1, "a": 2}', "names 'a' twice"),
        (b'{"extra": NaN}', "manifest.extra must be a value for JSON"),
        (b'{"extra": -Infinity}', "manifest.extra must be a value for JSON"),
        (b'{"extra": 1e999}', "manifest.extra must be a value for JSON"),
        (b"9" * 5000, "not valid JSON"),
        (DEEP, "nested too deeply"),
        (b"[" * 40 + b"]" * 40, "nested more than 32 levels deep"),
        (b'["' + b"x" * 2**24 + b'"]', "its manifest .the part in JSON. has 16,777,220 bytes"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_manifests_that_are_none(forge, text, said):
    with pytest.raises(InputError, match=said):
        read_model(forge(manifest_text=text))


def test_a_changed_manifest_is_found_before_it_is_read(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"errcomp-model"', b'"errcomp-modem"'))
    with pytest.raises(InputError, match="its manifest was changed: the checksum differs"):
        read_model(path)


def test_an_array_whose_header_asks_for_objects(forge):
    body = b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 2), }".ljust(117) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body + b"cos\nsystem\n"
    with pytest.raises(InputError, match="says: an array of type <f8"):
        read_model(forge(entries={ARRAY: data}))


def test_an_entry_that_no_member_has_a_place_for(forge):
    with pytest.raises(InputError, match=r"belong to none of its members: arrays/line/run.sh"):
        read_model(forge(entries={"arrays/line/run.sh": b"rm"}))


def test_a_file_packed_again_by_another_program(path):
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    for method, said in (
        (zipfile.ZIP_STORED, "packed by another program"),
        (zipfile.ZIP_DEFLATED, "is compressed, but a model file has no compressed entries"),
    ):
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        with pytest.raises(InputError, match=said):
            read_model(path)


BLOCKED = """
import sys

class OnlyNumPy:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in {*sys.stdlib_module_names, "numpy", "errcomp"}:
            raise ModuleNotFoundError(f"{name} is blocked")

sys.meta_path.insert(0, OnlyNumPy())
for name in ("pymc", "xgboost", "sklearn", "polars", "narwhals", "scipy", "pandas", "rich"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise SystemExit(f"{name} was not blocked")

from errcomp.calibration.modelfile import read_model, write_model

content = read_model(sys.argv[1])
write_model(sys.argv[2], content)
print(content.member("line").arrays["slope"].tolist())
"""


@pytest.mark.core
def test_reading_and_writing_need_numpy_only(path, tmp_path):
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, path, tmp_path / "copy.errcomp"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[[1.5, -2.0]]")
    assert (tmp_path / "copy.errcomp").read_bytes() == path.read_bytes()
