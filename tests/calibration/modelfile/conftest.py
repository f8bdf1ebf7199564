"""A small model file, and a way to change it with checksums that fit."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from errcomp.calibration.modelfile import FeatureRange, Member, ModelContent, write_model
from errcomp.calibration.modelfile.container import pack, unpack


def make_content(**changed):
    trees = Member(
        "boosted",
        "trees",
        {"quantiles": [0.1, 0.5, 0.9]},
        {
            "threshold": np.array([0.5, np.nan, np.inf]),
            "left": np.array([1, -1, -1], dtype=np.int32),
            "default": np.array([True, False, False]),
        },
        non_finite=("threshold",),
        booster=b"{i\x05about",
    )
    line = Member(
        "line",
        "linear",
        {"loss": "huber", "scale": 0.25, "nested": {"flags": [True, None]}},
        {"slope": np.array([[1.5, -2.0]]), "device": np.array(["A100", "größe"])},
    )
    plain = {
        "task": "composition",
        "unit": "ms",
        "features": (FeatureRange("share", "1", 0.25, 0.75), FeatureRange("gb", "GB", None, None)),
        "devices": ("A100", "V100"),
        "models": ("bert",),
        "modes": ("inference", "training"),
        "levels": (0.5, 0.9),
        "members": (trees, line),
        "fingerprint": "0123456789abcdef" * 4,
        "versions": {"errcomp": "0.1.0", "numpy": "2.0"},
        "created": "2025-01-31",
        "conformal": ({"by": "device", "scores": [0.1, 0.2]},),
        "extra": {"kernels": {"GEMM": 1.07}},
    }
    return ModelContent(**{**plain, **changed})


@pytest.fixture
def make():
    return make_content


@pytest.fixture
def path(tmp_path):
    target = tmp_path / "gpu.errcomp"
    write_model(target, make_content())
    return target


@pytest.fixture
def forge(path):
    """Write the file anew: ``change(manifest)`` first, then entries, all checksums made to fit."""

    def forged(change=None, entries=None, *, manifest_text=None):
        there = {name: bytes(data) for name, data in unpack(path.read_bytes()).items()}
        manifest = json.loads(there["manifest.json"])
        for name, data in (entries or {}).items():
            there[name] = data
            sums = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            manifest["entries"].setdefault(name, {}).update(sums)
        if change is not None:
            change(manifest)
        text = manifest_text if manifest_text is not None else json.dumps(manifest).encode()
        there["manifest.json"] = text
        there["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
        path.write_bytes(pack(there))
        return path

    return forged
