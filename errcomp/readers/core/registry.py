"""Which formats are known, and which of them a file is in."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal, TypeVar, get_args

from errcomp.errors import ErrcompError, InputError, describe_names, offer
from errcomp.readers.core.output import Output, Rows, output
from errcomp.readers.core.source import Source

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

#: Packages add readers under this name: each entry point is a sequence of formats.
ENTRY_POINTS = "errcomp.readers"
Reads = TypeVar("Reads", bound=Callable[[Source], Rows | Output])
Gives = Literal["predictions", "measurements", "both", "neither"]
Reference = Literal["hardware", "rtl", "simulator", "estimate", "unknown"]
#: What a measured value may have been measured on.
REFERENCES: tuple[Reference, ...] = get_args(Reference)


@dataclass(frozen=True, slots=True)
class Format:
    """One format of one tool.

    Attributes
    ----------
    name : str
        Short and unique, e.g. ``vidur-requests``.
    tool : str
        As its authors write it.
    files : str
        What it is, for people: ``request_metrics.csv``.
    levels, quantities, units : tuple of str
        Of the rows it gives, see `Output`.
    gives : {"predictions", "measurements", "both", "neither"}
    sample : str
        The version or origin of the real sample it was tested with; empty if it was tested with
        files written after the documentation only.
    recognise : callable
        Takes a `Source`, says whether it is in this format, by content. Must be quick (look at
        ``head``, ``head_lines``, ``header``, ``json_names``) and must not raise.
    read : callable or None
        Takes a `Source`, returns an `Output` or raises InputError. None where there is nothing
        that could be read: `limits` says why.
    limits : str
        What it does not do, or why it cannot be read; a sentence.
    part_of : str
        Name of the format that reads this file along with its own: by itself it gives no rows.
    folder : bool
        It is a folder as a whole, not a file.
    reference : {"hardware", "rtl", "simulator", "estimate", "unknown"}, optional
        What its measured values were measured on: the column ``reference`` of its rows. Where a
        file says it itself, `read` gives the column, which stands. Not stated: unknown.
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
    """Declares the formats of one tool; what several have in common is said once.

    Parameters
    ----------
    tool : str
        As its authors write it.
    **common
        Fields of `Format` of all that it declares, unless one says otherwise.

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
        """What was declared, in that order."""
        return tuple(self._formats)

    def reads(
        self,
        name: str,
        files: str,
        holds: str,
        recognise: Callable[[Source], bool] | Collection[str],
        **fields: Any,
    ) -> Callable[[Reads], Reads]:
        """Declare a format that the function below it reads.

        That function takes a `Source`, and returns `Rows` (or an `Output`) or raises InputError.

        Parameters
        ----------
        name, files
            See `Format`.
        holds : str
            Levels, quantities and units of its rows: ``kernel, model: time, power (us, W)``; those
            that `fields` gives may be missing.
        recognise : callable or collection of str
            See `Format`; or the columns that its header has, among others.
        **fields
            Other fields of `Format`.
        """
        levels, _, rest = holds.partition(": ")
        quantities, _, units = rest.removesuffix(")").rpartition(" (")
        held = {"levels": levels, "quantities": quantities, "units": units}
        given: dict[str, Any] = {key: tuple(text.split(", ")) for key, text in held.items()}
        given |= {**self._common, **fields}
        # What all rows of a format have in common they need not say.
        same = {"tool": given["tool"]} | {
            column: given[key][0]
            for column, key in zip(("level", "quantity", "unit"), held, strict=True)
            if len(given[key]) == 1
        }

        def declared(read: Reads) -> Reads:
            def read_file(source: Source) -> Output:
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
        """Declare a format that is recognised and not read by itself.

        So it is named, and not just unknown; ``why`` says in a sentence what it holds instead of
        values, and where those are.
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
    """Yield the names of all modules that may declare ``FORMATS``: those of the package's rooms."""
    rooms = __name__.rpartition(".core.")[0]
    for info in pkgutil.iter_modules(import_module(rooms).__path__, f"{rooms}."):
        yield info.name
        if info.ispkg:
            package = import_module(info.name)
            yield from (m.name for m in pkgutil.iter_modules(package.__path__, f"{info.name}."))


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats: those of this package, then those of others.

    Raises
    ------
    InputError
        A package adds something that is no format, or one of a name that is taken.
    """
    declared: list[Format] = []
    # In the order of their names, whichever room they stand in.
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
                    f"the reader {entry.name!r} of {entry.value} gives {label}, which is no format "
                    "or has the name of another. Update or remove the package."
                )
            declared.append(item)
    return tuple(declared)


def formats_of(name: str) -> tuple[Format, ...]:
    """Return the format of this name, or all of the tool of this name.

    Raises
    ------
    InputError
        There is none; the message lists the nearest.
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
    """Return the formats that a file or folder may be in: one or none, of a file rarely several."""
    folder = source.path.is_dir()
    known = formats() if among is None else among
    return [entry for entry in known if entry.folder == folder and entry.recognise(source)]


def read_source(source: Source, among: Sequence[Format] | None = None) -> Output:
    """Read one file in the format that its content shows.

    Parameters
    ----------
    source : Source
    among : sequence of Format, optional
        Only these; all formats by default.

    Raises
    ------
    InputError
        It is in none of the formats, is read along with another file, or cannot be used.
    """
    possible = recognise(source, among)
    if not possible:
        if not source.path.is_dir() and not source.head.strip():
            raise source.error("the file is empty. The run may have failed, or copy it again.")
        if source.head.startswith(b"PK\x03\x04"):
            raise source.error("a zip archive that is cut off or damaged. Copy it again.")
        known = "" if among is None else f" ({', '.join(entry.files for entry in among)})"
        begins = next((line for line in source.head_lines if line.strip()), "")[:60]
        raise source.error(
            f"not recognised as the output of a tool that is known{known}; it begins with "
            f"{begins!r}. `errcomp readers` lists the formats."
        )
    if len(possible) > 1:
        names = ", ".join(entry.name for entry in possible)
        raise source.error(f"may be {names}. Say which: errcomp ingest FORMAT PATH.")
    return _read(source, possible[0])


def _read(source: Source, chosen: Format) -> Output:
    if chosen.read is None:
        described = f"is {chosen.files} of {chosen.tool}"
        if chosen.part_of:
            whole = next((entry for entry in formats() if entry.name == chosen.part_of), None)
            files = chosen.part_of if whole is None else whole.files
            raise source.error(
                f"{described}, which is read along with {files}. Give that, or the folder."
            )
        raise source.error(f"{described}, which cannot be read. {chosen.limits}")
    try:
        return _with_reference(chosen.read(source), chosen)
    except (ErrcompError, MemoryError):
        raise
    except RecursionError:
        raise source.error("nested too deeply. The file may be damaged.") from None


def _with_reference(result: Output, chosen: Format) -> Output:
    """State what measured values were measured on, where the reader did not."""
    if chosen.gives not in ("measurements", "both"):
        return result
    import polars as pl

    rows, word = result.rows, pl.lit(chosen.reference or "unknown")
    has_value = rows["measured"].is_not_null()
    if not has_value.any():
        return result
    # One word for all rows takes no memory, a column of text 16 bytes a row.
    column = word if has_value.all() else pl.when(pl.col("measured").is_not_null()).then(word)
    if "reference" in rows.columns:
        column = pl.coalesce(pl.col("reference").cast(pl.String), column)
    first = rows.columns[: rows.columns.index("status") + 1]
    rest = pl.exclude(*first, "reference")
    return replace(result, rows=rows.select(*first, column.alias("reference"), rest))


# The tools of the registry, a line each: those that can be read and those that cannot.

_BY_HAND = (
    "Write its figures as a table with the columns predicted and measured: `errcomp audit` takes "
    "it."
)
#: Tools of the literature of which no output is public, so that no reader can be written or tested.
NO_OUTPUT = {
    "Concorde": "Neither code nor output is public.",
    "ESM": "No output is public.",
    "Lumos": "No output is public; the PyTorch profiler traces that it takes are read.",
    "Omniverse": "Neither code nor output is public.",
    "Path Forward (Li et al.)": "Neither code nor output is public.",
    "PRISM": "Neither code nor output is public.",
    "TLP": "Predictions are not stored; its training data are TVM/Ansor logs, which are read.",
}
_GIVES = {"predictions": 1, "measurements": 2, "both": 3, "neither": 0}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool with its formats.

    Attributes
    ----------
    name : str
    formats : tuple of Format
    why : str
        Why there is none, and what to do.
    """

    name: str
    formats: tuple[Format, ...]
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
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
                    or (f"read along with {entry.part_of}" if entry.part_of else ""),
                }
                for entry in self.formats
            ],
            "why": self.why,
        }


def tools(name: str | None = None) -> list[Tool]:
    """Return the tools by name, or the one of this name.

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
    # kineto, nsys and ncu are names of formats; "torch" is a part of names.
    same = same or [
        tool
        for tool in known
        if wanted in tool.name.lower()
        or any(entry.name.startswith(wanted) for entry in tool.formats)
    ]
    if len(same) != 1:
        if same:
            names = [tool.name for tool in same]
            raise InputError(f"{name!r} may be several tools. Tools: {describe_names(names)}")
        names = [tool.name for tool in known]
        # Who writes "kinteo" means a format.
        first_words = (entry.name.partition("-")[0] for tool in known for entry in tool.formats)
        plain = {tool.lower() for tool in names}
        names += [word for word in dict.fromkeys(first_words) if word not in plain]
        raise InputError(f"no tool {name!r}. {offer('Tools', names, wanted=name)}")
    return same
