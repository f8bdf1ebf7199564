from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from errcomp.cli import running
from errcomp.errors import InputError
from errcomp.system.files import _swap, check_target, replacing, together
from errcomp.system.stopping import stopping


def write(path: Path, text: str = "new") -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as temporary:
        temporary.write_text(None)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    write(path)
    assert path.read_text() == "new"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_keeps_its_mode_and_a_new_one_gets_the_usual(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(0o640)
    write(path)
    assert path.stat().st_mode & 0o777 == 0o640
    write(tmp_path / "b.txt")
    (tmp_path / "c.txt").write_text("")
    assert (tmp_path / "b.txt").stat().st_mode == (tmp_path / "c.txt").stat().st_mode


def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write(tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 125 + ".txt")
    write(path)
    assert path.read_text() == "new"


def test_what_must_not_be_replaced_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "fixed").write_text("old")
    (tmp_path / "fixed").chmod(0o444)
    for name, message in (
        (".", "is a folder"),
        ("pipe", "is not an ordinary file"),
        ("fixed", "is read-only"),
        ("no/a.txt", "does not exist. Create it"),
    ):
        with pytest.raises(InputError, match=message):
            check_target(tmp_path / name)
        with pytest.raises(InputError, match=message):
            write(tmp_path / name)
    assert (tmp_path / "fixed").read_text() == "old"


def test_files_that_belong_together_take_their_places_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with together():
        write(tmp_path / "a.txt")
        write(tmp_path / "b.txt")
        assert (tmp_path / "a.txt").read_text() == "old"
        assert not (tmp_path / "b.txt").exists()
    assert [(tmp_path / name).read_text() for name in ("a.txt", "b.txt")] == ["new", "new"]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("failing", [KeyboardInterrupt, InputError])
def test_files_that_belong_together_are_all_given_up(
    tmp_path: Path, failing: type[BaseException]
) -> None:
    (tmp_path / "a.txt").write_text("old")

    def fail_between() -> None:
        with together():
            write(tmp_path / "a.txt")
            raise failing

    with pytest.raises(failing):
        fail_between()
    assert (tmp_path / "a.txt").read_text() == "old"
    write(tmp_path / "a.txt")  # by itself again
    assert (tmp_path / "a.txt").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_into_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "no" / "a.txt")
    with pytest.raises(InputError, match="the folder .*no does not exist. Create it"):
        check_target(tmp_path / "link")


class Stopped(BaseException):
    pass


def stop() -> None:
    raise Stopped


def test_nothing_takes_its_name_once_a_signal_came(tmp_path: Path) -> None:
    with pytest.raises(Stopped), stopping(stop), replacing(tmp_path / "a") as temporary:
        temporary.write_text("damaged")

    def two() -> None:
        with together():
            for name in "ab":
                with replacing(tmp_path / name) as temporary:
                    temporary.write_text("damaged")

    with pytest.raises(Stopped), stopping(stop):
        two()
    assert not list(tmp_path.iterdir())
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"


def test_a_folder_is_not_replaced_once_a_signal_came(tmp_path: Path) -> None:
    target, new = tmp_path / "folder", tmp_path / "new"
    for path, content in ((target, "old"), (new, "damaged")):
        path.mkdir()
        (path / "file").write_text(content)
    with pytest.raises(Stopped), stopping(stop):
        _swap(new, target)
    assert (target / "file").read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_a_library_drops(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Polars does where the signal comes while it turns a value of Python into text."""

    def dropped(*_: object) -> None:
        with replacing(tmp_path / "out") as temporary:
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                os.kill(os.getpid(), number)
                time.sleep(1)
            temporary.write_text("damaged")

    monkeypatch.setattr(running, "_run", dropped)
    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit):
        running.run([])
    assert not list(tmp_path.iterdir())


def test_a_signal_that_a_library_drops_where_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dropped(*_: object) -> int:
        with contextlib.suppress(SystemExit):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        return 0

    monkeypatch.setattr(running, "_run", dropped)
    with pytest.raises(SystemExit) as end:
        running.run([])
    assert end.value.code == 143


def test_an_error_of_polars_is_one_of_writing(tmp_path: Path) -> None:
    def fail() -> None:
        with replacing(tmp_path / "out.csv"):
            raise pl.exceptions.ComputeError(f"disk {'x' * 300}\nsecond line")

    with pytest.raises(InputError) as caught:
        fail()
    reason = f"disk {'x' * 195}"
    assert str(caught.value) == (
        f"{tmp_path / 'out.csv'}: cannot be written ({reason}). Check the disk and its "
        "permissions, or write elsewhere."
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_system_without_links(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    replace = Path.replace

    def last_fails(self: Path, target: Path) -> Path:
        if fails and target.name == "b.txt" and not self.name.endswith(".old"):
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(os, "link", no_link)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"old {name}")
        (tmp_path / name).chmod(0o640)
    monkeypatch.setattr(Path, "replace", last_fails)

    def both() -> None:
        with together():
            write(tmp_path / "a.txt")
            write(tmp_path / "b.txt")

    if fails:
        with pytest.raises(InputError, match=r"b\.txt: cannot be written \(No space left"):
            both()
    else:
        both()
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {name: f"old {name}" if fails else "new" for name in ("a.txt", "b.txt")}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_a_folder_that_nobody_may_write_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def never(path: Path, mode: int) -> bool:
        asked.append((path, mode))
        return False

    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a.txt")
    monkeypatch.setattr(os, "access", never)
    for name, folder in (("a.txt", tmp_path), ("link", tmp_path / "real")):
        with pytest.raises(InputError, match=f"the folder {folder} is read-only. Name another"):
            check_target(tmp_path / name)
        assert asked.pop() == (folder, os.W_OK | os.X_OK)


@pytest.mark.parametrize(
    ("mode", "writable"), [(0o555, False), (0o444, False), (0o200, True), (0o020, True)]
)
def test_a_file_is_read_only_if_nobody_may_write_it(
    mode: int, writable: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    if writable:
        write(path)
    else:
        with pytest.raises(InputError, match=r"a\.txt is read-only; name another file"):
            write(path)
    assert path.stat().st_mode & 0o777 == mode


def test_nobody_else_reads_what_is_not_finished(tmp_path: Path) -> None:
    with replacing(tmp_path / "a.txt") as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600
        assert temporary.parent == tmp_path
        assert temporary.name.startswith(".a.txt.")


def test_half_a_copy_does_not_take_the_place_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    def half(source: Path, target: Path) -> None:
        target.write_text(source.read_text()[:1])
        raise OSError(28, "No space left on device")

    (tmp_path / "a.txt").write_text("old")
    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(shutil, "copy2", half)

    def one() -> None:
        with together():
            write(tmp_path / "a.txt")

    with pytest.raises(InputError, match=r"a\.txt: cannot be written \(No space left"):
        one()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}
