"""What a command does when its output goes nowhere, or it is told to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ERRCOMP = [sys.executable, "-m", "errcomp"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_crash(closed: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m errcomp datasets list {closed}",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_bad_usage_is_exit_2_even_if_nobody_can_be_told() -> None:
    done = subprocess.run(
        f"{sys.executable} -m errcomp audit none.csv 2>/dev/full", shell=True, check=False
    )
    assert done.returncode == 2


def test_a_terminated_command_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from errcomp import cli\n"
        "from errcomp._files import replacing\n"
        "def run(args):\n"
        "    with replacing(Path('a.json')) as temporary:\n"
        "        temporary.write_text('half')\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "import errcomp.cli.datasets as module\n"
        "module._list = run\n"
        "sys.exit(cli.main(['datasets', 'list']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "writing\n"
        assert list(tmp_path.iterdir())
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    assert list(tmp_path.iterdir()) == []
