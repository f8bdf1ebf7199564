from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.system.files import SUMS, check_free, replacing_folder, write_sums

HEADING = "# Made here"


def made(path: Path, text: str = "1") -> Path:
    """Write a folder as a command would."""
    with replacing_folder(path) as folder:
        (folder / "README.md").write_text(f"{HEADING}\n\nIndex.\n")
        (folder / "a.csv").write_text(text)
        write_sums(folder)
    return path


def test_a_folder_is_there_whole_and_replaces_one_of_its_kind(tmp_path: Path) -> None:
    path = made(tmp_path / "out")
    check_free(path, HEADING)
    made(path, "2")
    assert (path / "a.csv").read_text() == "2"
    assert sorted(p.name for p in path.iterdir()) == ["README.md", SUMS, "a.csv"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    plain = tmp_path / "plain"
    plain.mkdir()
    assert path.stat().st_mode == plain.stat().st_mode


def test_the_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    lines = (made(tmp_path / "out") / SUMS).read_text().splitlines()
    # The SHA-256 of the single character 1.
    one = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    assert lines[1] == f"{one}  a.csv"
    assert [line[64:] for line in lines] == ["  README.md", "  a.csv"]


def test_what_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    path = made(tmp_path / "out")

    def fail() -> None:
        with replacing_folder(path) as folder:
            (folder / "a.csv").write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert (path / "a.csv").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_swap_that_fails_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(tmp_path / "out")
    rename = Path.rename

    def second_fails(self: Path, target: Path) -> Path:
        if self.name.startswith(".out") and not self.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_fails)
    with pytest.raises(InputError, match="cannot be written.*No space left"):
        made(path, "2")
    assert (path / "a.csv").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_link_stays_a_link_and_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    check_free(tmp_path / "link", HEADING)
    made(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a.csv").read_text() == "1"


def test_places_where_no_folder_can_be_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file; name a folder"):
        made(tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written .No such file"):
        made(tmp_path / "no" / "out")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is the current folder"):
        made(Path())
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"not written by this command: it holds thesis\.tex"):
        check_free(tmp_path, HEADING)
    # A folder with checksums and an index, but of another kind.
    with pytest.raises(InputError, match="not written by this command"):
        check_free(made(tmp_path / "out"), "# Made elsewhere")
    check_free(tmp_path / "nowhere", HEADING)


def test_files_that_would_be_lost_are_named(tmp_path: Path) -> None:
    path = made(tmp_path / "out")
    (path / "mine.txt").write_text("")
    with pytest.raises(InputError, match=r"mine\.txt would be lost"):
        check_free(path, HEADING)
    (path / "mine.txt").unlink()
    (path / "sub").mkdir()
    with pytest.raises(InputError, match="sub would be lost"):
        check_free(path, HEADING)
    (path / "sub").rmdir()
    (path / "a.csv").write_text("edited")
    with pytest.raises(InputError, match=r"changed after errcomp wrote them: a\.csv"):
        check_free(path, HEADING)
    (path / "a.csv").unlink()  # what is gone cannot be lost
    check_free(path, HEADING)
