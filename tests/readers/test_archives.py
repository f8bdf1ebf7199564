"""Archives of outputs, and those that must not be trusted."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.readers.core import archives
from errcomp.readers.core.ingest import ingest

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


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_FREE", 1 << 20)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.log", bytes(8 << 20))
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        ingest(path)
    monkeypatch.setattr(archives, "_MOST_FILES", 2)
    with pytest.raises(InputError, match="more than 2 files"):
        ingest(tar(tmp_path / "a.tar", dict.fromkeys("abc", LOG)))


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
        ("b.tar", "an archive: give it on its own")
    ]
