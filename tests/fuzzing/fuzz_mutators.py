"""Ways to damage a file, each with what must hold of the result.

A promise says what the reader owes: ``same``: the same rows; ``counted``: an error, a counted row,
a note, or the same values; ``any``: an answer or an error, in time, and never a crash.
"""

from __future__ import annotations

import gzip
import io
import random
import re
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass

NUMBER = re.compile(rb"(?<![\w.+-])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
_MEMBER = re.compile(rb'"((?:[^"\\]|\\.){1,60})"\s*:\s*')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
BOM = b"\xef\xbb\xbf"
SQLITE, GZIP, PARQUET = b"SQLite format 3\0", b"\x1f\x8b", b"PAR1"
ZIP = b"PK\x03\x04"
_ODD = (
    *(b"nan", b"-inf", b"1e999", b"-1", b"", b"true", b"0x1F", b"1_000", b"1,5", b"null", b"n/a"),
    *("\uff11\uff12".encode(), b"9" * 25, b"7" * 5000, b"1" + b"0" * 400, b"-0", b".", b"1e-400"),
    *(b"9223372036854775808", b"18446744073709551616", b"4e9", b"1" * 19),
)
_VALUES = (
    *(
        b"null",
        b"true",
        b"[]",
        b"{}",
        b'""',
        b'"\\ud800"',
        b"-1",
        b"1e400",
        b"[[[]]]",
        b'"x"',
        b"0",
    ),
    *(b"9" * 5000, b"9223372036854775808", b'{"a": {"b": []}}', b"[" * 2000 + b"]" * 2000),
)
_CELLS = (
    *(b"2", b"2.5", b"-1", b"x", b"", b"true", b"nan", b"1e999", b"1e308"),
    *(b"2026-01-01", b"2026-01-01 10:00:00", b"10000-01-01"),
)
_BYTES = (
    b"\0",
    b"\x1b[31m",
    b"\xff\xfe",
    b"\xc3",
    b'"',
    b"'",
    b",",
    b"\r",
    b"\n",
    b"{",
    b"]",
    b"=cmd|x!A1",
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damaged file: how it came to be, what must hold of it, and its content."""

    how: str
    promise: str
    content: bytes


Mutator = Callable[[bytes, random.Random], bytes | None]


def letter_in_a_number(content: bytes, rng: random.Random) -> bytes | None:
    """Turn a digit into a letter, as a bad scan or a bad disk does."""
    found = _any(NUMBER, content, rng)
    if found is None:
        return None
    digits = [i for i in range(*found.span()) if content[i : i + 1].isdigit()]
    at = rng.choice(digits)
    return content[:at] + rng.choice((b"o", b"l", b"?", b"x")) + content[at + 1 :]


def cut_within_the_last_number(content: bytes, rng: random.Random) -> bytes | None:
    """End the file within a number of its last line."""
    begin = content.rstrip().rfind(b"\n") + 1
    found = [one for one in NUMBER.finditer(content, begin) if len(one[0]) > 1]
    if not found:
        return None
    one = found[-1]
    return content[: rng.randrange(one.start() + 1, one.end())]


def cut_within_a_line(content: bytes, rng: random.Random) -> bytes | None:
    """End the file anywhere within a line."""
    at = rng.randrange(len(content)) if content else 0
    kept = content[:at]
    return None if not kept.strip() or kept.endswith((b"\n", b"\r")) else kept


def line_without_its_end(content: bytes, rng: random.Random) -> bytes | None:
    """Lose the second half of a line; the others stay."""
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    if len(lines[at]) < 4:
        return None
    lines[at] = lines[at][: rng.randrange(1, len(lines[at]))]
    return b"\n".join(lines)


def name_twice(content: bytes, rng: random.Random) -> bytes | None:
    """Give an object of JSON a name twice, with another number."""
    if content.lstrip()[:1] not in (b"{", b"["):
        return None
    numbered = re.compile(_MEMBER.pattern + rb"(-?\d[\d.eE+-]*)")
    found = _any(numbered, content, rng)
    if found is None:
        return None
    return (
        content[: found.start()]
        + found[0]
        + b","
        + b'"%b": 77777' % found[1]
        + content[found.end() :]
    )


def odd_number(content: bytes, rng: random.Random) -> bytes | None:
    """Put something else in the place of a number."""
    found = _any(NUMBER, content, rng)
    return found and content[: found.start()] + rng.choice(_ODD) + content[found.end() :]


def other_value(content: bytes, rng: random.Random) -> bytes | None:
    """Give a name of JSON a value of another type, or leave it out."""
    found = _any(_MEMBER, content, rng)
    if found is None:
        return None
    rest = content[found.end() :]
    value = NUMBER.match(rest) or _STRING.match(rest)
    end = found.end() + (value.end() if value else 0)
    if rng.random() < 0.2:
        return content[: found.start()] + content[end:].lstrip(b", ")
    return (
        content[: found.end()]
        + rng.choice(_VALUES)
        + (b"," if value is None else b"")
        + content[end:]
    )


def bytes_changed(content: bytes, rng: random.Random) -> bytes:
    """Change some bytes."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] = rng.choice((rng.randrange(256), 0, 255, 0x22, 0x2C, 0x0A))
    return bytes(data)


def bytes_inserted(content: bytes, rng: random.Random) -> bytes:
    """Insert what upsets parsers."""
    at = rng.randrange(len(content))
    return content[:at] + rng.choice(_BYTES) * rng.choice((1, 1, 3)) + content[at:]


def slice_moved(content: bytes, rng: random.Random) -> bytes:
    """Delete, repeat or move a slice."""
    begin = rng.randrange(len(content))
    end = min(len(content), begin + rng.choice((1, 7, 40, 400)))
    part, rest = content[begin:end], content[:begin] + content[end:]
    if (kind := rng.randrange(3)) == 0:
        return rest
    if kind == 1:
        return content[:end] + part * rng.choice((1, 3, 50)) + content[end:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + part + rest[at:]


def lines_changed(content: bytes, rng: random.Random) -> bytes:
    """Delete, repeat or swap lines."""
    lines = content.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[a]
    elif kind == 1:
        lines.insert(b, lines[a])
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    else:
        lines[a] = b""
    return b"\n".join(lines)


def cells_changed(content: bytes, rng: random.Random) -> bytes | None:
    """Swap, empty or add a cell of a table."""
    lines = content.split(b"\n")
    separator = b"\t" if b"\t" in lines[0] else b","
    at = rng.randrange(len(lines))
    cells = lines[at].split(separator)
    if len(cells) < 2:
        return None
    a, kind = rng.randrange(len(cells)), rng.randrange(4)
    if kind == 0:
        cells[a] = rng.choice((b"", b"x", b'"', b'"a', b"=1+1", b" "))
    elif kind == 1:
        cells.insert(a, rng.choice((b"", b"1", b"x")))
    elif kind == 2:
        del cells[a]
    else:
        b = rng.randrange(len(cells))
        cells[a], cells[b] = cells[b], cells[a]
    lines[at] = separator.join(cells)
    return b"\n".join(lines)


def column_changed(content: bytes, rng: random.Random) -> bytes | None:
    """Give all rows below a row the same value in one column, of another type perhaps."""
    lines = content.split(b"\n")
    separator = b"\t" if b"\t" in content else b","
    rows = [i for i, line in enumerate(lines) if separator in line]
    if not rows:
        return None
    width = lines[head := rng.choice(rows[:3])].count(separator)
    column, value = rng.randrange(width + 1), rng.choice(_CELLS)
    for i, line in enumerate(lines[head + 1 :], head + 1):
        cells = line.split(separator)
        if len(cells) == width + 1:
            lines[i] = separator.join([*cells[:column], value, *cells[column + 1 :]])
    return b"\n".join(lines)


def names_of_a_database(content: bytes, rng: random.Random) -> bytes:
    """Rename a column or a table in a schema, or make a view of a table."""
    try:
        with sqlite3.connect(":memory:") as database:
            database.deserialize(content)
            database.execute(_statement(database, rng))
            database.commit()
            return bytes(database.serialize())
    except (sqlite3.Error, IndexError, UnicodeDecodeError):  # damaged before
        return content


def _statement(database: sqlite3.Connection, rng: random.Random) -> str:
    listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    table = rng.choice([str(name) for (name,) in database.execute(listed)])
    columns = [str(row[1]) for row in database.execute(f'PRAGMA table_info("{table}")')]
    column = rng.choice(columns)
    value = rng.choice(("NULL", "-1", "'x'", "x'ff00'", "1e300", "9223372036854775807", "''"))
    return rng.choice(
        (
            f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "zz"',
            f'ALTER TABLE "{table}" RENAME TO "zz"',
            f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
            f'DROP TABLE "{table}"',
            f'DELETE FROM "{table}"',
            f'UPDATE "{table}" SET "{column}" = {value}',
            f'UPDATE "{table}" SET "{column}" = {value} WHERE rowid % 2',
            f'INSERT INTO "{table}" SELECT * FROM "{table}"',
            f'CREATE VIEW "v" AS SELECT * FROM "{table}"',
        )
    )


# Wrappings: the same rows.


def with_windows_line_ends(content: bytes, _: random.Random) -> bytes | None:
    """End lines as Windows does."""
    return content.replace(b"\n", b"\r\n") if is_text(content) and b"\r" not in content else None


def with_a_mark(content: bytes, _: random.Random) -> bytes | None:
    """Begin with a byte-order mark."""
    return BOM + content if is_text(content) and not content.startswith(BOM) else None


def in_utf16(content: bytes, _: random.Random) -> bytes | None:
    """Encode as UTF-16."""
    return content.decode("utf-8-sig").encode("utf-16") if is_text(content) else None


def in_gzip(content: bytes, _: random.Random) -> bytes | None:
    """Compress."""
    return None if content.startswith((SQLITE, ZIP, GZIP, PARQUET)) else gzip.compress(content)


def is_text(content: bytes) -> bool:
    """Say whether this is UTF-8 without zero bytes."""
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


TEXT: dict[str, tuple[Mutator, ...]] = {
    "counted": (
        letter_in_a_number,
        letter_in_a_number,
        cut_within_the_last_number,
        cut_within_a_line,
        name_twice,
    ),
    "any": (
        line_without_its_end,
        odd_number,
        odd_number,
        other_value,
        bytes_changed,
        bytes_inserted,
        slice_moved,
        lines_changed,
        cells_changed,
        column_changed,
    ),
    "same": (with_windows_line_ends, with_a_mark, in_utf16, in_gzip),
}
BINARY: dict[str, tuple[Mutator, ...]] = {
    "any": (bytes_changed, bytes_changed, bytes_inserted, slice_moved, cut_within_a_line),
    "same": (in_gzip,),
}


def mutant_of(content: bytes, rng: random.Random) -> Mutant | None:
    """Damage a file in one of the ways that fit it; None if the way does not fit."""
    if content.startswith(GZIP):
        try:
            inner = mutant_of(gzip.decompress(content), rng)
        except (OSError, EOFError, zlib.error):  # damaged before
            inner = None
        if inner is None or rng.random() < 0.3:
            return Mutant("bytes of gzip", "any", bytes_changed(content, rng))
        return Mutant(inner.how, inner.promise, gzip.compress(inner.content, 1))
    ways = TEXT if is_text(content) else BINARY
    if content.startswith(SQLITE) and rng.random() < 0.5:
        return Mutant("names_of_a_database", "any", names_of_a_database(content, rng))
    promise = rng.choices(list(ways), [{"counted": 4, "any": 5, "same": 1}[one] for one in ways])[0]
    chosen = rng.choice(ways[promise])
    changed = chosen(content, rng)
    if changed is None or changed == content or not changed:
        return None
    if promise == "any" and rng.random() < 0.3:  # damage rarely comes alone
        changed = rng.choice(ways["any"])(changed, rng) or changed
    return Mutant(chosen.__name__, promise, changed)


def archive_of(files: dict[str, bytes], rng: random.Random) -> tuple[str, Mutant]:
    """Pack files; damage the archive, or not. Returns its suffix, and the archive."""
    packed = io.BytesIO()
    if rng.random() < 0.5:
        suffix = ".zip"
        with zipfile.ZipFile(
            packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        ) as one:
            for name, content in files.items():
                one.writestr(name, content)
    else:
        suffix, mode = rng.choice(((".tar", "w"), (".tar.gz", "w:gz"), (".tar.xz", "w:xz")))
        with tarfile.open(fileobj=packed, mode=mode) as other:  # type: ignore[call-overload]
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                other.addfile(info, io.BytesIO(content))
    content = packed.getvalue()
    if rng.random() < 0.3:
        return suffix, Mutant("archive", "same", content)
    damage = rng.choice((bytes_changed, slice_moved, cut_within_a_line))
    return suffix, Mutant("damaged archive", "any", damage(content, rng) or content)


def _any(pattern: re.Pattern[bytes], content: bytes, rng: random.Random) -> re.Match[bytes] | None:
    """Return any match of a pattern, near a random place."""
    at = rng.randrange(len(content)) if content else 0
    begin = content.rfind(b"\n", 0, at) + 1
    found = list(pattern.finditer(content, begin, begin + 4000))
    return rng.choice(found) if found else pattern.search(content)
