"""Files of BLIS that hold errors: signed ones as ratios, unsigned ones named and not read."""

from __future__ import annotations

import re
from typing import Any

from errcomp.readers.core.output import Output, output
from errcomp.readers.core.source import Source
from errcomp.readers.core.values import number, text, whole
from errcomp.readers.core.wide import as_dropped

__all__ = ["RATIO_NOTE", "is_signed", "read_signed"]

RATIO_NOTE = (
    "The file has relative errors, no values: every measurement is 1 and the prediction 1 + error. "
    "Totals, and errors weighted by size (WAPE), mean nothing."
)
_SIGNED = re.compile(r"(e2e|ttft|itl|tpot)_(mean|median|p\d+)_mpe")
_QUANTITY = {"e2e": "time", "ttft": "ttft", "itl": "itl", "tpot": "tpot"}
_KEYS = {
    "exp_id": "experiment",
    "model": "model",
    "workload": "workload",
    "hardware": "device",
    "tp": "tensor_parallel",
    "precision": "precision",
    "max_num_batched_tokens": "max_num_batched_tokens",
}


def is_signed(source: Source) -> bool:
    """Say whether this is a collection of signed errors of several simulators."""
    return "experiments" in source.json_names and b'"simulators"' in source.head


def read_signed(source: Source) -> Output:
    """Read (predicted - actual) / actual of each experiment and simulator."""
    content = source.json()
    experiments = content.get("experiments") if isinstance(content, dict) else None
    if not isinstance(experiments, dict):
        raise source.error("experiments is no object. The file may be another version.")
    rows: list[dict[str, Any]] = []
    for name, experiment in experiments.items():
        simulators = experiment.get("simulators") if isinstance(experiment, dict) else None
        if not isinstance(simulators, dict):
            raise source.error(f"experiment {name!r} has no simulators.")
        about = experiment.get("metadata")
        about = about if isinstance(about, dict) else {}
        keys = {
            new: value
            for old, new in _KEYS.items()
            if (value := text(about.get(old)) or whole(about.get(old))) is not None
        }
        keys["experiment"] = name
        for simulator, errors in simulators.items():
            if not isinstance(errors, dict):
                raise source.error(f"experiment {name!r}: {simulator} has no errors.")
            rows += [_row(source, simulator, keys, *pair) for pair in errors.items()]
    found = [row for row in rows if row]
    notes = [RATIO_NOTE]
    stated = content.get("summary")
    total = stated.get("total_measurements") if isinstance(stated, dict) else None
    if isinstance(total, int) and total != len(found):
        notes.append(f"The summary counts {total} errors, {len(found)} are there.")
    dropped = as_dropped("error of another quantity or statistic", len(rows) - len(found))
    return output(source.name, "blis-errors", found, dropped=dropped, notes=notes)


def _row(
    source: Source, simulator: str, keys: dict[str, Any], name: str, value: Any
) -> dict[str, Any]:
    match = _SIGNED.fullmatch(name)
    if match is None:
        return {}
    error = number(value)
    if error is None and value is not None:
        raise source.error(f"{keys['experiment']}: {name} must be a number, got {str(value)[:40]}.")
    return {
        **keys,
        "tool": simulator,
        "level": "request",
        "quantity": _QUANTITY[match[1]],
        "unit": "ratio",
        "statistic": match[2],
        "measured": 1.0,
        "predicted": None if error is None else 1 + error / 100,
        "status": "no error stated" if error is None else None,
    }
