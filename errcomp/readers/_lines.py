"""The lines of a large text in little memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import overload

__all__ = ["Lines"]


class Lines(Sequence[str]):
    r"""The lines of a text, as a list would give them.

    A list of short lines takes several times the memory of their text: here the text is kept, in
    pieces, and a line is made when it is asked for. A slice keeps no text of its own.

    Parameters
    ----------
    pieces : iterable of str
        Whole lines each, without the line feed that ends the last of them.

    Examples
    --------
    >>> lines = Lines(["a\nb", "c"])
    >>> len(lines), lines[-1], list(lines[1:])
    (3, 'c', ['b', 'c'])
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = list(pieces)
        self._ends = list(accumulate(piece.count("\n") + 1 for piece in self._pieces))
        self._which = range(self._ends[-1] if self._ends else 0)
        self._open: tuple[int, list[str]] = (-1, [])

    def __len__(self) -> int:
        return len(self._which)

    def __iter__(self) -> Iterator[str]:
        if not self._which:
            return iter(())
        start = self._which.start
        first = bisect_right(self._ends, start)
        before = self._ends[first - 1] if first else 0
        every = (line for piece in self._pieces[first:] for line in piece.split("\n"))
        return islice(every, start - before, self._which.stop - before)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Lines: ...
    def __getitem__(self, at: int | slice) -> str | Lines:
        if isinstance(at, int):
            return self._line(self._which[at])
        which = self._which[at]
        if which.step != 1:
            raise ValueError("lines can be taken one after the other only")
        part = Lines(())
        part._pieces, part._ends, part._which = self._pieces, self._ends, which
        return part

    def _line(self, number: int) -> str:
        piece = bisect_right(self._ends, number)
        if self._open[0] != piece:  # lines near each other are asked for in turn
            self._open = (piece, self._pieces[piece].split("\n"))
        return self._open[1][number - (self._ends[piece - 1] if piece else 0)]
