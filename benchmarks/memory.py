"""The peak memory of a process, by itself; the standard library is all that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def peak_gib() -> float:
    """Return the most memory that this process was resident with since it began, in GiB.

    Not getrusage: there a process starts with the peak of the one that started it.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) / 2**20


#: Starts a process and prints its peak: from a large process, it would begin with that one's peak.
_STARTER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def of_process(*arguments: str | Path) -> float:
    """Return the most memory that a process was resident with, in GiB; it must end well."""
    starter = [sys.executable, "-c", _STARTER, *arguments]
    return int(subprocess.check_output(starter, text=True)) / 2**20
