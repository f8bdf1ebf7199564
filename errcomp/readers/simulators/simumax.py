"""SimuMax: iteration time and memory of training runs, predicted and measured."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.core import AnyPath, Output, Rows, Source, ToolFormats, read_as
from errcomp.readers.core.sheet import as_dropped
from errcomp.readers.core.values import dicts_of, number, text, whole

_KEYS = {"model": "model", "parallel": "parallel", "kind": "schedule"}
_COUNTS = {"layer_num": "layers", "mbc": "microbatches", "vp_size": "virtual_stages"}
#: Quantity → unit, predicted, measured, and the error printed.
_QUANTITIES = {
    "time": ("ms", "perf_ms", "real_ms", "rel_err_pct"),
    "memory": ("GiB", "perf_alloc_gib", "real_alloc_gib", "alloc_err_pct"),
}
#: Ranks of a stage stand together; the stages between the first and the last have no prediction.
_STAGES = ("first_stage", "last_stage")
_DEPTH = re.compile(r"(?:^|[^a-z])pp(\d+)|tp\d+pp(\d+)")
_MIB = 1024
#: Both sides of an error are printed with two decimals, and so is the error.
_ROUNDING = 0.02


def read(path: AnyPath) -> Output:
    r"""Read a release summary of SimuMax.

    Parameters
    ----------
    path : path
        ``*_release_*_summary.json`` of ``docs/`` in SimuMax' repository.

    Returns
    -------
    Output
        For each training run, the time of an iteration (ms) and the peak of allocated memory (GiB),
        as predicted and as measured. Runs that share a measurement of memory have one row of it.
        Of a run with several pipeline stages, the first and the last have a row each, with the
        largest of the peaks of their ranks as measurement.

    Raises
    ------
    InputError
        The file is damaged, or not such a summary.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> row = {"case": "a", "model": "m", "perf_ms": 110.0, "real_ms": 100.0,
    ...        "perf_alloc_gib": 66.0, "real_alloc_gib": 60.0, "memory_group_name": "g"}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "summary.json"
    >>> _ = path.write_text(json.dumps({"system_rel": "b200", "rows": [row]}))
    >>> read(path).rows.select("quantity", "unit", "predicted", "measured").rows()
    [('time', 'ms', 110.0, 100.0), ('memory', 'GiB', 66.0, 60.0)]
    """
    return read_as(path, FORMATS)


def _is_summary(source: Source) -> bool:
    head = "\n".join(source.head_lines)
    return '"rows"' in head and '"system_rel"' in head


_tool = ToolFormats(
    "SimuMax", gives="both", reference="hardware", sample="SimuMax 4dcaae5 (B200, release 1.2)"
)


@_tool.reads(
    "simumax-summary",
    "*_release_*_summary.json",
    "model: time, memory, memory of a stage (ms, GiB)",
    _is_summary,
    limits="Memory is the peak that was allocated; reserved memory is left out. The memory of a "
    "run is that of its largest pipeline stage.",
)
def _summary(source: Source) -> Rows:
    content = source.json()
    runs = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
        raise source.error(
            "rows must be a list of runs with perf_ms and real_ms. The file may be from another "
            "version of SimuMax."
        )
    device = _device(text(content.get("system_rel")))
    rows: list[dict[str, Any]] = []
    measured: set[tuple[Any, ...]] = set()
    again = unlike = 0
    for i, run in enumerate(runs):
        name = text(run.get("case"))
        if name is None:
            raise source.error(f"rows[{i}] has no case.")
        about: dict[str, Any] = {new: text(run.get(old)) for old, new in _KEYS.items()}
        about |= {new: whole(run.get(old)) for old, new in _COUNTS.items()}
        keys = {"run": name, "device": device, "status": _status(run), **about}
        for quantity, (unit, ours, theirs, error) in _QUANTITIES.items():
            predicted, real = (_amount(source, run, side, i) for side in (ours, theirs))
            if predicted is None and real is None:
                continue
            shared = (text(run.get("memory_group_name")), predicted, real)
            if quantity == "memory" and shared[0] is not None:
                if shared in measured:
                    again += 1
                    continue
                measured.add(shared)
            unlike += not _follows(predicted, real, number(run.get(error)))
            rows.append(
                {**keys, "level": "model", "quantity": quantity, "unit": unit,
                 "predicted": predicted, "measured": real}
            )  # fmt: skip
            if quantity == "memory":
                rows += [{**keys, "level": "model", "unit": unit, **one} for one in _stages(run)]
    return Rows(
        rows,
        dropped=as_dropped("memory of another run's measurement", again),
        notes=_notes(content, unlike, len(rows)),
    )


def _stages(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the memory of the first and the last stage of a run with several."""
    ours, theirs = run.get("peak_alloc_by_stage_gib"), run.get("peak_memory_by_rank_mb")
    found = _DEPTH.search(text(run.get("parallel")) or "")
    depth = int(found[1] or found[2]) if found else 1
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or depth < 2:
        return []
    ranks = [number(peak.get("max_allocated_mb")) for peak in dicts_of([*theirs.values()])]
    known = [peak / _MIB for peak in ranks if peak is not None]
    if len(known) < len(theirs) or len(known) % depth:
        return []
    width = len(known) // depth
    parts = dict(zip(_STAGES, (known[:width], known[-width:]), strict=True))
    return [
        {"quantity": "memory of a stage", "stage": name.removesuffix("_stage"),
         "predicted": number(ours.get(name)), "measured": max(peaks)}
        for name, peaks in parts.items()
        if number(ours.get(name)) is not None
    ]  # fmt: skip


def _amount(source: Source, run: dict[str, Any], name: str, i: int) -> float | None:
    if (given := run.get(name)) is None:
        return None
    if (found := number(given)) is None:
        raise source.error(
            f"rows[{i}].{name} must be a number, got {str(given)[:40]!r}. The file may be damaged: "
            "copy it again."
        )
    return found


def _device(system: str | None) -> str | None:
    """Return the device that the name of a system file begins with."""
    if system is None:
        return None
    return system.rpartition("/")[2].split("_")[0].removesuffix(".json").upper()


def _status(run: dict[str, Any]) -> str | None:
    said = text(run.get("status"))
    return None if said in (None, "ok") else said


def _follows(predicted: float | None, real: float | None, stated: float | None) -> bool:
    """Say whether the printed error is that of the printed values, as far as rounding tells."""
    if predicted is None or not real or stated is None:
        return True
    return abs(100 * (predicted / real - 1) - stated) <= _ROUNDING


def _notes(content: dict[str, Any], unlike: int, n: int) -> list[str]:
    notes = []
    if unlike:
        notes.append(f"{unlike} of {n} errors printed in the file do not follow from its values.")
    out = content.get("excluded")
    left = (
        {name: len(dicts_of(some)) for name, some in out.items()} if isinstance(out, dict) else {}
    )
    if total := sum(left.values()):
        listed = ", ".join(f"{n} {name.removesuffix('_rows')}" for name, n in left.items() if n)
        runs = "run" if total == 1 else "runs"
        notes.append(f"The authors of the file list {total} {runs} that they left out ({listed}).")
    return notes


FORMATS = _tool.formats
