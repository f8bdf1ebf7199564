"""The order of commits and tags, from the output of ``git log``."""

from __future__ import annotations

import re
import sys
from os import PathLike
from pathlib import Path

from errcomp.errors import InputError

__all__ = ["read"]

#: The first line of a commit: ``commit HASH (names)``, or ``HASH (names) subject`` if short.
_FULL = re.compile(r"commit ([0-9a-f]{7,64})\b(?: \((.*)\))?")
_SHORT = re.compile(r"([0-9a-f]{7,64})(?:\s+\((.*?)\))?(?:\s|$)")


def read(path: str | PathLike[str]) -> tuple[str, ...]:
    r"""Return the commits and tags of a git log, oldest first.

    Parameters
    ----------
    path : path
        Output of ``git log``, ``git log --oneline`` or ``git rev-list``, which begin with the
        newest commit; tags are known if it shows them (``--decorate``). ``"-"`` reads standard
        input.

    Returns
    -------
    tuple of str
        Tags follow their commit.

    Raises
    ------
    InputError
        The file cannot be read, has no commits, or names one twice.

    Notes
    -----
    Of branches that were merged, git shows the commits by date. ``git log --first-parent`` shows
    what was on the main branch.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "git.log"
    >>> _ = path.write_text("1f2e3d4 (HEAD -> main, tag: v2.0) Fuse ops\n9a8b7c6 Add a cache\n")
    >>> read(path)
    ('9a8b7c6', '1f2e3d4', 'v2.0')
    """
    shown = "standard input" if str(path) == "-" else str(path)
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{shown}: {error.strerror}.") from error
    lines = data.decode(errors="replace").splitlines()
    # The text of a commit may begin with what looks like a hash.
    found = list(filter(None, map(_FULL.match, lines))) or list(
        filter(None, map(_SHORT.match, lines))
    )
    if not found:
        raise InputError(
            f"{shown}: no commits in it. Write it with `git log --oneline --decorate`."
        )
    names: dict[str, None] = {}
    for commit, refs in reversed([match.groups() for match in found]):
        tags = [ref.removeprefix("tag: ") for ref in (refs or "").split(", ") if "tag: " in ref]
        for name in (commit, *tags):
            if name in names:
                raise InputError(f"{shown}: {name} occurs twice. Give the log of one branch.")
            names[name] = None
    return tuple(names)
