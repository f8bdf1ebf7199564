"""Files of every schema are read, hold what they held and predict what they predicted."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from errcomp.calibration.modelfile import KINDS, MIGRATIONS, SCHEMA, read_model
from errcomp.calibration.storing import load_model
from errcomp.tables import Kernels

ROOT = Path(__file__).resolve().parents[3]
ARCHIVE = ROOT / "tests" / "data" / "modelfile"
EVERY = sorted(ARCHIVE.glob("v*/*.errcomp"))
#: Models of their own, and whole ones with corrections, bands and the runs of the fit.
WHOLE = [path for path in EVERY if path.stem in ("whole", "adapted")]
FILES = [path for path in EVERY if path not in WHOLE]
NAMES = [f"{path.parent.name}/{path.stem}" for path in FILES]
FIELDS = "task unit devices models modes levels fingerprint versions created conformal extra"


def expected_of(path):
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def test_every_schema_is_archived_and_read():
    assert list(MIGRATIONS) == list(range(1, SCHEMA + 1))
    assert [schema for schema, step in MIGRATIONS.items() if step is None] == [SCHEMA]
    for schema in MIGRATIONS:
        here = [path for path in FILES if path.parent.name == f"v{schema}"]
        whole = [path for path in WHOLE if path.parent.name == f"v{schema}"]
        kinds = {expected_of(path)["kind"] for path in here}
        kinds = kinds.union(*(expected_of(path)["kinds"] for path in whole))
        assert kinds == set(KINDS)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_archived_files_hold_what_they_held(path):
    assert path.stat().st_size < 60 * 1024
    content, expected = read_model(path), expected_of(path)
    for name in FIELDS.split():
        found = getattr(content, name)
        assert (list(found) if isinstance(found, tuple) else found) == expected[name], name
    assert [[f.name, f.unit, f.low, f.high] for f in content.features] == expected["features"]
    (member,) = content.members
    assert (member.name, member.kind) == (expected["name"], expected["kind"])
    assert member.meta == expected["meta"]
    assert list(member.non_finite) == expected["non_finite"]
    arrays = {
        name: [str(a.dtype), list(a.shape), hashlib.sha256(a.tobytes()).hexdigest()]
        for name, a in member.arrays.items()
    }
    assert arrays == expected["arrays"]


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_archived_files_predict_what_they_predicted(path):
    (member,), expected = read_model(path).members, expected_of(path)
    device = np.array(expected["device"], dtype=object)
    found = member.restore().predict_quantiles(
        np.array(expected["x"]), expected["q"], device=device
    )
    np.testing.assert_allclose(found, expected["quantiles"], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("path", WHOLE, ids=[f"{path.parent.name}/{path.stem}" for path in WHOLE])
def test_archived_models_predict_runs_as_they_did(path):
    expected = expected_of(path)
    found = load_model(path).predict(Kernels(expected["kernels"], unit="ms")).rows()
    assert len(found) == len(expected["rows"]) == 12
    for row, was in zip(found, expected["rows"], strict=True):
        numbers = [name for name, value in was.items() if isinstance(value, float)]
        assert {name: row[name] for name in numbers} == pytest.approx(
            {name: was[name] for name in numbers}, rel=1e-8
        )
        for name in ("run", "fallback"):
            assert row[name] == was[name]


BLOCKED = """
import json, sys
from pathlib import Path

allowed = {"numpy", "scipy", "errcomp"}

class Only:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        # The standard library has a module that is named after the platform.
        if top not in {*sys.stdlib_module_names, *allowed} and not top.startswith("_sysconfig"):
            raise ModuleNotFoundError(f"{name} is blocked")

sys.meta_path.insert(0, Only())
import numpy as np
from errcomp.calibration.modelfile import read_model

for name in sys.argv[1:]:
    expected = json.loads(Path(name).with_suffix(".json").read_text(encoding="utf-8"))
    model = read_model(name).members[0].restore()
    device = np.array(expected["device"], dtype=object)
    found = model.predict_quantiles(np.array(expected["x"]), expected["q"], device=device)
    np.testing.assert_allclose(found, expected["quantiles"], rtol=1e-8, atol=1e-10)
print(len(sys.argv) - 1)
"""


@pytest.mark.core
def test_predicting_needs_numpy_and_scipy_only():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, *FILES],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(FILES) > 0
