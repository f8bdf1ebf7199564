"""Model files: a fitted model in one file that predicts for years, needs NumPy and runs no code.

A file ``*.errcomp`` is a ZIP archive of ``manifest.json`` (what the model is, what it was fitted
to, and the checksum of everything else), its checksum ``manifest.sha256``, arrays in NumPy's format
and, where there are boosted trees, the booster as xgboost saves it. Nothing in it is pickled.
"""

from __future__ import annotations

from errcomp.calibration.modelfile.content import (
    KINDS,
    FeatureRange,
    Member,
    ModelContent,
    portable,
)
from errcomp.calibration.modelfile.hashing import fingerprint
from errcomp.calibration.modelfile.storing import check_target, read_model, write_model
from errcomp.calibration.modelfile.units import check_unit

__all__ = [
    "KINDS",
    "FeatureRange",
    "Member",
    "ModelContent",
    "check_target",
    "check_unit",
    "fingerprint",
    "portable",
    "read_model",
    "write_model",
]
