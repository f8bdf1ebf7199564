"""Limits on what reading a file may cost: their defaults, how to raise them, and special files."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

import errcomp
from errcomp.errors import InputError
from errcomp.readers.core.ingest import ingest
from errcomp.readers.core.registry import Format, UnforeseenError, read_source
from errcomp.readers.core.source import Source
from errcomp.readers.plain import read_pairs
from errcomp.system.limits import Limits, TookTooLongError, current, limits, parsed, timed

PAIRS = "predicted,measured\n1,2\n3,4\n"


def test_limits_grow_with_the_file_unless_given() -> None:
    least, most = Limits(), Limits(unpacked=1, rows=2, memory=3, seconds=4.0)
    of_4_gib = least.most_unpacked(1 << 32), least.most_rows(1 << 32), least.most_memory(1 << 32)
    assert of_4_gib == (200 << 32, 64 << 32, 40 << 32)
    assert least.most_seconds(1 << 30) == 5 * 1024
    assert (most.most_unpacked(9), most.most_rows(9), most.most_memory(9)) == (1, 2, 3)
    assert most.most_seconds(1 << 30) == 4.0


def test_they_hold_inside_the_block_and_keep_the_others() -> None:
    with limits(files=7), limits(rows=9) as inside:
        assert (inside.files, inside.rows, inside.unpacked) == (7, 9, None)
    assert current() == Limits()


@pytest.mark.parametrize("bad", [0, -1, True, "4GB", float("nan")])
def test_what_is_no_limit_is_refused(bad: object) -> None:
    message = r"the limit rows must be a positive number, got "
    with pytest.raises(InputError, match=message), limits(rows=bad):  # type: ignore[arg-type]
        pass
    assert current() == Limits()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unpacked=4GB", {"unpacked": 4_000_000_000}),
        ("unpacked=4000", {"unpacked": 4000}),
        ("rows=0.5M", {"rows": 500_000}),
        ("seconds=1.5", {"seconds": 1.5}),
    ],
)
def test_options(text: str, expected: dict[str, float]) -> None:
    assert parsed([text]) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unpakced=4GB", r"no limit 'unpakced'. Did you mean 'unpacked'\? Limits: unpacked, "),
        ("unpacked", r"--limit unpacked must be a positive number such as 4000 or 4GB, got ''"),
        ("unpacked=0", r"must be a positive number such as 4000 or 4GB, got '0'"),
        ("unpacked=-1", r"must be .*, got '-1'"),
        ("unpacked=4 GB", r"must be .*, got '4 GB'"),
    ],
)
def test_bad_options(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsed([text])


def bomb(path: Path, mib: int = 80) -> Path:
    path.write_bytes(gzip.compress(b"predicted,measured\n" + b"1.0,2.0\n" * (mib << 17), 9))
    return path


@pytest.mark.slow
def test_a_bomb_is_refused_and_read_with_a_higher_limit(tmp_path: Path) -> None:
    path = bomb(tmp_path / "pairs.csv.gz")
    with pytest.raises(
        InputError, match=r"6\d MiB so far. If you trust the file, .* --limit unpack"
    ):
        read_pairs(path)
    with limits(unpacked=10), pytest.raises(InputError, match="to far more than its size"):
        Source(path).content()
    with limits(unpacked=100 << 20):
        assert len(Source(path).content()) == 19 + (80 << 20)


def test_the_option_raises_it_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from errcomp.cli import main

    path = tmp_path / "pairs.csv.gz"
    path.write_bytes(gzip.compress(PAIRS.encode() * 1))
    assert main(["metrics", str(path), "--limit", "unpacked=9"]) == 2
    assert "--limit unpacked=4GB" in capsys.readouterr().err
    assert main(["metrics", str(path), "--limit", "unpacked=1kB"]) == 0
    assert main(["metrics", str(path), "--limit", "rwos=1GB"]) == 2
    assert "Did you mean 'rows'?" in capsys.readouterr().err


def test_few_bytes_of_parquet_with_many_rows(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pl.DataFrame({"predicted": [1.0, 2.0], "measured": 1.0}).write_parquet(path)
    with (
        limits(rows=1),
        pytest.raises(InputError, match=r"2 rows in only [\d,]+ bytes\. If you trust"),
    ):
        read_pairs(path)
    assert read_pairs(path).n == 2
    frame = pl.DataFrame({"predicted": pl.repeat(1.0, 5_000_000, eager=True)})
    frame.with_columns(measured=pl.lit(1.0)).write_parquet(path)
    with pytest.raises(InputError, match=r"5,000,000 rows in .* --limit rows="):
        read_pairs(path)


def slow(source: Source) -> None:
    threading.Event().wait(9)


def wrong(source: Source) -> None:
    raise KeyError("x")


def made_up(read: object) -> Format:
    known = lambda source: source.head.startswith(b"MADE UP")  # noqa: E731
    return Format(
        "made-up",
        "X",
        "x",
        ("model",),
        ("time",),
        ("ms",),
        "predictions",
        "",
        known,
        read,  # type: ignore[arg-type]
    )


# Its own timer would be taken for that of somebody else.
@pytest.mark.timeout(method="thread")
def test_a_file_that_takes_too_long(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("MADE UP\n")
    with (
        limits(seconds=0.05),
        pytest.raises(InputError, match=r"a.log: reading it was stopped after 0 s: .* --l"),
    ):
        read_source(Source(path), [made_up(slow)])
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@pytest.mark.timeout(method="thread")
def test_time_is_measured_where_a_signal_can_end_it() -> None:
    with pytest.raises(TookTooLongError), timed(0.05):
        threading.Event().wait(9)
    with timed(60), timed(0.01):  # the outer one goes on
        threading.Event().wait(0.05)
    done = []

    def work() -> None:
        with timed(0.01):
            threading.Event().wait(0.05)
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_an_error_of_a_reader_is_one_line_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("MADE UP\n")
    finished = "sys[0] finished, 12 cycles, exposed communication 3 cycles.\n"
    (tmp_path / "b.log").write_text(finished)
    from errcomp.readers.core.registry import formats

    every = (*formats(), made_up(wrong))
    with pytest.raises(UnforeseenError, match=r"a.log: the reader of made-up failed .*KeyError"):
        ingest(tmp_path / "a.log", among=every)
    found = ingest(tmp_path, among=every)
    assert found.files == ("b.log",)
    assert found.skipped[0].name == "a.log"
    assert "failed unexpectedly (KeyError: 'x')" in found.skipped[0].reason


@pytest.mark.parametrize("command", ["audit", "ingest", "metrics", "halflife fit", "propagate"])
def test_pipes_and_devices_are_refused_at_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from errcomp.cli import main

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        output = ["-o", str(tmp_path / "rows.csv")] if command == "ingest" else []
        assert main([*command.split(), str(path), *output]) == 2
        printed = capsys.readouterr().err
        assert printed.startswith(f"errcomp: {path}: a pipe or a device, not a file. Write")


def test_a_pipe_in_a_folder_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "b.log").write_text("sys[0] finished, 1 cycles, exposed communication 0 cycles.\n")
    found = ingest(tmp_path)
    reason = "a pipe, a device or a broken link"
    assert [(skip.name, skip.reason) for skip in found.skipped] == [
        ("gone", reason),
        ("pipe", reason),
    ]


def test_limits_are_public() -> None:
    assert errcomp.limits is limits


@pytest.mark.core
def test_a_process_that_reads_files_is_confined() -> None:
    code = (
        "import resource; from errcomp.readers.core.parallel import _confine; _confine(10);"
        "print([resource.getrlimit(kind)[0] for kind in "
        "(resource.RLIMIT_CORE, resource.RLIMIT_DATA)], resource.getrlimit(resource.RLIMIT_CPU)[0])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    core_and_data, _, seconds = shown.stdout.rpartition(" ")
    assert core_and_data == f"[0, {4 << 30}]"
    assert 120 < int(seconds) < 200
