"""The container: hostile archives are refused, each with its reason."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest

from errcomp.calibration.modelfile import container, read_model
from errcomp.calibration.modelfile.container import check_bytes, pack, unpack
from errcomp.errors import InputError


def archive_of(*entries, method=zipfile.ZIP_STORED):
    """Write an archive with the standard library; an entry is a name or a ZipInfo, and bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return file.getvalue()


def raw_name(name):
    """Make an archive with a name that zipfile would not write as it is."""
    data = archive_of(("x" * len(name), b"1"))
    return data.replace(b"x" * len(name), name)


def test_entries_come_back():
    entries = {"a/b.npy": b"1", "c": b"", "b": bytes(range(256))}
    data = pack(entries)
    found = unpack(data)
    assert {name: bytes(part) for name, part in found.items()} == entries
    check_bytes(data, found)


def test_archives_of_the_standard_library_are_understood():
    assert bytes(unpack(archive_of(("a", b"12")))["a"]) == b"12"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (b"/etc/passwd", "an absolute path"),
        (b"C:/a", "an absolute path"),
        (b"c:a", "an absolute path"),
        (b"../a", "a path outside its folder"),
        (b"arrays/../../a", "a path outside its folder"),
        (b"..", "a path outside its folder"),
        (b"..\\a", "has a backslash"),
        (b"arrays\\a", "has a backslash"),
        (b"gr\xc3\xb6\xc3\x9fe", "not ASCII"),
        (b"a\x00b", "only letters, digits"),
        (b"a/", "only letters, digits"),
        (b"a//b", "only letters, digits"),
        (b"./a", "only letters, digits"),
        (b"a b", "only letters, digits"),
        (b"a\n", "only letters, digits"),
        (b"a:stream", "on another drive"),
        (b".hidden", "only letters, digits"),
    ],
    ids=repr,
)
def test_names_that_lead_elsewhere(name, said):
    with pytest.raises(InputError, match=said) as error:
        unpack(raw_name(name))
    assert "Do not unpack the file" in str(error.value)


def test_an_empty_name():
    with pytest.raises(InputError, match="only letters, digits"):
        unpack(pack({"": b"1"}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_is_there_twice():
    with pytest.raises(InputError, match="entry 'a' is duplicated"):
        unpack(archive_of(("a", b"1"), ("a", b"2")))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (stat.S_IFLNK, "is a link"),
        (stat.S_IFIFO, "not a regular file"),
        (stat.S_IFDIR, "not a regular"),
    ],
)
def test_links_and_devices(kind, said):
    info = zipfile.ZipInfo("a")
    info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    with pytest.raises(InputError, match=said):
        unpack(archive_of((info, b"/etc/passwd")))


def test_a_bomb_is_not_unpacked():
    bomb = archive_of(("arrays/a/a.npy", bytes(2**24)), method=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 20_000
    with pytest.raises(InputError, match=r"is compressed.* If a newer errcomp wrote it, upgrade"):
        unpack(bomb)


def changed(data, mark, offset, value, size):
    """Overwrite a field of the last header that begins with this mark."""
    at = data.rindex(mark) + offset
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def test_an_entry_that_says_it_is_huge():
    data = pack({"a": b"1", "b": b"2"})
    for offset in (20, 24):
        data = changed(data, b"PK\x01\x02", offset, 2**32 - 1, 4)
    with pytest.raises(InputError, match="state a total size above 256 MiB"):
        unpack(data)


def test_entries_that_overlap_so_that_they_hold_more_than_the_file():
    data = pack({"a": bytes(1000), "b": bytes(1000)})
    overlapping = changed(data, b"PK\x01\x02", 42, 0, 4)
    with pytest.raises(InputError, match="has changed bytes between its entries"):
        check_bytes(overlapping, unpack(overlapping))


def test_an_entry_outside_of_the_file():
    data = changed(pack({"a": b"1"}), b"PK\x01\x02", 42, 1000, 4)
    with pytest.raises(InputError, match="entry 'a' lies outside the file"):
        unpack(data)


def test_an_encrypted_entry():
    data = changed(pack({"a": b"1"}), b"PK\x01\x02", 8, 1, 2)
    with pytest.raises(InputError, match="entry 'a' is encrypted"):
        unpack(data)


def test_too_many_entries(monkeypatch):
    monkeypatch.setattr(container, "MOST_ENTRIES", 2)
    with pytest.raises(InputError, match="has 3 entries; a model has at most 2"):
        unpack(pack({"a": b"", "b": b"", "c": b""}))


def test_a_table_of_contents_that_is_elsewhere_or_damaged():
    data = pack({"a": b"1"})
    with pytest.raises(InputError, match="not where it should be"):
        unpack(changed(data, b"PK\x05\x06", 16, 0, 4))
    with pytest.raises(InputError, match="is damaged"):
        unpack(data.replace(b"PK\x01\x02", b"PK\x01\x00"))
    # It says that there is one entry more than there are.
    with pytest.raises(InputError, match="is damaged"):
        unpack(changed(data, b"PK\x05\x06", 10, 2, 2))


@pytest.mark.parametrize("data", [b"", b"P", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x1f\x8b"])
def test_what_is_no_archive(data):
    with pytest.raises(InputError):
        unpack(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data + b"more", "is truncated, or has bytes appended"),
        (lambda data: b"#!/bin/sh\n" + data, "is not a model file"),
        (lambda data: data[:-1], "is truncated"),
    ],
)
def test_bytes_around_the_archive(path, change, said):
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=said):
        read_model(path)


def test_a_comment_and_a_gap_are_found(path):
    data = path.read_bytes()
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"hidden"
    with pytest.raises(InputError, match="is truncated, or has bytes appended"):
        read_model(path)
    # Between the entries and the table of contents.
    start = data.index(b"PK\x01\x02")
    offset = int.from_bytes(data[-6:-2], "little") + 6
    end = data[start:-6] + offset.to_bytes(4, "little") + data[-2:]
    path.write_bytes(data[:start] + b"hidden" + end)
    with pytest.raises(InputError, match="has changed bytes between its entries"):
        read_model(path)


def test_entries_in_another_order_or_listed_for_less_than_there_is():
    entries = {"a": b"1", "b": b"2"}
    data = pack(entries)
    with pytest.raises(InputError, match="has changed bytes"):
        check_bytes(data, {"a": b"1"})
    with pytest.raises(InputError, match="4 bytes that belong to no entry"):
        check_bytes(data + b"more", entries)
    other = archive_of(("b", b"2"), ("a", b"1"))
    with pytest.raises(InputError, match=r"has changed bytes between its entries \(0 to 31\)"):
        check_bytes(other, unpack(other))
