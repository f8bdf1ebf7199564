"""Memory that this process may still take."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

__all__ = ["available"]

_MEMINFO = Path("/proc/meminfo")
#: Limit and use of a container: of version 2 of control groups, and of version 1.
_GROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        Path("/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ),
)


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
    for limit, used in _GROUPS:
        # Without a limit, the text is "max".
        with suppress(OSError, ValueError):
            left.append(int(limit.read_text()) - int(used.read_text()))
    return max(0, min(left)) if left else None
