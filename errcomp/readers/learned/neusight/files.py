"""The files of the NeuSight artifact: where they are, their names, their content."""

from __future__ import annotations

import json
import re
import reprlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from errcomp.errors import InputError
from errcomp.readers.core.values import amount
from errcomp.system.strict_json import loads_text, table

# The report on reading the NeuSight artifact.

#: Sums of up to 2,135 numbers agree to about 1e-14; anything above this is due to another rule.
_TOLERANCE = 1e-9


def agree(first: float, second: float) -> bool:
    """Say whether two times (ms, the second positive) are equal up to rounding."""
    return abs(first - second) <= _TOLERANCE * second


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A failed check of the artifact: where, which check, and the numbers."""

    where: str
    check: str
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """Files read, configurations without a match, and failed checks.

    Attributes
    ----------
    root : str
        The folder that was read.
    labels : int
        Number of measured configurations.
    predictions, pairs : mapping of str to int
        Per predictor: number of predicted configurations, and of those also measured.
    without_prediction, without_label : mapping of str to tuple of str
        Per predictor: configurations measured but not predicted, and the reverse.
    without_operators : mapping of str to tuple of str
        Per predictor: pairs whose operators were not read, for lack of a file or a rule.
    without_measured_operators : tuple of str
        Configurations with a pair but without measured operators.
    ignored : tuple of str
        Files not named like a configuration.
    failed_checks : tuple of FailedCheck
        Empty if all checks passed.
    """

    root: str
    labels: int
    predictions: Mapping[str, int]
    pairs: Mapping[str, int]
    without_prediction: Mapping[str, tuple[str, ...]]
    without_label: Mapping[str, tuple[str, ...]]
    without_operators: Mapping[str, tuple[str, ...]]
    without_measured_operators: tuple[str, ...]
    ignored: tuple[str, ...]
    failed_checks: tuple[FailedCheck, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        import msgspec

        return cast("dict[str, Any]", msgspec.to_builtins(self))

    def __str__(self) -> str:
        lines = [f"{self.root}: {self.labels} measured configurations"]
        for tool, n in self.pairs.items():
            lines.append(f"{tool}: {n} pairs")
            lines += _listed("measured without prediction", self.without_prediction[tool])
            lines += _listed("predicted without measurement", self.without_label[tool])
            lines += _listed("pairs without operators", self.without_operators[tool])
        lines += _listed("pairs without measured operators", self.without_measured_operators, "")
        lines += _listed("files ignored", self.ignored, "")
        failed = len(self.failed_checks)
        lines.append(f"{failed} failed check{'' if failed == 1 else 's'}")
        lines += [f"  {f.where}: {f.check}: {f.detail}" for f in self.failed_checks]
        return "\n".join(lines)


def _listed(title: str, names: Sequence[str], indent: str = "  ") -> list[str]:
    """Count names and show the first three; no line if there are none."""
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{indent}{len(names)} {title}: {', '.join(names[:3])}{more}"]


@dataclass(frozen=True, slots=True)
class Device:
    """A device folder: its short name, its vendor, and whether NeuSight was trained on it."""

    name: str
    vendor: str | None
    in_training: bool | None


#: Folder → device. Training devices are from the paper, see datasets/neusight/README.md.
DEVICES: Mapping[str, Device] = {
    "Tesla_P4": Device("P4", "NVIDIA", True),
    "Tesla_P100-PCIE-16GB": Device("P100", "NVIDIA", True),
    "Tesla_V100-PCIE-32GB": Device("V100", "NVIDIA", True),
    "Tesla_T4": Device("T4", "NVIDIA", True),
    "NVIDIA_A100-PCIE-40GB": Device("A100-40G", "NVIDIA", True),
    "NVIDIA_A100-SXM4-40GB": Device("A100-40G-SXM", "NVIDIA", True),
    "NVIDIA_A100_80GB_PCIe": Device("A100-80G", "NVIDIA", False),
    "NVIDIA_L4": Device("L4", "NVIDIA", False),
    "NVIDIA_H100_80GB_HBM3": Device("H100", "NVIDIA", False),
    "AMD_Instinct_MI100": Device("MI100", "AMD", True),
    "AMD_Instinct_MI210": Device("MI210", "AMD", True),
    "AMD_Instinct_MI250": Device("MI250", "AMD", False),
}
MODES = {"inf": "inference", "train": "training"}
_STEM = re.compile(
    r"(?P<model>\w+)-(?P<mode>inf|train)-(?P<seq>\d+)-(?P<batch>\d+)(?:-(?P<option>\w+))?"
)
#: Only one of several equivalent names ("512" and "0512", none and "base") is allowed.
_ONE_NAME = re.compile(
    r"\w+-\w+-[1-9][0-9]{0,8}-[1-9][0-9]{0,8}(?:-(?!base$|(?:dp|tp|pp)(?:0|\d{7}))\w+)?",
    re.ASCII,
)
_MOST_LAYERS = 10_000
_DEVICES_OF_OPTION = re.compile(r"(?:dp|tp|pp)(\d+)(?:_\d+)?")


@dataclass(frozen=True, slots=True, order=True)
class Configuration:
    """The parts of a file name: ``<model>-<mode>-<seq>-<batch>[-<option>]`` in a device folder."""

    device_name: str
    model: str
    mode: str
    seq_len: int
    batch: int
    variant: str
    stem: str

    @property
    def run(self) -> str:
        """Name of the configuration in tables and reports."""
        return f"{self.device_name}/{self.stem}"

    @property
    def devices(self) -> int:
        """Number of devices that share the work."""
        match = _DEVICES_OF_OPTION.fullmatch(self.variant)
        return int(match[1]) if match else 1


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of an operator file; times in ms, ``total`` is forward + backward."""

    name: str
    kind: str
    total: float
    forward: float
    backward: float
    shape: str
    inputs: tuple[str, ...]


def is_artifact(path: str | PathLike[str]) -> bool:
    """Say whether this is the folder of the NeuSight artifact, or its ``scripts/asplos``.

    Examples
    --------
    >>> is_artifact("kernels.csv")
    False
    """
    try:
        find_root(Path(path))
    except PermissionError:  # it looks like one; reading it names the unreadable folder
        return True
    except (InputError, OSError, ValueError):  # missing, unreadable, or an invalid name
        return False
    return True


def find_root(path: Path) -> Path:
    """Find the folder that holds ``label`` and ``results/prediction``."""
    for root in (path, path / "scripts" / "asplos"):
        if (root / "label").is_dir() and (root / "results" / "prediction").is_dir():
            return root
    if not path.exists():
        raise InputError(f"{path}: no such folder. Give the root of the NeuSight artifact.")
    raise InputError(
        f"{path}: not the NeuSight artifact: neither this folder nor its scripts/asplos/ holds "
        "label/ and results/prediction/. Give the root of the artifact."
    )


def device_of(root: Path, folder: str) -> Device:
    """Look up a device folder, also in the artifact's own list of devices."""
    if folder in DEVICES:
        return DEVICES[folder]
    configs = root / "data" / "device_configs"
    if (configs / f"{folder}.json").is_file():
        vendor = {"NVIDIA": "NVIDIA", "Tesla": "NVIDIA", "AMD": "AMD"}.get(folder.split("_")[0])
        return Device(folder, vendor, None)
    raise InputError(
        f"{root}: unknown device {folder!r}: it is neither in {configs.relative_to(root)}/ nor one "
        f"of {', '.join(sorted(DEVICES))}. Rename the folder, or add its device file."
    )


def parse_stem(device_name: str, stem: str) -> Configuration | None:
    """Read a file name; None if it does not name a configuration.

    Raises
    ------
    InputError
        It names a configuration in another spelling, so that two names could mean the same.
    """
    match = _STEM.fullmatch(stem)
    if match is None:
        return None
    if _ONE_NAME.fullmatch(stem) is None:
        raise InputError(
            f"{device_name}/{stem}: the sequence length and the batch size in the file name must "
            "be integers from 1 to 999999999 without leading zeros, and an option after them must "
            "not be 'base' or contain a number that begins with 0. Rename or remove the file."
        )
    return Configuration(
        device_name,
        match["model"],
        MODES[match["mode"]],
        int(match["seq"]),
        int(match["batch"]),
        match["option"] or "base",
        stem,
    )


def read_total(path: Path) -> dict[str, float]:
    """Read the JSON file of a configuration: ``num_layer`` and latencies in ms."""
    content = _text(path)
    try:
        values: Any = loads_text(content)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: line {error.lineno}: not valid JSON ({error.msg}). The file may be "
            "incomplete: copy it again."
        ) from error
    except ValueError as error:
        raise InputError(f"{path}: {error}. Copy the file again.") from error
    wanted = ("num_layer", "e2e_latency", "fw_latency", "bwall_latency")
    missing = [key for key in wanted if not isinstance(values, dict) or key not in values]
    if missing:
        raise InputError(f"{path}: not a file of the artifact: it lacks {', '.join(missing)}")
    # Some labels lack their number of layers (null or 0); predictions have it.
    if values["num_layer"] is None:
        values["num_layer"] = 0
    for key in wanted:
        value, layers = values[key], key == "num_layer"
        most = _MOST_LAYERS if layers else sys.float_info.max
        fits = type(value) in (int, float) and 0 <= value <= most
        if not fits or (layers and value != int(value)):
            kind = f"an integer from 0 to {most}" if layers else "a finite number ≥ 0"
            shown = reprlib.repr(value)
            raise InputError(f"{path}: {key} must be {kind}, got {shown}. Fix the file.")
    if values["e2e_latency"] == 0:
        raise InputError(
            f"{path}: e2e_latency must be positive, got 0. Remove the file, or fix it."
        )
    return {key: float(values[key]) for key in wanted}


def read_operators(path: Path, *, measured: bool) -> list[Operator]:
    """Read the CSV file of a configuration: measured (label) or predicted operators."""
    if measured:
        names = ("Name", "latency", "fw_latency", "output_shape", "_input_nodes")
        name_pattern = re.compile(r"([^\s{},:]+): None")
    else:
        names = ("Name", "e2e_latency", "fw_latency", "OutputShape", "Prev")
        name_pattern = re.compile(r"'([^']+)'")
    operators = []
    file, (_, of_total, of_forward, *_) = str(path), names
    for line, row in _rows(path, (*names, *(() if measured else ("OpName",)))):
        where = f"{file}: line {line}"
        total = amount(where, of_total, row[of_total])
        forward = amount(where, of_forward, row[of_forward])
        if forward > total:
            raise InputError(
                f"{where}: {names[2]} ({forward:g}) must not be above {names[1]} "
                f"({total:g}), which includes it. Fix the file."
            )
        operators.append(
            Operator(
                name=row["Name"],
                kind=row.get("OpName", ""),
                total=total,
                forward=forward,
                backward=total - forward,
                shape=row[names[3]],
                inputs=tuple(name_pattern.findall(row[names[4]])),
            )
        )
    if not operators:
        raise InputError(f"{path}: no operators after the header. Copy the file again.")
    return operators


def _rows(path: Path, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    content = _text(path)
    # Every file of the artifact ends with a line break; without it, the last number may be cut.
    if content and not content.endswith("\n"):
        raise InputError(
            f"{path}: line {content.count(chr(10)) + 1}: the file is cut off: it ends in the "
            "middle of a line. Copy it again."
        )
    return table(path, content, needed)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from error
