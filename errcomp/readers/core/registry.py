"""The known formats, and recognising the format of a file."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from errcomp.errors import ErrcompError, InputError, describe_names, offer
from errcomp.readers.core.output import Output, Rows, output
from errcomp.readers.core.source import Source, unended
from errcomp.readers.core.values import DamagedError
from errcomp.system.limits import TookTooLongError, current, how_to_raise, timed

__all__ = [
    "ENTRY_POINTS",
    "NO_OUTPUT",
    "REFERENCES",
    "Format",
    "Tool",
    "ToolFormats",
    "formats",
    "formats_of",
    "read_source",
    "recognise",
    "tools",
]

#: Group of entry points through which packages add readers, each a sequence of formats.
ENTRY_POINTS = "errcomp.readers"
Reads = TypeVar("Reads", bound=Callable[[Source], Rows | Output])
Gives = Literal["predictions", "measurements", "both", "neither"]
Reference = Literal["hardware", "rtl", "simulator", "estimate", "unknown"]
#: References of measured values.
REFERENCES: tuple[Reference, ...] = get_args(Reference)


@dataclass(frozen=True, slots=True)
class Format:
    """A file format of a tool.

    Attributes
    ----------
    name : str
        Short and unique, e.g. ``vidur-requests``.
    tool : str
        Name of the tool, as its authors write it.
    files : str
        Description for people, e.g. ``request_metrics.csv``.
    levels, quantities, units : tuple of str
        Levels, quantities and units of its rows, see `Output`.
    gives : {"predictions", "measurements", "both", "neither"}
    sample : str
        Version or origin of the real sample that the reader was tested with; empty if it was tested
        only with files written after the documentation.
    recognise : callable
        Takes a `Source` and says whether its content is in this format. Must be quick (look at
        ``head``, ``head_lines``, ``header``, ``json_names``) and must not raise.
    read : callable or None
        Takes a `Source`, returns an `Output` or raises InputError. None if the format cannot be
        read: `limits` gives the reason.
    limits : str
        Limits of the reader, or why the format cannot be read; a sentence.
    part_of : str
        Name of the format that reads this file together with its own; alone it gives no rows.
    folder : bool
        The format is a whole folder, not a file.
    reference : {"hardware", "rtl", "simulator", "estimate", "unknown"}, optional
        What its measured values were measured on: the column ``reference`` of its rows. If the file
        states this, `read` gives the column, which has priority. Default: unknown.
    """

    name: str
    tool: str
    files: str
    levels: tuple[str, ...]
    quantities: tuple[str, ...]
    units: tuple[str, ...]
    gives: Gives
    sample: str
    recognise: Callable[[Source], bool]
    read: Callable[[Source], Output] | None
    limits: str = ""
    part_of: str = ""
    folder: bool = False
    reference: Reference | None = None


class ToolFormats:
    """Declares the formats of a tool, with shared fields given once.

    Parameters
    ----------
    tool : str
        Name of the tool, as its authors write it.
    **common
        Defaults for the fields of the declared formats.

    Examples
    --------
    >>> tool = ToolFormats("mysim", gives="predictions", sample="1.0")
    >>> @tool.reads("mysim-csv", "sim.csv", "kernel, model: time (us, ms)", ["sim_us"])
    ... def read_sim(source):
    ...     return Rows(source.sheet().frame.rename({"sim_us": "predicted"}))
    >>> one, = tool.formats
    >>> one.levels, one.quantities, one.units, one.gives
    (('kernel', 'model'), ('time',), ('us', 'ms'), 'predictions')
    """

    def __init__(self, tool: str, **common: Any) -> None:
        self._common = {"tool": tool, "sample": "", **common}
        self._formats: list[Format] = []

    @property
    def formats(self) -> tuple[Format, ...]:
        """The declared formats, in order."""
        return tuple(self._formats)

    def reads(
        self,
        name: str,
        files: str,
        holds: str,
        recognise: Callable[[Source], bool] | Collection[str],
        **fields: Any,
    ) -> Callable[[Reads], Reads]:
        """Declare a format, with the decorated function as its reader.

        The function takes a `Source`, and returns `Rows` (or an `Output`) or raises InputError.

        Parameters
        ----------
        name, files
            See `Format`.
        holds : str
            Levels, quantities and units of its rows: ``kernel, model: time, power (us, W)``; fields
            given in `fields` may be missing.
        recognise : callable or collection of str
            See `Format`; or columns that its header must have.
        **fields
            Other fields of `Format`.

        Examples
        --------
        >>> tool = ToolFormats("mysim", gives="predictions")
        >>> @tool.reads("mysim-csv", "sim.csv", "kernel: time (us)", ["kernel", "sim_us"])
        ... def read_sim(source):
        ...     return Rows(source.sheet().frame.rename({"sim_us": "predicted"}))
        >>> tool.formats[0].name, tool.formats[0].units
        ('mysim-csv', ('us',))
        """
        levels, _, rest = holds.partition(": ")
        quantities, _, units = rest.removesuffix(")").rpartition(" (")
        held = {"levels": levels, "quantities": quantities, "units": units}
        given: dict[str, Any] = {key: tuple(text.split(", ")) for key, text in held.items()}
        given |= {**self._common, **fields}
        # Rows need not repeat constant values of their format.
        same = {"tool": given["tool"]} | {
            column: given[key][0]
            for column, key in zip(("level", "quantity", "unit"), held, strict=True)
            if len(given[key]) == 1
        }

        def declared(read: Reads) -> Reads:
            def read_file(source: Source) -> Output:
                import numpy as np

                # What is divided by zero or overflows is not finite, and counted as such.
                with np.errstate(all="ignore"):
                    result = read(source)
                if isinstance(result, Output):
                    return result
                return output(
                    source.name,
                    name,
                    result.rows,
                    dropped=result.dropped,
                    notes=result.notes,
                    graph=result.graph,
                    **same,
                )

            self._add(name, files, recognise, read_file, **given)
            return read

        return declared

    def knows(
        self,
        name: str,
        files: str,
        recognise: Callable[[Source], bool] | Collection[str],
        why: str,
        **fields: Any,
    ) -> None:
        """Declare a format that is recognised, but not read on its own.

        Messages can then name the file. ``why`` says in a sentence what it holds instead of values,
        and where the values are.

        Examples
        --------
        >>> tool = ToolFormats("mysim")
        >>> why = "It holds the settings of a run; the times are in sim.csv."
        >>> tool.knows("mysim-config", "sim.cfg", ["clock_mhz"], why)
        >>> tool.formats[0].read is None, tool.formats[0].limits == why
        (True, True)
        """
        nothing: dict[str, Any] = {"levels": (), "quantities": (), "units": (), "gives": "neither"}
        given = {**self._common, **nothing, "limits": why, "reference": None, **fields}
        self._add(name, files, recognise, None, **given)

    def _add(
        self,
        name: str,
        files: str,
        recognise: Callable[[Source], bool] | Collection[str],
        read: Callable[[Source], Output] | None,
        **fields: Any,
    ) -> None:
        recogniser = _recogniser(recognise)
        self._formats.append(
            Format(name=name, files=files, recognise=recogniser, read=read, **fields)
        )


def _recogniser(given: Callable[[Source], bool] | Collection[str]) -> Callable[[Source], bool]:
    if callable(given):
        return given
    columns = frozenset(given)
    return lambda source: columns <= set(source.header)


def _modules() -> Iterator[str]:
    """Yield the names of all modules that may declare ``FORMATS``."""
    rooms = __name__.rpartition(".core.")[0]
    for info in pkgutil.iter_modules(import_module(rooms).__path__, f"{rooms}."):
        yield info.name
        if info.ispkg:
            package = import_module(info.name)
            yield from (m.name for m in pkgutil.iter_modules(package.__path__, f"{info.name}."))


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats: first of this package, then of other packages.

    Raises
    ------
    InputError
        A package adds an invalid format, or a format with a name that is in use.

    Examples
    --------
    >>> names = [entry.name for entry in formats()]
    >>> len(names) > 50, "nsys-sqlite" in names
    (True, True)
    """
    declared: list[Format] = []
    # In the order of their names, regardless of folders.
    for module in sorted(_modules(), key=lambda name: name.rpartition(".")[2]):
        declared += getattr(import_module(module), "FORMATS", ())
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            items = tuple(entry.load())
        except Exception as error:
            raise InputError(
                f"the reader {entry.name!r} of {entry.value} cannot be loaded ({error}). Update or "
                "remove the package."
            ) from error
        for item in items:
            if not isinstance(item, Format) or item.name in {known.name for known in declared}:
                label = repr(item.name) if isinstance(item, Format) else f"a {type(item).__name__}"
                raise InputError(
                    f"the reader {entry.name!r} of {entry.value} provides {label}, which is not a "
                    "format or has the name of another one. Update or remove the package."
                )
            declared.append(item)
    return tuple(declared)


def formats_of(name: str) -> tuple[Format, ...]:
    """Return the format with this name, or all formats of the tool with this name.

    Raises
    ------
    InputError
        There is none; the message lists near names.

    Examples
    --------
    >>> [entry.name for entry in formats_of("vidur")][:2]
    ['vidur-requests', 'vidur-config']
    """
    known = formats()
    plain = name.lower().replace(" ", "-")
    same = tuple(entry for entry in known if plain == entry.name)
    same = same or tuple(entry for entry in known if plain == entry.tool.lower().replace(" ", "-"))
    if not same:
        names = [*(entry.tool for entry in known), *(entry.name for entry in known)]
        options = list(dict.fromkeys(names))
        raise InputError(f"no format or tool {name!r}. {offer('Known', options, wanted=name)}")
    return same


def recognise(source: Source, among: Iterable[Format] | None = None) -> list[Format]:
    r"""Return the formats that match a file or folder: usually one or none, rarely several.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "astra.log"
    >>> _ = path.write_text("sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> [entry.name for entry in recognise(Source(path))]
    ['astra-sim-log']
    """
    folder = source.path.is_dir()
    known = formats() if among is None else among
    return [entry for entry in known if entry.folder == folder and entry.recognise(source)]


def read_source(
    source: Source,
    among: Sequence[Format] | None = None,
    possible: Sequence[Format] | None = None,
) -> Output:
    r"""Read one file in the format that its content shows.

    Parameters
    ----------
    source : Source
    among : sequence of Format, optional
        Only these formats; by default all.
    possible : sequence of Format, optional
        What `recognise` returned, where it was asked before.

    Raises
    ------
    InputError
        It is in none of the formats, is read only with another file, or cannot be used.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "astra.log"
    >>> _ = path.write_text("sys[0] finished, 1200 cycles, exposed communication 300 cycles.\n")
    >>> read_source(Source(path)).rows["quantity"].to_list()
    ['time', 'exposed communication']
    """
    if possible is None:
        possible = recognise(source, among)
    if not possible:
        if not source.path.is_dir() and not source.head.strip():
            raise source.error("the file is empty. The run may have failed; if not, copy it again.")
        if source.head.startswith(b"PK\x03\x04"):
            raise source.error("the zip archive is cut off or damaged. Copy it again.")
        files = "" if among is None else ", or ".join(entry.files for entry in among)
        begins = next((line for line in source.head_lines if line.strip()), "")[:60]
        raise source.error(
            f"not recognised as {files or 'the output of a known tool'}; it begins with "
            f"{begins!r}. `errcomp readers` lists the formats."
        )
    if len(possible) > 1:
        names = " or ".join(entry.name for entry in possible)
        raise source.error(f"fits several formats: {names}. Give one: errcomp ingest FORMAT PATH.")
    return _read(source, possible[0])


class UnforeseenError(InputError):
    """A reader stopped at content that it does not foresee: an error of the reader."""


def _read(source: Source, chosen: Format) -> Output:
    if chosen.read is None:
        described = f"recognised as {chosen.files} of {chosen.tool}"
        if chosen.part_of:
            whole = next((entry for entry in formats() if entry.name == chosen.part_of), None)
            files = chosen.part_of if whole is None else whole.files
            raise source.error(
                f"{described}, which is read together with {files}, never alone. Give {files}, or "
                "the folder that holds both."
            )
        raise source.error(f"{described}, which errcomp does not read. {chosen.limits}")
    try:
        with timed(most := current().most_seconds(_size(source.path))):
            found = _with_reference(chosen.read(source), chosen)
    except (ErrcompError, MemoryError):
        raise
    except RecursionError:
        raise source.error("nested too deeply. The file may be damaged.") from None
    except DamagedError as error:
        raise source.error(f"{error}. The file may be damaged: copy it again.") from None
    except TookTooLongError:
        raise source.error(
            f"reading it was stopped after {most:.0f} s: it may be damaged or malicious. "
            f"{how_to_raise('seconds', '600')}"
        ) from None
    except Exception as error:
        # One file of many, and one line for the user; the chain of errors shows where.
        raise UnforeseenError(
            f"{source.name}: the reader of {chosen.name} failed unexpectedly "
            f"({type(error).__name__}: {str(error)[:200]}). The file may be damaged: copy it "
            "again. If the file is complete, please report this error."
        ) from error
    ends = [unended(one.path.name) for one in (source, *source.siblings) if one.unended]
    return replace(found, notes=tuple(dict.fromkeys((*found.notes, *ends)))) if ends else found


def _size(path: Path) -> int:
    """Return the bytes of a file, or of the files of a folder."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _with_reference(result: Output, chosen: Format) -> Output:
    """Add the reference of measured values, if the reader did not."""
    if chosen.gives not in ("measurements", "both"):
        return result
    import polars as pl

    rows, word = result.rows, pl.lit(chosen.reference or "unknown")
    has_value = rows["measured"].is_not_null()
    if not has_value.any():
        return result
    # A constant takes no memory, a column of text 16 bytes per row.
    column = word if has_value.all() else pl.when(pl.col("measured").is_not_null()).then(word)
    if "reference" in rows.columns:
        column = pl.coalesce(pl.col("reference").cast(pl.String), column)
    first = rows.columns[: rows.columns.index("status") + 1]
    rest = pl.exclude(*first, "reference")
    return replace(result, rows=rows.select(*first, column.alias("reference"), rest))


# The tools of the registry, with and without readable output.

_BY_HAND = (
    "For `errcomp audit`, write the tool's results to a table with columns predicted and measured."
)
#: Tools of the literature without public output, so that no reader can be written or tested.
NO_OUTPUT = {
    "Concorde": "Neither code nor output is public.",
    "ESM": "No output is public.",
    "Lumos": "No output is public. errcomp reads the input of Lumos: PyTorch profiler traces.",
    "Omniverse": "Neither code nor output is public.",
    "Path Forward (Li et al.)": "Neither code nor output is public.",
    "PRISM": "Neither code nor output is public.",
    "TLP": "TLP stores no predictions. errcomp reads its training data: logs of TVM and Ansor.",
}
_GIVES = {"predictions": 1, "measurements": 2, "both": 3, "neither": 0}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with its formats.

    Attributes
    ----------
    name : str
    formats : tuple of Format
    why : str
        Reason for having no format, and what to do.
    """

    name: str
    formats: tuple[Format, ...]
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Examples
        --------
        >>> document = tools("Vidur")[0].to_dict()
        >>> document["gives"], document["level"]
        ('both', ['request', 'model', 'kernel', 'collective'])
        """
        readable = [entry for entry in self.formats if entry.read is not None]
        gives = 0
        for entry in readable:
            gives |= _GIVES[entry.gives]
        return {
            "tool": self.name,
            "formats": [entry.name for entry in self.formats],
            "files": [entry.files for entry in readable],
            "level": list(dict.fromkeys(level for entry in readable for level in entry.levels)),
            "gives": next(name for name, code in _GIVES.items() if code == gives),
            "sample_tested": any(entry.sample for entry in readable),
            "details": [
                {
                    "name": entry.name,
                    "files": entry.files,
                    "levels": list(entry.levels),
                    "quantities": list(entry.quantities),
                    "units": list(entry.units),
                    "gives": entry.gives,
                    "reference": entry.reference if _GIVES[entry.gives] & 2 else None,
                    "sample": entry.sample,
                    "read": entry.read is not None,
                    "limits": entry.limits
                    or (f"read together with {entry.part_of}" if entry.part_of else ""),
                }
                for entry in self.formats
            ],
            "why": self.why,
        }


def tools(name: str | None = None) -> list[Tool]:
    """Return all tools ordered by name, or the tool with this name.

    Raises
    ------
    InputError
        There is no such tool.

    Examples
    --------
    >>> tools("lumos")[0].formats
    ()
    """
    by_tool: dict[str, list[Format]] = {}
    for entry in formats():
        by_tool.setdefault(entry.tool, []).append(entry)
    known = [Tool(tool, tuple(own)) for tool, own in by_tool.items()]
    known += [Tool(tool, (), f"{why} {_BY_HAND}") for tool, why in NO_OUTPUT.items()]
    known.sort(key=lambda tool: tool.name.lower())
    if name is None:
        return known
    wanted = name.lower()
    same = [tool for tool in known if tool.name.lower() == wanted]
    # kineto, nsys and ncu are names of formats; "torch" is a part of a name.
    same = same or [
        tool
        for tool in known
        if wanted in tool.name.lower()
        or any(entry.name.startswith(wanted) for entry in tool.formats)
    ]
    if len(same) != 1:
        if same:
            names = [tool.name for tool in same]
            raise InputError(f"{name!r} matches several tools. Tools: {describe_names(names)}")
        names = [tool.name for tool in known]
        # "kinteo" probably means a format.
        first_words = (entry.name.partition("-")[0] for tool in known for entry in tool.formats)
        plain = {tool.lower() for tool in names}
        names += [word for word in dict.fromkeys(first_words) if word not in plain]
        raise InputError(f"no tool {name!r}. {offer('Tools', names, wanted=name)}")
    return same
