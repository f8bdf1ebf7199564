"""The hook of pre-commit: every file that fails has a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from errcomp.cli.precommit import main


def test_each_file_that_fails_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, zero = (tmp_path / f"{name}.csv" for name in ("good", "bad", "zero"))
    good.write_text("predicted,measured\n11,10\n", encoding="utf-8")
    bad.write_text("predicted,measured\nx,10\n", encoding="utf-8")
    zero.write_text("sim,hw\n11,0\n11,10\n", encoding="utf-8")
    assert main([str(good)]) == 0
    assert capsys.readouterr().err == ""
    assert main([str(bad), str(good), str(zero)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[:2] for line in lines] == [
        ["errcomp", f" {bad}"],
        ["errcomp", f" {zero}"],
    ]
    named = ["--predicted", "sim", "--measured", "hw"]
    assert main([*named, str(zero)]) == 1
    assert "measured must be positive, got 0.0 in line 2" in capsys.readouterr().err
    assert main([*named, "--zeros", "exclude", str(zero)]) == 0
    assert main([]) == 0
