"""What the datasets made from the NeuSight artifact have in common."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from errcomp.errors import InputError

if TYPE_CHECKING:
    from errcomp.readers.learned.neusight import NeusightArtifact

__all__ = ["COMMIT", "LICENCE", "REFERENCE", "SOURCE", "csv_file", "read_artifact"]

SOURCE = "https://github.com/sitar-lab/NeuSight"
COMMIT = "6945927d9afcca2b9daf021f8395e53edc5b4eef"
LICENCE = "MIT, Copyright (c) 2025 Georgia Institute of Technology and Microsoft Corporation"
REFERENCE = (
    "Lee, Phanishayee and Mahajan (2025), Forecasting GPU Performance for Deep Learning "
    "Training and Inference, ASPLOS 2025, doi:10.1145/3669940.3707265"
)


def read_artifact(source: Path, predictors: Sequence[str] | None = None) -> NeusightArtifact:
    """Read the artifact, or those of its predictors; refuse one that does not check out.

    Raises
    ------
    InputError
        The artifact cannot be read, or a check of ``errcomp.readers.learned.neusight`` failed.
    """
    from errcomp.readers.learned import neusight

    artifact = neusight.read(source, predictors=predictors)
    failed = artifact.report.failed_checks
    if failed:
        shown = "; ".join(f"{f.where}: {f.check} ({f.detail})" for f in failed[:3])
        raise InputError(
            f"{source}: {len(failed)} checks failed, no table is derived from it: {shown}. "
            "See `errcomp ingest neusight` for all of them."
        )
    return artifact


def csv_file(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a CSV file: LF, missing values empty, numbers with all the digits they need."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _field(value: Any) -> str:
    if value is None:
        return ""
    # str of a float gives the shortest digits that read back as the same number.
    return str(value).lower() if isinstance(value, bool) else str(value)
