"""A file written by a tool: its content, and clues that identify the tool."""

from __future__ import annotations

import codecs
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, overload

from errcomp.errors import InputError
from errcomp.readers.core.sheet import Sheet, sheet_of
from errcomp.system.strict_json import DoubledNameError, loads_text, refuse_doubles

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Source"]

T = TypeVar("T")
#: Kind of compression → first bytes.
MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}
PACKED = tuple(MAGIC.values())
#: How many times its size a compressed text unpacks to, as a rule: tables of numbers 3 to 20 times.
UNPACKED_TIMES = 10
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BLANK = " \t\n\r\v\f"
_HEAD = 1 << 16
_URL = re.compile(r"^([a-z][a-z0-9+.-]+:)/{1,2}(?=[^/])", re.IGNORECASE)
#: Names of files in which each line is JSON, so that one whole line need not be all.
JSON_LINES = (".jsonl", ".ndjson")
LINE_ENDS = "\n\r"
#: How whole JSON and XML begin and end.
_BRACKETS = {"{": "}", "[": "]", "<": ">"}
#: Large files are decoded in blocks of this many bytes.
_BLOCK = 1 << 20
#: Text after a string in JSON if it is a name.
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*(:?)|[{}\[\]]', re.DOTALL)


@contextmanager
def files_readable() -> Iterator[None]:
    """Convert the system's errors about files and folders to ``InputError``."""
    try:
        yield
    except OSError as error:
        if error.filename is None:  # not about a file: a closed pipe for progress
            raise
        raise InputError(
            f"{error.filename}: cannot be read ({error.strerror}). Check the path and its "
            "permissions."
        ) from error


def is_url(name: str | PathLike[str]) -> bool:
    """Say whether a name is a URL, also after `pathlib` took one of its slashes.

    Examples
    --------
    >>> is_url("https://a.org/x.csv"), is_url(Path("https://a.org/x.csv")), is_url("C:/x.csv")
    (True, True, False)
    """
    return _URL.match(str(name)) is not None


def url_refused(name: str | PathLike[str]) -> InputError:
    """Return the error for a URL, with the command that downloads it."""
    url = _URL.sub(r"\1//", str(name))
    file = quote(url.partition("?")[0].rpartition("/")[2] or "table.csv")
    return InputError(
        f"{url}: errcomp reads nothing from the network. Download it first: curl -L -o {file} "
        f"{quote(url)}"
    )


def refuse_special(path: Path, name: str = "") -> None:
    """Refuse a pipe, a device or a socket, which may have no end, and a URL.

    Raises
    ------
    InputError
        It exists, and is neither an ordinary file nor a folder; or it is a URL.
    """
    if is_url(path) and not path.exists():
        raise url_refused(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            f"{name or path}: a pipe or a device, not a file. Write its content to a file first."
        )


def unended(name: str) -> str:
    """Return the note about a file whose last line does not end with a line break.

    Examples
    --------
    >>> unended("run.log").split(". ")  # doctest: +NORMALIZE_WHITESPACE
    ['The last line of run.log does not end with a line break',
     'If the file was cut off, its last value is wrong.']
    """
    why = "If the file was cut off, its last value is wrong."
    return f"The last line of {name} does not end with a line break. {why}"


class Source:
    r"""A file: its content, and its name in messages.

    Gzip, xz and zstd are decompressed, whatever the file's name; a byte-order mark is removed;
    UTF-16 with a byte-order mark is decoded.

    Parameters
    ----------
    path : path
    name : str, optional
        Name in messages; default: the path (files in archives have no path of their own).

    Attributes
    ----------
    path : Path
    name : str
    unended : bool
        Whether the last line of the text, once read, does not end with a line break: the file may
        have been cut off within that line. False for text that ends in a bracket, such as JSON.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stats.csv"
    >>> _ = path.write_text("Name,Total (ns)\ngemm,1200\n")
    >>> Source(path).header, Source(path).sheet().numbers("Total (ns)").tolist()
    (('Name', 'Total (ns)'), [1200.0])
    """

    def __init__(self, path: str | PathLike[str], *, name: str | None = None) -> None:
        self.path = Path(path)
        self.name = str(path) if name is None else name
        self.unended = False
        self.siblings: list[Source] = []

    def __repr__(self) -> str:
        return f"Source({self.name!r})"

    def error(self, what: str, *, line: int | None = None) -> InputError:
        """Return an error that names this file, and a line of it.

        Examples
        --------
        >>> print(Source("run.log").error("no time. Copy it again.", line=3))
        run.log: line 3: no time. Copy it again.
        """
        return InputError(f"{self.name}: {'' if line is None else f'line {line}: '}{what}")

    def open(self) -> BinaryIO:
        """Open the content for reading, decompressed.

        Raises
        ------
        InputError
            The file is missing or unreadable, or a pipe or a device. Reading on raises it if what
            is compressed is broken, or unpacks to far more than files of measurements do. zstd
            needs ``errcomp[formats]``.

        Examples
        --------
        >>> import gzip, tempfile
        >>> path = Path(tempfile.mkdtemp()) / "log.gz"
        >>> _ = path.write_bytes(gzip.compress(b"12 ms"))
        >>> with Source(path).open() as file:
        ...     file.read()
        b'12 ms'
        """
        with files_readable():
            refuse_special(self.path, self.name)
            file = self.path.open("rb")
            start = file.read(max(map(len, PACKED)))
            file.seek(0)
        kind = next((kind for kind, magic in MAGIC.items() if start.startswith(magic)), None)
        if kind is None:
            return file
        from errcomp.readers.core.packed import unpacking

        return unpacking(file, kind, self.error, self.name)

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB, decompressed, without byte-order mark; UTF-16 as UTF-8."""
        with self.open() as file:
            head = file.read(_HEAD)
        if head.startswith(UTF16):
            return head[: len(head) // 2 * 2].decode("utf-16", "replace").encode()
        return head.removeprefix(BOM)

    @cached_property
    def head_lines(self) -> tuple[str, ...]:
        """The complete lines of the head; bytes that are not text are replaced."""
        lines = self.head.decode("utf-8", "replace").splitlines()
        return tuple(lines[:-1] if len(self.head) >= _HEAD - len(BOM) else lines)

    @cached_property
    def header(self) -> tuple[str, ...]:
        """Fields of the first line that is not blank, read as CSV, without spaces."""
        first = next((line for line in self.head_lines if line.strip()), "")
        separator = next((s for s in "\t;" if s in first and "," not in first), ",")
        return tuple(field.strip().strip('"').strip() for field in first.split(separator))

    @cached_property
    def json_names(self) -> tuple[str, ...]:
        """Names in the outermost JSON object, or in the first object of a list or of lines.

        Of a large file only names in its head; empty if it is not JSON.
        """
        if self.head.lstrip()[:1] not in (b"{", b"["):
            return ()
        names: list[str] = []
        depth, wanted = 0, None
        for token in _TOKEN.finditer(self.head):
            text = token.group()
            if text in b"{[":
                depth += 1
                if text == b"{" and wanted is None:
                    wanted = depth
            elif text in b"}]":
                depth -= 1
                if wanted is not None and depth < wanted:
                    break
            elif token.group(2) and depth == wanted:
                names.append(token.group(1).decode("utf-8", "replace"))
        return tuple(dict.fromkeys(names))

    def content(self) -> bytes:
        """Read the whole file, decompressed.

        Raises
        ------
        InputError
            The file is empty, or cannot be read.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.log"
        >>> _ = path.write_text("12 ms")
        >>> Source(path).content()
        b'12 ms'
        """
        with self.open() as file, files_readable():
            content = file.read()
        if not content or content.isspace():
            raise self._empty()
        return content

    def _empty(self) -> InputError:
        return self.error("the file is empty. Copy it again.")

    @cached_property
    def text(self) -> str:
        """The whole file as text, with line feeds as line ends.

        Raises
        ------
        InputError
            The file is empty or is not text.
        """
        return "".join(self._decoded())

    def lines(self) -> Lines:
        r"""Return the lines of the text, without line ends.

        Raises
        ------
        InputError
            The file is empty or is not text.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.log"
        >>> _ = path.write_text("start\n12 ms\n")
        >>> lines = Source(path).lines()
        >>> len(lines), lines[-1]
        (2, '12 ms')
        """
        return Lines(self._pieces())

    def _decoded(self) -> Iterator[str]:
        """Yield the text block by block."""
        line, blank, first, begin, last = 1, True, "", "", "\n"
        with self.open() as file, files_readable():
            block = file.read(_BLOCK)
            name = "utf-16" if block.startswith(UTF16) else "utf-8-sig"
            ends = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(name)(), True)
            while True:
                try:
                    text = ends.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    at = error.start
                    raise self.error(
                        f"byte 0x{error.object[at]:02x} is not text (UTF-8). Save it as UTF-8.",
                        line=line + error.object.count(b"\n", 0, at),
                    ) from None
                if (at := text.find("\0")) >= 0:
                    raise self.error(
                        "a zero byte, so this is not a text file. The file may be damaged: copy it "
                        "again.",
                        line=line + text.count("\n", 0, at),
                    )
                blank = blank and not text.strip(_BLANK)
                first, last = first or text.lstrip()[:1], text[-1:] or last
                at = text.rfind("\n") + 1
                begin = text[at : at + 1] if at else begin or text[:1]
                line += text.count("\n")
                yield text
                if not block:
                    break
                block = file.read(_BLOCK)
        if blank:
            raise self._empty()
        # Whole JSON and XML end in a bracket; of JSON lines, and of some logs, each line does.
        alone = (line == 1 and self.path.suffix not in JSON_LINES) or begin != first
        self.unended = last not in LINE_ENDS and not (alone and _BRACKETS.get(first) == last)

    def _pieces(self) -> Iterator[str]:
        """Yield blocks of whole lines, without blank lines at the end of the file."""
        held: list[str] = []
        for text in self._decoded():
            held.append(text)
            if "\n" not in text:
                continue
            text = "".join(held)
            # Hold line feeds back until more text follows: the file may end here.
            cut = text.rfind("\n", 0, len(text.rstrip("\n")))
            if cut >= 0:
                yield text[:cut]
            held = [text[cut + 1 :]]
        yield "".join(held).rstrip("\n")

    def _lines_once(self) -> Iterator[str]:
        """Yield the lines without keeping them; invalid text raises when reached."""
        return (line for piece in self._pieces() for line in piece.split("\n"))

    def json(self) -> Any:
        """Parse the whole file as JSON.

        Raises
        ------
        InputError
            It is not valid JSON, cut off, or nested too deeply.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.json"
        >>> _ = path.write_text('{"time": 12}')
        >>> Source(path).json()
        {'time': 12}
        """
        text = self.text
        try:
            return loads_text(text)
        except ValueError as error:
            line = getattr(error, "lineno", None)
            reason = getattr(error, "msg", str(error))
            raise self.error(
                f"not valid JSON ({reason}). The file may be incomplete: copy it again.",
                line=line,
            ) from None

    def json_as(
        self, kind: type[T], writer: str, decoded: Callable[[T], Mapping[str, int]] | None = None
    ) -> T:
        """Parse the whole file as JSON of a known form.

        Parameters
        ----------
        kind : type
            A structure of msgspec: only its fields are decoded.
        writer : str
            Tool that writes such files, for the message.
        decoded : callable, optional
            Returns how many values were decoded of each name that no object may hold twice.

        Raises
        ------
        InputError
            It is not valid JSON, has another form, or an object holds a name twice.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.json"
        >>> _ = path.write_text('{"time": 12, "seed": 1}')
        >>> import msgspec
        >>> kind = msgspec.defstruct("Run", [("time", float)])
        >>> Source(path).json_as(kind, "MySim")
        Run(time=12.0)
        """
        import msgspec

        text = self.text
        try:
            found = msgspec.json.decode(text, type=kind)
            if decoded is not None:
                refuse_doubles(text, decoded(found))
            return found
        except DoubledNameError as error:
            raise self.error(f"{error}. Copy the file again.") from None
        except msgspec.ValidationError as error:
            raise self.error(
                f"not in the form that {writer} writes ({error}). Copy the file again."
            ) from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise self.error(
                f"not valid JSON ({error}). The file may be incomplete: copy it again."
            ) from None

    def json_lines(self, *, comment: str = "") -> Iterator[tuple[int, Any]]:
        r"""Parse one JSON value per line; yields the line number and the value.

        Blank lines, and lines that begin with ``comment``, are left out.

        Raises
        ------
        InputError
            A line is not JSON.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.jsonl"
        >>> _ = path.write_text('# MySim\n{"time": 12}\n')
        >>> list(Source(path).json_lines(comment="#"))
        [(2, {'time': 12})]
        """
        for number, line in enumerate(self._lines_once(), start=1):
            if not line.strip() or (comment and line.startswith(comment)):
                continue
            try:
                yield number, loads_text(line)
            except ValueError as error:
                reason = getattr(error, "msg", str(error))
                raise self.error(
                    f"not valid JSON ({reason}). The file may be incomplete: copy it again.",
                    line=number,
                ) from None

    def yaml(self) -> Any:
        """Parse the whole file as YAML, without objects.

        Raises
        ------
        InputError
            It is not valid YAML, or nested too deeply.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "run.yaml"
        >>> _ = path.write_text("time: 12")
        >>> Source(path).yaml()
        {'time': 12}
        """
        import yaml

        from errcomp.system import strict_yaml

        try:
            return strict_yaml.loads(self.text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            raise self.error(
                f"not valid YAML ({error.problem}). Copy the file again.",
                line=None if mark is None else mark.line + 1,
            ) from None
        except (yaml.YAMLError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise self.error(f"not valid YAML ({reason}). Copy the file again.") from None

    def sheet(self, needed: Sequence[str] = (), *, separator: str = "", skip: int = 0) -> Sheet:
        r"""Read the whole file as one table; see ``errcomp.readers.core.sheet.sheet_of``.

        Parameters
        ----------
        needed : sequence of str
            Required columns.
        separator : str
            Default: determined from the header.
        skip : int
            Lines before the header.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "stats.csv"
        >>> _ = path.write_text("MySim 1.0\nkernel,us\ngemm,12\n")
        >>> Source(path).sheet(["kernel"], skip=1).numbers("us").tolist()
        [12.0]
        """
        lines = islice(self._lines_once(), skip, None)
        return sheet_of(self.name, lines, first_line=skip + 1, needed=needed, separator=separator)

    def sibling(self, name: str) -> Source | None:
        """Return the file with this name in the same folder, or None.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "config.json"
        >>> _ = path.write_text('{"gpus": 8}')
        >>> source = Source(path.with_name("run.log"))
        >>> source.sibling("config.json").json(), source.sibling("map.json")
        ({'gpus': 8}, None)
        """
        path = self.path.with_name(name)
        if not path.is_file():
            return None
        shown = self.name.removesuffix(self.path.name) + name
        found = Source(path, name=shown)
        self.siblings.append(found)
        return found


# The lines of a large text in little memory.


class Lines(Sequence[str]):
    r"""The lines of a text, as a sequence.

    A list of short lines takes several times the memory of their text. Here the text is kept in
    pieces, and a line is made on demand. A slice keeps no text of its own.

    Parameters
    ----------
    pieces : iterable of str
        Pieces of whole lines, each without its last line feed.

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
            raise ValueError("slices of lines must have step 1")
        part = Lines(())
        part._pieces, part._ends, part._which = self._pieces, self._ends, which
        return part

    def _line(self, number: int) -> str:
        piece = bisect_right(self._ends, number)
        if self._open[0] != piece:  # lines are usually read in order
            self._open = (piece, self._pieces[piece].split("\n"))
        return self._open[1][number - (self._ends[piece - 1] if piece else 0)]
