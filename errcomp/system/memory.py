"""Memory that this process may still take."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

__all__ = ["available"]

_MEMINFO = Path("/proc/meminfo")
#: Folder of a container, and its files of the limit, the use and the kinds of use: of version 2 of
#: control groups, and of version 1.
_GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current", "memory.stat"),
    (
        Path("/sys/fs/cgroup/memory"),
        *("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"),
    ),
)
#: Copies of files in memory, which the system drops when memory is needed.
_CACHE = re.compile(r"^(?:in)?active_file (\d+)$", re.MULTILINE)


def available() -> int | None:
    """Return the bytes of memory that are free or can be freed; None where the system hides it.

    The smaller of what the machine has left and what the container may still take.

    Examples
    --------
    >>> found = available()
    >>> found is None or found > 0
    True
    """
    left = []
    with suppress(OSError):
        found = re.search(r"^MemAvailable:\s*(\d+) kB", _MEMINFO.read_text(), re.MULTILINE)
        left += [1024 * int(found[1])] if found else []
    for folder, limit, used, kinds in _GROUPS:
        # Without a limit, the text is "max".
        with suppress(OSError, ValueError):
            cache = sum(map(int, _CACHE.findall((folder / kinds).read_text())))
            left.append(
                int((folder / limit).read_text()) - int((folder / used).read_text()) + cache
            )
    return max(0, min(left)) if left else None
