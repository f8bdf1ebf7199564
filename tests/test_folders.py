from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.errors import InputError
from errcomp.system import files
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


@pytest.mark.parametrize("left", [["0a1b2c3d"], ["0a1b2c3d", "4e5f6a7b"]])
def test_a_folder_whose_replacement_was_killed_is_put_back(left: list[str], tmp_path: Path) -> None:
    names = [f".out[1].{number}.old" for number in left]
    for name in (*names, ".out1.0a1b2c3d.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("1")

    def fail() -> None:
        with replacing_folder(tmp_path / "out[1]"):
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    # Which of several is the last one is not known.
    kept = ["out[1]"] if len(left) == 1 else names
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out1.0a1b2c3d.old", *kept]
    assert (tmp_path / kept[0] / "a.csv").read_text() == "1"
    if len(left) == 1:  # what is there stays
        (tmp_path / names[0]).mkdir()
        made(tmp_path / "out[1]", "2")
        assert (tmp_path / "out[1]" / "a.csv").read_text() == "2"
        assert (tmp_path / names[0]).is_dir()


def test_a_folder_beside_the_current_one_may_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path / "m")
    for name in ("a", "z"):
        assert (made(Path("..") / name) / "a.csv").read_text() == "1"


def test_all_of_a_folder_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []
    to_disk = files._to_disk

    def noted(path: Path) -> None:
        place = "." if path == tmp_path else path.relative_to(tmp_path).as_posix()
        stored.append(place if place == "." else "/".join(["", *place.split("/")[1:]]))
        assert (tmp_path / "out").exists() is (place == ".")
        to_disk(path)

    monkeypatch.setattr(files, "_to_disk", noted)
    with replacing_folder(tmp_path / "out") as folder:
        (folder / "sub").mkdir()
        for name in ("a", "sub/b"):
            (folder / name).write_text("1")
    assert sorted(stored[:-2]) == ["/a", "/sub", "/sub/b"]
    assert stored[-2:] == ["", "."]  # the folder itself, and the names of that which holds it
