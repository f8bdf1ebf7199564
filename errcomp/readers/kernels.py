"""Tables of kernels: written by users, or from the output of tools."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from errcomp.errors import InputError
from errcomp.readers.learned.neusight.files import is_artifact
from errcomp.readers.plain import NAMES, read_frame
from errcomp.readers.rows import is_output
from errcomp.tables import Kernels

__all__ = ["is_artifact", "read"]

_NAMES = NAMES | {"run", "kernel", "stream", "shape"}
_NUMBERS = ("count", "predicted", "measured", "run_measured")


def read(
    path: str | PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    tool: str | None = None,
    whole_runs: bool = False,
) -> Kernels:
    r"""Read a table of kernels from a file, or the kernels in the output of a tool or profiler.

    A file is CSV (comma, tab or semicolon; also gzipped), Parquet, JSON or JSON lines; its columns
    are those of `errcomp.tables.Kernels`. Names (run, kernel, stream, shape, device, …) stay text
    even if they look like numbers.

    Parameters
    ----------
    path : path
        The file; or output that ``errcomp readers`` lists (a trace, a folder of logs, the root of
        the NeuSight artifact).
    columns : mapping of str to str, optional
        For a file: ``{"predicted": "pred_ms"}``, name here → column of the file.
    unit : str, optional
        For a file: unit of all times, e.g. ``"ms"``; a column ``unit`` must agree.
    tool : str, optional
        Only the kernels of this predictor. By default all kernels of a file, and of the artifact
        the operators that ``neusight`` predicted; ``"all"`` reads those of all predictors.
    whole_runs : bool, optional
        Read a file without kernels as runs that were predicted as a whole, one in each row (see
        `errcomp.tables.Kernels.of_runs`).

    Returns
    -------
    Kernels
        Messages name the line (CSV, JSON lines) or row (Parquet, JSON) of the file. The
        artifact's ``run_measured`` is the measured end-to-end latency, in ms.

    Raises
    ------
    InputError
        The path is neither of these, the file cannot be read (see
        ``errcomp.readers.plain.read_pairs``),
        its content is not a table of kernels, or has no kernels of this tool.

    Notes
    -----
    Operators of the artifact that are predicted 0 and measured 0 stay: they take no time. Misleads
    if the variants ``dp4``, ``tp4`` and ``pp4`` are compared with ``run_measured``: these runs
    communicate, in part hidden, and their operators were not measured.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "kernels.csv"
    >>> _ = path.write_text("run,kernel,count,predicted\n007,matmul,12,1.5\n007,add,24,0.5\n")
    >>> kernels = read(path, unit="ms")
    >>> kernels.runs, kernels.totals().predicted.tolist()
    (('007',), [30.0])
    """
    if not is_output(path, columns):
        wanted = dict(columns or {})
        frame, line_offset = read_frame(Path(path), wanted, _NAMES, _NUMBERS)
        has_kernels = {"kernel", "kernel_class"} & {*frame.columns, *wanted}
        make = Kernels.of_runs if whole_runs and not has_kernels else Kernels
        kernels = make(frame, columns=wanted, unit=unit, source=str(path), line_offset=line_offset)
        return kernels.of_tool(tool)
    if columns or unit:
        raise InputError(
            f"{path} is the output of a tool, so its columns and unit are known. Leave out "
            "columns= and unit=."
        )
    if not is_artifact(path):
        from errcomp.readers.core.ingest import ingest

        return ingest(path).kernels.of_tool(tool)
    from errcomp.readers.learned import neusight

    wanted_tool = "neusight" if tool is None else tool
    # Skip the other predictors: reading them takes most of the time.
    only = None if wanted_tool == "all" else [wanted_tool]
    return neusight.read(path, predictors=only).kernels_of(wanted_tool)
