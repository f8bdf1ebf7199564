"""TVM: logs of its tuners (AutoTVM, the auto-scheduler Ansor, the graph tuner)."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.values import number
from errcomp.system.strict_json import loads_text

_ERRORS = (
    "no error",
    "instantiation error",
    "compile error on the host",
    "compile error on the device",
    "runtime error on the device",
    "wrong answer",
    "build timeout",
    "run timeout",
    "unknown error",
)
#: Costs from here on mean a failure: no kernel takes years.
_NO_COST = 1e8
_OPTION = re.compile(r"-(model|mcpu)=(\S+)")
_AUTOTVM = ("input", "config", "result")
#: The structural hash of a workload of the meta schedule.
_HASH = re.compile(r"-?\d{6,20}")


def read(path: AnyPath) -> Output:
    r"""Read tuning logs of TVM.

    Parameters
    ----------
    path : path
        JSON lines of AutoTVM (also of the graph tuner), of the auto-scheduler (lines that begin
        with ``#`` are comments) or of the meta schedule; or a folder or archive of them.

    Returns
    -------
    Output
        The measured ``time`` of each ``kernel`` (task) in seconds: the mean of its costs, as in
        TVM, with ``measured_spread`` and ``n_repeats`` if there are several. ``shape`` (the
        arguments), ``config``, ``target``, ``device``, ``date``; ``version`` is TVM's.

    Raises
    ------
    InputError
        A line is not a record of a log.

    Notes
    -----
    A configuration that failed (``error_no`` is not 0) is a row with a status: its cost in the log,
    10^9 or more, is not a time. Predictions of cost models are not in these logs.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.json"
    >>> _ = path.write_text('{"i": [["[\\"matmul\\", 64]", "llvm"], [[], []]], '
    ...     '"r": [[0.002, 0.004], 0, 1.5, 1600000000], "v": "v0.3"}\n')
    >>> read(path).rows.select("kernel", "shape", "measured", "n_repeats", "date").rows()
    [('matmul', '[64]', 0.003, 2, '2020-09-13T12:26:40Z')]
    """
    return read_as(path, FORMATS)


def _first_record(source: Source) -> Any:
    """Return the first record, or its beginning if it is longer than the head."""
    for line in source.head_lines:
        if line.strip() and not line.startswith("#"):
            try:
                return loads_text(line)
            except ValueError:
                return None
    return None


def _is_old_autotvm(record: dict[str, Any]) -> bool:
    return (
        {"i", "r", "v"} <= record.keys()
        and isinstance(record["i"], list)
        and len(record["i"]) > 4
        and isinstance(record["i"][0], str)
    )


def _is_autotvm(source: Source) -> bool:
    record = _first_record(source)
    if not isinstance(record, dict):
        return False
    return all(name in record for name in _AUTOTVM) or _is_old_autotvm(record)


def _is_ansor(source: Source) -> bool:
    record = _first_record(source)
    if not isinstance(record, dict) or not {"i", "r"} <= record.keys():
        return False
    given = record["i"]
    return isinstance(given, list) and bool(given) and isinstance(given[0], list)


def _is_meta(source: Source) -> bool:
    """Say whether lines are a number and a trace, times, target and arguments."""
    record = _first_record(source)
    if not isinstance(record, list) or len(record) != 2 or not _is_index(record[0]):
        return False
    held = record[1]
    return isinstance(held, list) and len(held) >= 4 and isinstance(held[0], list)


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_workloads(source: Source) -> bool:
    record = _first_record(source)
    two = isinstance(record, list) and len(record) == 2
    return (
        two and all(isinstance(item, str) for item in record) and bool(_HASH.fullmatch(record[0]))
    )


_tool = ToolFormats("MetaSchedule", gives="measurements", reference="hardware")


@_tool.reads(
    "tvm-autotvm-log",
    "log of AutoTVM or of the graph tuner (JSON lines)",
    "kernel: time (s)",
    _is_autotvm,
    tool="TVM",
    sample="TLCBench 218ad10, TVM 0.8.dev0",
    limits="errcomp reads the index of a configuration, but not its steps.",
)
def _read_autotvm(source: Source) -> Rows:
    rows = []
    for line, record in source.json_lines(comment="#"):
        try:
            rows.append(_autotvm(record))
        except (KeyError, IndexError, TypeError, ValueError):
            raise _not_a_record(source, line, "AutoTVM") from None
    return Rows(rows)


def _not_a_record(source: Source, line: int, tuner: str) -> Exception:
    return source.error(
        f"not a record of {tuner}. The file may be damaged, or written by another version.",
        line=line,
    )


def _text(value: Any) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value)


def _autotvm(record: dict[str, Any]) -> dict[str, Any]:
    if "input" in record:
        target, task, args = record["input"][:3]
        config = record["config"]["index"]
        result = record["result"]
        version = record.get("tvm_version")
    else:
        target, task, args = record["i"][:3]
        config = record["i"][-1]["i"]
        result, version = record["r"], None
    return {
        **_common("TVM", str(target), result),
        "kernel": str(task),
        "shape": _text(args),
        "config": _text(config),
        "version": None if version is None else str(version),
    }


@_tool.reads(
    "tvm-ansor-log",
    "log of the auto-scheduler (JSON lines)",
    "kernel: time (s)",
    _is_ansor,
    tool="Ansor",
    sample="apache/tvm f334af5, v0.2 and v0.3",
    limits="The steps of a schedule are read as a hash, in the key config.",
)
def _read_ansor(source: Source) -> Rows:
    rows = []
    for line, record in source.json_lines(comment="#"):
        try:
            key, target = record["i"][0][:2]
            rows.append({**_ansor(key, record["i"]), **_common("Ansor", str(target), record["r"])})
        except (KeyError, IndexError, TypeError, ValueError):
            raise _not_a_record(source, line, "the auto-scheduler") from None
    return Rows(rows)


@_tool.reads(
    "tvm-meta-schedule-records",
    "database_tuning_record.json",
    "kernel: time (s)",
    _is_meta,
    limits="Workloads are numbers; their programs are encoded in database_workload.json.",
)
def _read_meta(source: Source) -> Rows:
    rows = []
    for line, record in source.json_lines():
        try:
            workload, (trace, times, target, args) = record[0], record[1][:4]
            rows.append({**_meta(workload, trace, args), **_times("MetaSchedule", target, times)})
        except (KeyError, IndexError, TypeError, ValueError):
            raise _not_a_record(source, line, "the meta schedule") from None
    return Rows(rows)


def _meta(workload: Any, trace: Any, args: Any) -> dict[str, Any]:
    if not _is_index(workload):
        raise TypeError
    return {
        "kernel": f"workload {workload}",
        "workload": workload,
        "shape": None if args is None else _text(args),
        "config": _hash(trace),
    }


def _times(tool: str, target: Any, times: Any) -> dict[str, Any]:
    """Return the times of a record of the meta schedule; None if it was not measured."""
    fields = target if isinstance(target, dict) else {"kind": target}
    options = " ".join(f"-{name}={fields[name]}" for name in ("model", "mcpu") if fields.get(name))
    kind = str(fields.get("kind") or "unknown")
    row = _common(tool, f"{kind} {options}".strip(), [times or [], 0, None, None])
    arch = fields.get("arch")
    return {**row, "target": _text(target), "device": str(arch) if arch else row["device"]}


def _hash(steps: Any) -> str:
    import hashlib

    return hashlib.sha256(_text(steps).encode()).hexdigest()[:12]


def _ansor(key: Any, given: list[Any]) -> dict[str, Any]:
    workload: Any = key
    if isinstance(key, str):
        try:
            workload = loads_text(key)
        except ValueError:
            workload = [key]
    if not isinstance(workload, list) or not workload:
        workload = [key]
    return {
        "kernel": _text(workload[0]),
        "shape": _text(workload[1:]),
        "config": _hash(given[1:]),
    }


def _common(tool: str, target: str, result: list[Any]) -> dict[str, Any]:
    costs, error, _, stamp = result[:4]
    options = dict(_OPTION.findall(target))
    row: dict[str, Any] = {
        "tool": tool,
        "target": target,
        "device": options.get("model") or options.get("mcpu") or target.partition(" ")[0],
        "date": _date(stamp),
    }
    if not (_is_index(error) and error == 0):
        code = error if _is_index(error) and 0 < error < len(_ERRORS) else -1
        return {**row, "status": _ERRORS[code] + ("" if code > 0 else f" ({error})"[:40])}
    times = [time for time in map(number, costs) if time is not None]
    if not times or len(times) < len(costs) or not max(times) < _NO_COST:
        return {**row, "status": "no time"}
    mean = math.fsum(times) / len(times)
    row |= {"measured": mean, "n_repeats": len(times)}
    if len(times) > 1 and mean > 0:
        squares = math.fsum((time - mean) ** 2 for time in times)
        row["measured_spread"] = math.sqrt(squares / (len(times) - 1)) / mean
    return row


def _date(stamp: Any) -> str | None:
    if not isinstance(stamp, int | float) or isinstance(stamp, bool) or not 0 < stamp < 4e9:
        return None
    return datetime.fromtimestamp(int(stamp), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_tool.knows(
    "tvm-meta-schedule-workloads",
    "database_workload.json",
    _is_workloads,
    "The file holds the tuned programs, but no times.",
    part_of="tvm-meta-schedule-records",
)

FORMATS = _tool.formats
