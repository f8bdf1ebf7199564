"""Formats of files that hold nothing to compare, so that they are named and not just unknown."""

from __future__ import annotations

from collections.abc import Callable

from errcomp.readers.core.registry import Format
from errcomp.readers.core.source import Source

__all__ = ["no_times"]


def no_times(
    name: str,
    tool: str,
    files: str,
    recognise: Callable[[Source], bool],
    why: str,
    *,
    sample: str = "",
    part_of: str = "",
) -> Format:
    """Return a format that is recognised and not read by itself.

    Parameters
    ----------
    name, tool, files, recognise, sample, part_of
        See `Format`.
    why : str
        A sentence: what it holds instead of values, and where those are.
    """
    return Format(
        name=name,
        tool=tool,
        files=files,
        levels=(),
        quantities=(),
        units=(),
        gives="neither",
        sample=sample,
        recognise=recognise,
        read=None,
        limits=why,
        part_of=part_of,
    )
