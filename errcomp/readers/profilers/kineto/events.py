"""Events of a PyTorch profiler trace, decoded piece by piece: never the whole file at once."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from errcomp.errors import InputError
from errcomp.system.strict_json import DoubledNameError, refuse_doubles

if TYPE_CHECKING:
    from errcomp.readers.core.source import Source


_BLOCK = 1 << 19
#: No trace has an event of this size; a file that seems to is not a trace.
_MOST = 1 << 28
#: Strings rarely hold text that looks like the end of an event.
_TRIES = 32
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BEGIN = re.compile(rb'"traceEvents"\s*:\s*\[')
#: Candidate boundary between elements of a list; a string may hold the same text.
_BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
_AT_BYTE = re.compile(r"\(byte (\d+)\)")
_BARE = re.compile(r"([:,\[]\s*)-?(?:inf(?:inity)?|nan)(?=\s*[,}\]])", re.IGNORECASE)
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_CONTROL = dict.fromkeys(range(32), " ")


class Args(msgspec.Struct, gc=False):
    """The arguments of an event that are used; they may have any type."""

    stream: Any = None
    device: Any = None
    correlation: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    old_external: Any = msgspec.field(default=None, name="external id")
    dims: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="Input Dims")
    bytes: Any = None
    sync: Any = msgspec.field(default=None, name="cuda_sync_kind")
    wait_on_stream: Any = None
    wait_on: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    group_size: Any = msgspec.field(default=None, name="Group size")
    elements: Any = msgspec.field(default=None, name="In msg nelems")
    dtype: Any = None


class Event(msgspec.Struct, gc=False):
    """An event."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Any = None
    tid: Any = None
    ts: float | None = None
    dur: float | None = None
    id: Any = None
    args: Args | None = None


NO_ARGS = Args()
_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_PIECES = msgspec.json.Decoder(list[msgspec.Raw])


class Events:
    """The events of a trace, in blocks; read once.

    Attributes
    ----------
    meta : dict
        Fields next to the list of events; complete after reading all events.
    bad : int
        Number of events with a field of the wrong type.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.meta: dict[str, Any] = {}
        self.bad = 0
        self._offset = 0

    def __iter__(self) -> Iterator[list[Event]]:
        with self._open() as file:
            buffer = self._begin(file)
            final, size = False, _BLOCK
            while True:
                more = file.read(size)
                final = not more
                buffer += more
                if final:
                    events, tail = self._decode(b"[" + buffer, whole=False)
                    yield events
                    self._end(tail)
                    return
                block = self._block(buffer)
                if block is None:
                    size *= 2
                    if size > _MOST:
                        raise self._error("an event does not end", len(buffer))
                    continue
                events, done, tail = block
                yield events
                if tail:
                    self._end(tail + buffer[done:] + file.read())
                    return
                buffer, size = buffer[done:], _BLOCK
                self._offset += done

    def _open(self) -> BinaryIO:
        file = self._source.open()
        start = file.read(2)
        file.close()
        if start in _UTF16:
            return io.BytesIO(self._source.text.encode())
        return self._source.open()

    def _begin(self, file: BinaryIO) -> bytes:
        """Read up to the first event; return the bytes read after that."""
        buffer = file.read(_BLOCK)
        self._offset = len(_BOM) if buffer.startswith(_BOM) else 0
        buffer = buffer.removeprefix(_BOM)
        if buffer.lstrip().startswith(b"["):
            at = buffer.index(b"[") + 1
            self._offset += at
            return buffer[at:]
        begin = 0
        while True:
            match = _BEGIN.search(buffer, begin)
            if match is None:
                more = file.read(_BLOCK)
                if not more or len(buffer) > _MOST:
                    raise self._source.error(
                        "the list traceEvents is missing. The file may be incomplete: copy it "
                        "again."
                    )
                begin = max(0, len(buffer) - 64)
                buffer += more
                continue
            # The name may also occur inside a string: only at the top level it is the key.
            meta = _object(buffer[: match.end() - 1] + b"null}")
            if meta is not None:
                self.meta.update(meta)
                self._offset += match.end()
                return buffer[match.end() :]
            begin = match.end()

    def _block(self, buffer: bytes) -> tuple[list[Event], int, bytes] | None:
        """Decode the complete events; return them, the number of bytes, and the end of the list.

        A beginning of the buffer that is a list once a bracket is added ends between two events.
        None if there is no such beginning.
        """
        for match in itertools.islice(_event_ends(buffer), _TRIES):
            piece = b"[" + buffer[: match.start() + 1] + b"]"
            try:
                events, tail = self._decode(piece, whole=True)
            except _Unfinished:
                continue
            return events, match.end(), tail[:-1] + match.group()[1:] if tail else b""
        return None

    def _decode(self, piece: bytes, *, whole: bool) -> tuple[list[Event], bytes]:
        """Decode a list, and return it with the bytes after its end."""
        try:
            return self._list(piece)
        except _Broken as broken:
            if broken.at < len(piece) - 1:
                mended = _mended(piece)
                try:
                    return self._list(mended)
                except _Broken as still:
                    if still.at < len(mended) - 1:
                        why = f"not valid JSON ({broken.why})"
                        raise self._error(why, broken.at - 1) from None
        if whole:
            raise _Unfinished
        raise self._error("the file ends before its list of events does", len(piece))

    def _list(self, piece: bytes) -> tuple[list[Event], bytes]:
        try:
            events = _EVENTS.decode(piece)
        except msgspec.ValidationError:
            return self._one_by_one(piece)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            broken = _broken(error, piece)
        else:
            self._refuse_doubles(piece, events)
            return events, b""
        end = _end_of_list(broken, piece)
        return self._list(piece[:end])[0], piece[end:]

    def _refuse_doubles(self, piece: bytes, events: list[Event]) -> None:
        decoded = {
            "ph": sum([event.ph is not None for event in events]),
            "cat": sum([event.cat is not None for event in events]),
            "name": sum([event.name is not None for event in events]),
            "ts": sum([event.ts is not None for event in events]),
            "dur": sum([event.dur is not None for event in events]),
        }
        given = [event.args for event in events if event.args is not None]
        decoded |= {
            "args": len(given),
            "device": sum([args.device is not None for args in given]),
            "stream": sum([args.stream is not None for args in given]),
            "correlation": sum([args.correlation is not None for args in given]),
        }
        try:
            refuse_doubles(piece, decoded)
        except DoubledNameError as error:
            raise self._error(str(error), 0) from None

    def _one_by_one(self, piece: bytes) -> tuple[list[Event], bytes]:
        """Decode event by event, and count unusable events."""
        try:
            parts, tail = _PIECES.decode(piece), b""
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            end = _end_of_list(_broken(error, piece), piece)
            parts, tail = _PIECES.decode(piece[:end]), piece[end:]
        events = []
        for part in parts:
            try:
                event = _EVENT.decode(part)
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.bad += 1
                continue
            self._refuse_doubles(bytes(part), [event])
            events.append(event)
        return events, tail

    def _end(self, tail: bytes) -> None:
        """Read the fields after the events; damage there does not affect the events."""
        rest = tail.lstrip()
        if rest.startswith(b","):
            self.meta.update(_object(b"{" + rest[1:]) or {})

    def _error(self, why: str, at: int) -> InputError:
        where, left = 0, self._offset + max(at, 0)
        with self._source.open() as file:
            while left > 0 and (block := file.read(min(left, _BLOCK))):
                where += block.count(b"\n")
                left -= len(block)
        return self._source.error(
            f"{why}. The trace may be incomplete: copy it again, or record it again.",
            line=where + 1,
        )


class _Unfinished(Exception):  # noqa: N818 - not an error: a wrong guess
    """The apparent end of an event is not its end."""


class _Broken(Exception):  # noqa: N818
    """The JSON is invalid at a byte."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why, self.at = why, at


def _broken(error: Exception, piece: bytes) -> _Broken:
    why = str(error)
    if isinstance(error, UnicodeDecodeError):
        # Its position refers to the string, not to the file.
        return _Broken("text that is not UTF-8", _not_text(piece))
    match = _AT_BYTE.search(why)
    why = why.removeprefix("JSON is malformed: ").partition(" (byte")[0]
    return _Broken(why, int(match[1]) if match else len(piece))


def _end_of_list(broken: _Broken, piece: bytes) -> int:
    """Return the end of the list if the error is only text after the list."""
    # The error names the position after the first such character.
    end = piece.rfind(b"]", 0, broken.at - 1) + 1
    if "trailing characters" not in broken.why or not 0 < end < len(piece):
        raise broken from None
    return end


def _not_text(piece: bytes) -> int:
    try:
        piece.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _event_ends(buffer: bytes) -> Iterator[re.Match[bytes]]:
    """Find possible ends of events, from the last backwards."""
    end = len(buffer)
    while end > 0:
        begin = max(0, end - (1 << 16))
        near = _BETWEEN.finditer(buffer, begin, end + (1 << 10))
        yield from reversed([match for match in near if match.start() < end])
        end = begin


def _mended(piece: bytes) -> bytes:
    """Repair invalid JSON of profilers: nan, inf, backslashes of Windows, raw bytes."""
    text = piece.decode("utf-8", "replace").translate(_CONTROL)
    text = _ESCAPE.sub(_escape, text)
    return _BARE.sub(r"\1null", text).encode()


def _escape(match: re.Match[str]) -> str:
    if match[1] is None:
        return r"\\"
    # A lone surrogate is not a character; its other half may be missing.
    return "?" if match[1][:2].lower() == "ud" and match[1][2] in "89abcdefABCDEF" else match[0]


def _object(content: bytes) -> dict[str, Any] | None:
    for tried in (content, None):
        try:
            decoded = msgspec.json.decode(_mended(content) if tried is None else tried)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        return cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else None
    return None
