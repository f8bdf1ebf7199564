"""The peak memory of a process, by itself; the standard library is all that it needs."""

from __future__ import annotations

from pathlib import Path


def peak_gib() -> float:
    """Return the most memory that this process was resident with since it began, in GiB.

    Not getrusage: there a process starts with the peak of the one that started it.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kib) / 2**20
