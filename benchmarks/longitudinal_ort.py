"""How do the times of small networks change from release to release of ONNX Runtime?

Run: python benchmarks/longitudinal_ort.py FOLDER [--quick] [--releases 1.15.0,1.31.1]. Linux.
Needs numpy 1.26 (which every release takes), onnx and pip, and nothing of errcomp: an environment
of its own will do. Releases are fetched by pip from the index it is set to and unpacked in FOLDER.

Sweeps over releases scatter by 6 to 10 %, more than most releases change, because processes and
hours differ. So releases are compared in pairs with the first one (see `pairing`). Each network of
`ort_models` is run un-profiled in slices of ten runs (more, if those end within 6 ms), A B, then
B A, 25 of each, and in every third turn also profiled. The change is the median over slices of
log(B / A).

Pieces are stored as they end; calling again does those that are missing. FOLDER gets, once all are
there,

* runs.csv: per piece and network the un-profiled times of both sides and the change,
* kernels.csv: per piece, network and kind of operator the profiled times of both sides, joined by
  operator and shapes, since names change with fusion; without a change where only one has it,
* protocol.json: protocol, machine, releases with dates, models, dates and load of each piece.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import collecting
import numpy as np
import onnx
import ort_models
import slices
from collecting import SEED
from pairing import QUICK, Protocol, Study

# All that Python 3.11 has wheels of.
RELEASES = tuple(
    f"1.{minor}.{patch}"
    for minor, patches in (
        (15, "01"),
        (16, "0123"),
        (17, "013"),
        (18, "01"),
        (19, "02"),
        (20, "01"),
        (21, "01"),
        (22, "01"),
        (23, "012"),
        (24, "1234"),
        (25, "01"),
        (26, "0"),
        (27, "0"),
        (28, "0"),
        (29, "0"),
        (30, "0"),
        (31, "01"),
    )
    for patch in patches
)
#: Shapes left out: they take half the time of all others and tell the same.
LEFT_OUT = ("encoder_b2t64", "resnet_b2s96", "mobilenet_b2s96")


def wheel_of(folder: Path, version: str) -> Path:
    """Return the wheel of a release, fetched if it is not there."""
    wheels = folder / "wheels"
    pattern = f"onnxruntime-{version}-*.whl"
    if not [*wheels.glob(pattern)]:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels)]
        subprocess.run([*pip, f"onnxruntime=={version}"], check=True)
    return min(wheels.glob(pattern))


def release_of(folder: Path, version: str) -> Path:
    """Return where a release is, unpacked."""
    unpacked = folder / "releases" / version
    if not unpacked.exists():
        temporary = unpacked.with_name(f"{version}.tmp")
        with zipfile.ZipFile(wheel_of(folder, version)) as wheel:
            wheel.extractall(temporary)
        temporary.replace(unpacked)
    return unpacked


def built_on(folder: Path, version: str) -> date:
    """Return the day that most files of a release are of."""
    with zipfile.ZipFile(wheel_of(folder, version)) as wheel:
        days = Counter(entry.date_time[:3] for entry in wheel.infolist())
    return date(*days.most_common(1)[0][0])


def write_models(folder: Path, protocol: Protocol) -> dict[str, dict[str, Any]]:
    """Write the networks and return their descriptions."""
    found = {}
    for built in ort_models.all_models(smallest=protocol.smallest_only):
        if built.name in LEFT_OUT:
            continue
        path = built.save(folder)
        found[built.name] = {
            "about": ort_models.MODELS[built.model][0].__doc__.split("\n")[0],
            "batch": built.batch,
            "parameters": built.parameters,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
    return found


def main() -> int:
    """Measure what is missing, then write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="pieces and tables; made if it is missing")
    parser.add_argument("--quick", action="store_true", help="smallest shapes, seconds a piece")
    parser.add_argument(
        "--releases",
        default=",".join(RELEASES),
        help="separated by commas; the first is the anchor",
    )
    args = parser.parse_args()
    releases = args.releases.split(",")
    protocol = QUICK if args.quick else Protocol()
    folder = args.folder.resolve()
    study = Study(folder, protocol, releases, partial(release_of, folder), "ort_side.py")
    with tempfile.TemporaryDirectory() as models:
        about = write_models(Path(models), protocol)
        study.measure(Path(models), list(about))
    if study.missing:
        total = len(study.plan)
        print(f"{len(study.missing)} of {total} pieces are missing: run again", file=sys.stderr)
        return 1
    scripts = ("pairing.py", "ort_side.py", "ort_timing.py", "slices.py")
    here = Path(__file__).parent
    study.tabulate(
        {
            "unit": "ms",
            "releases": {v: built_on(folder, v).isoformat() for v in releases},
            "protocol": {
                "threads": "intra_op 1, inter_op 1, pinned, priority raised where permitted",
                "provider": "CPUExecutionProvider",
                "optimisations": "all",
                "least_share_of_core": slices.LEAST_SHARE,
                "seed": SEED,
                **asdict(protocol),
            },
            "machine": collecting.machine(),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "onnx": onnx.__version__,
            },
            "scripts": {n: hashlib.sha256((here / n).read_bytes()).hexdigest() for n in scripts},
            "models": about,
        }
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
