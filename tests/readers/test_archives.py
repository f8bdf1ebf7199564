"""Archives of outputs, and those that must not be trusted."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from errcomp.errors import InputError
from errcomp.readers.core import archives
from errcomp.readers.core.ingest import ingest
from errcomp.system.limits import limits

LOG = b"sys[0] finished, 12 cycles, exposed communication 3 cycles.\n"


def tar(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_tar(tmp_path: Path, mode: str) -> None:
    found = ingest(tar(tmp_path / "a.bin", {"b/1.log": LOG, "b/x.txt": b"?"}, mode))
    assert (found.files, len(found.rows)) == (("b/1.log",), 2)
    assert [one.name for one in found.skipped] == ["b/x.txt"]


def test_links_are_left_out(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", {"1.log": LOG})
    with tarfile.open(path, "a") as archive:
        info = tarfile.TarInfo("passwd")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    assert [(one.name, "link" in one.reason) for one in ingest(path).skipped] == [("passwd", True)]


@pytest.mark.parametrize("name", ["../x.log", "/x.log", "a/../../x.log", "..\\x.log", "C:\\x.log"])
def test_a_name_that_leaves_the_archive(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in" / "a.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, LOG)
    with pytest.raises(InputError, match="points outside the archive"):
        ingest(path)
    with pytest.raises(InputError, match="points outside the archive"):
        ingest(tar(tmp_path / "in" / "a.tar", {name: LOG}))
    assert [one.name for one in tmp_path.iterdir()] == ["in"]


#: Zeros that compress to a thousandth.
BOMB = 200 << 20


def zip_bomb(path: Path, before: bytes = b"", level: int = 6) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        archive.writestr("0.log", before)
        with archive.open("1.log", "w") as file:
            for _ in range(BOMB >> 20):
                file.write(bytes(1 << 20))
    return path


def tar_bomb(path: Path, mode: str, before: bytes = b"", size: int = BOMB) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in (("0.log", before), ("1.log", None)):
            info = tarfile.TarInfo(name)
            info.size = size if content is None else len(content)
            archive.addfile(info, Zeros() if content is None else io.BytesIO(content))
    return path


class Zeros(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:] = bytes(len(buffer))
        return len(buffer)


BOMBS: dict[str, Callable[[Path], Path]] = {
    "zip": zip_bomb,
    "zip after other data": lambda path: zip_bomb(path, random.Random(1).randbytes(3 << 20)),
    # The lowest level compresses zeros to little more than the ratio that is allowed.
    "zip of a low level": lambda path: zip_bomb(path, level=1),
    "tar.gz": lambda path: tar_bomb(path, "w:gz"),
    "tar.gz after other data": lambda path: tar_bomb(
        path, "w:gz", random.Random(1).randbytes(3 << 20)
    ),
    "tar.bz2": lambda path: tar_bomb(path, "w:bz2", size=BOMB // 2),
    "tar.xz": lambda path: tar_bomb(path, "w:xz", size=BOMB // 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_is_met_where_it_begins(tmp_path: Path, kind: str) -> None:
    path = BOMBS[kind](tmp_path / "a.bin")
    folder = tmp_path / "unpacked"
    folder.mkdir()
    unpack = archives._unzip if kind.startswith("zip") else archives._untar
    start = time.process_time()
    with pytest.raises(InputError, match=r"unpacks to far more than its size.*--limit unpacked="):
        unpack(path, folder)
    assert time.process_time() - start < 4
    assert sum(one.stat().st_size for one in folder.rglob("*")) < 100_000_000
    with pytest.raises(InputError, match="unpacks to far more than its size"):
        ingest(path)


@pytest.mark.slow
def test_a_bomb_in_a_header_fills_no_memory(tmp_path: Path) -> None:
    """The name of an entry is as large as a file."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, BOMB
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(info.tobuf())
        for _ in range(BOMB >> 20):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="unpacks to far more than its size"):
            ingest(path)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()


def test_limits_are_those_that_are_set(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar.gz", {"1.log": LOG, "2.log": LOG, "3.log": LOG}, "w:gz")
    with limits(unpacked=4000), pytest.raises(InputError, match="far more than its size"):
        ingest(path)
    with limits(files=2), pytest.raises(InputError, match=r"more than 2 entries.*--limit files="):
        ingest(path)
    with limits(unpacked=40_000, files=3):
        assert len(ingest(path).rows) == 6
    packed = zip_of(tmp_path / "a.zip", ["1.log", "2.log", "a/", "b/"])
    with limits(files=3), pytest.raises(InputError, match="more than 3 entries"):
        ingest(packed)


def zip_of(path: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings(action="ignore"):
        for name in names:
            info = zipfile.ZipInfo("x")
            info.filename = name
            archive.writestr(info, b"" if name.endswith("/") else LOG)
    return path


NAMES = {
    "twice": (["a.log", "a.log"], r"'a.log' is in the archive twice"),
    "twice, written in two ways": (["a/b.log", "./a//b.log"], r"a//b.log' is in the archive twice"),
    "twice, with another separator": (["a/b.log", "a\\b.log"], "is in the archive twice"),
    "a folder in a file": (
        ["a", "a/b.log"],
        r"'a/b\.log' needs a folder with the name of a file\.",
    ),
    "a file for a folder": (["a/b.log", "a"], r"'a' is both a file and a folder"),
    "a folder for a file": (["a", "a/"], r"'a/' needs a folder with the name of a file\."),
    "no name": ([""], r"'' has no name"),
    "a dot": (["."], r"'\.' has no name"),
    "a long name": (["n" * 300 + ".log"], r"nnn…nnn.* has a name that is too long"),
    "a long path": (["/".join(["n" * 200] * 20)], "has a name that is too long"),
    "deep": (["a/" * 65 + "b.log"], "is more than 64 folders deep"),
    "a terminal's codes": (["\x1b[31m.log"], r"'\\x1b\[31m.log' has a control character"),
    "a line break": (["a\n.log"], "has a control character"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_are_no_place_of_their_own(tmp_path: Path, case: str) -> None:
    names, message = NAMES[case]
    with pytest.raises(InputError, match=message) as caught:
        ingest(zip_of(tmp_path / "a.zip", names))
    assert len(str(caught.value).removeprefix(str(tmp_path))) < 250
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
            info.size = 0 if info.isdir() else len(LOG)
            archive.addfile(info, io.BytesIO(LOG))
    with pytest.raises(InputError, match=message.replace("'a/'", "'a'")):
        ingest(path)


def test_a_name_with_a_nul_or_half_a_character(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", ["aXb.log"])
    path.write_bytes(path.read_bytes().replace(b"aXb", b"a\0b"))
    with pytest.raises(InputError, match="has a control character"):
        ingest(path)
    path = tar(tmp_path / "a.tar", {"\udcff.log": LOG})
    with pytest.raises(InputError, match="another invalid character in its name"):
        ingest(path)


def test_folders_may_be_named_again(tmp_path: Path) -> None:
    assert len(ingest(zip_of(tmp_path / "a.zip", ["a/", "./a/", "a/b.log", "a/"])).rows) == 2
    # As some programs on Windows write them.
    assert len(ingest(zip_of(tmp_path / "b.zip", ["a\\", "a\\b.log"])).rows) == 2


def test_headers_of_a_zip_that_disagree(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", ["1.log"])
    path.write_bytes(path.read_bytes().replace(b"1.log", b"2.log", 1))
    with pytest.raises(InputError, match=r"broken archive \(File name in directory '1.log' and"):
        ingest(path)


def test_a_zip_with_and_without_entries_for_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/", "")
        archive.writestr("a/1.log", LOG)
        archive.writestr("b/c/2.log", LOG)
    assert len(ingest(path).rows) == 4


def test_a_zip_of_many_entries_is_refused_before_any_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(4):
            archive.writestr(f"{i}.csv", "a\n1\n")
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("an entry was opened"))
    with limits(files=3), pytest.raises(InputError, match="more than 3 entries"):
        ingest(path)


def test_entries_of_a_zip_that_overlap(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.log", LOG * 200)
        first = archive.infolist()[0]
        for name in ("2.log", "3.log"):
            again = copy(first)
            again.filename = name
            archive.filelist.append(again)
    with pytest.raises(InputError, match="its entries overlap"):
        ingest(path)


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.GNUTYPE_SPARSE, tarfile.CHRTYPE])
def test_hard_links_and_sparse_files_are_left_out(tmp_path: Path, kind: bytes) -> None:
    path = tar(tmp_path / "a.tar", {"1.log": LOG})
    with tarfile.open(path, "a") as archive:
        info = tarfile.TarInfo("2.log")
        info.type, info.linkname = kind, "1.log"
        archive.addfile(info)
    found = ingest(path)
    assert (found.files, [one.name for one in found.skipped]) == (("1.log",), ["2.log"])


def test_a_link_in_a_zip_is_left_out(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", ["1.log"])
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("passwd")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert [(one.name, "link" in one.reason) for one in ingest(path).skipped] == [("passwd", True)]


@pytest.mark.parametrize("kind", [b"0", b"Z", b"1", b"x", b"L"])
def test_an_entry_that_claims_to_be_endless(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("2.log")
    info.type, info.size = kind, 1 << 62
    path = tmp_path / "a.tar"
    path.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(InputError):
        ingest(path)


def test_headers_within_headers(tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type = tarfile.XHDTYPE
    path = tmp_path / "a.tar"
    path.write_bytes(tar(tmp_path / "b.tar", {"1.log": LOG}).read_bytes()[:1024])
    with path.open("ab") as file:
        file.write(info.tobuf() * 5000)
    with pytest.raises(InputError, match="cannot be unpacked"):
        ingest(path)


def test_broken_and_locked(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.log", LOG * 50)
    content = bytearray(path.read_bytes())
    content[40:60] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(InputError, match="broken archive"):
        ingest(path)
    content = bytearray(path.read_bytes())
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        at = content.index(mark) + (6 if mark == b"PK\x03\x04" else 8)
        content[at] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be unpacked .*password"):
        ingest(path)


def test_archives_within_are_said(tmp_path: Path) -> None:
    tar(tmp_path / "b.tar", {"1.log": LOG})
    (tmp_path / "1.log").write_bytes(LOG)
    found = ingest(tmp_path)
    assert [(one.name, one.reason) for one in found.skipped] == [
        ("b.tar", "an archive: read it on its own")
    ]


def test_a_tar_with_entries_for_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("a", "a/b"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
        info = tarfile.TarInfo("a/b/1.log")
        info.size = len(LOG)
        archive.addfile(info, io.BytesIO(LOG))
    found = ingest(path)
    assert (found.files, found.skipped, len(found.rows)) == (("a/b/1.log",), (), 2)


@pytest.mark.parametrize("end", ["zip", "tar"])
def test_names_that_differ_only_in_case_where_that_is_no_difference(
    tmp_path: Path, end: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "A.log").write_text("the first")  # under any of its names
    path = tmp_path / "in"
    made, unpack = {
        "zip": (zip_of(path, ["A.log"]), archives._unzip),
        "tar": (tar(tmp_path / "t", {"A.log": LOG}), archives._untar),
    }[end]
    with pytest.raises(InputError, match="'A.log' differs from another entry only in upper and"):
        unpack(made, tmp_path / "out")
    assert (tmp_path / "out" / "A.log").read_text() == "the first"
