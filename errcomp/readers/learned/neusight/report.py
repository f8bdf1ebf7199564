"""What reading the NeuSight artifact found besides its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["FailedCheck", "Report", "agree"]

#: Sums of up to 2,135 numbers agree to about 1e-14; anything above this is another rule.
_TOLERANCE = 1e-9


def agree(first: float, second: float) -> bool:
    """Are two times (ms, the second positive) the same up to rounding."""
    return abs(first - second) <= _TOLERANCE * second


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A statement about the artifact that did not hold: where, which, and the numbers."""

    where: str
    check: str
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was read, what has no partner and what did not check out.

    Attributes
    ----------
    root : str
        The folder read.
    labels : int
        Measured configurations.
    predictions, pairs : mapping of str to int
        Per predictor: predicted configurations, and those of them that were measured.
    without_prediction, without_label : mapping of str to tuple of str
        Per predictor: configurations measured but not predicted, and the reverse.
    without_operators : mapping of str to tuple of str
        Per predictor: pairs whose operators were not read, because there is no file or no rule.
    without_measured_operators : tuple of str
        Configurations with a pair but without measured operators.
    ignored : tuple of str
        Files whose name is not that of a configuration.
    failed_checks : tuple of FailedCheck
        Empty when everything was as the rules say.
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
        return {
            "root": self.root,
            "labels": self.labels,
            "predictions": dict(self.predictions),
            "pairs": dict(self.pairs),
            "without_prediction": {k: [*v] for k, v in self.without_prediction.items()},
            "without_label": {k: [*v] for k, v in self.without_label.items()},
            "without_operators": {k: [*v] for k, v in self.without_operators.items()},
            "without_measured_operators": [*self.without_measured_operators],
            "ignored": [*self.ignored],
            "failed_checks": [
                {"where": f.where, "check": f.check, "detail": f.detail} for f in self.failed_checks
            ],
        }

    def __str__(self) -> str:
        lines = [f"{self.root}: {self.labels} measured configurations"]
        for tool, n in self.pairs.items():
            lines.append(f"{tool}: {n} pairs")
            lines += _first("measured without prediction", self.without_prediction[tool])
            lines += _first("predicted without measurement", self.without_label[tool])
            lines += _first("pairs without operators", self.without_operators[tool])
        lines += _first("pairs without measured operators", self.without_measured_operators, "")
        lines += _first("files ignored", self.ignored, "")
        lines.append(f"{len(self.failed_checks)} failed checks")
        lines += [f"  {f.where}: {f.check}: {f.detail}" for f in self.failed_checks]
        return "\n".join(lines)


def _first(what: str, names: Sequence[str], indent: str = "  ") -> list[str]:
    """Count names and show the first three of them; nothing to say of none."""
    if not names:
        return []
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{indent}{len(names)} {what}: {', '.join(names[:3])}{more}"]
