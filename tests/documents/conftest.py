"""Documents of every kind, each written once by its command from a small table."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.cli import main
from tests.decisions.draws import fewer


@dataclass(frozen=True)
class Written:
    """A document, and the tables that its command printed."""

    path: Path
    document: Mapping[str, Any]
    printed: str


def _kernels(runs: int = 12) -> str:
    """Two classes of kernels on four devices; errors of a device are alike."""
    rng = np.random.default_rng(0)
    lines = ["run,kernel,kernel_class,count,device,model,mode,vendor,predicted,measured,"
             "run_measured"]  # fmt: skip
    for i in range(runs):
        device = i % 4
        of_device = 0.1 * device - 0.15
        times = []
        for kernel, (kind, count, predicted) in enumerate(
            (("gemm", 24, 1.0 + 0.1 * i), ("softmax", 24, 0.2), ("gemm", 1, 3.0))
        ):
            measured = predicted * np.exp(of_device + rng.normal(0, 0.05))
            times.append((kernel, kind, count, predicted, measured))
        total = 1.05 * sum(count * measured for _, _, count, _, measured in times)
        lines += [
            f"r{i},k{kernel},{kind},{count},D{device},m{i % 3},inference,V{device % 2},"
            f"{predicted:.6f},{measured:.6f},{total:.6f}"
            for kernel, kind, count, predicted, measured in times
        ]
    return "\n".join(lines) + "\n"


def _validations(first: int, last: int, slow_from: int) -> str:
    """Four operators; from one version on the first two take twice as long."""
    rng = np.random.default_rng(first)
    lines = ["version,op,shape,repeat,released,measured"]
    for version in range(first, last):
        for i, (op, shape) in enumerate((("a", 1), ("a", 2), ("b", 1), ("b", 2))):
            for repeat in range(2):
                time = (i + 1.0) * (2 if i < 2 and version >= slow_from else 1)
                time *= np.exp(rng.normal(0, 0.01))
                lines.append(f"1.{version},{op},{shape},{repeat},2024-{version + 1:02d}-01,{time}")
    return "\n".join(lines) + "\n"


def _levels() -> str:
    """A network and three operators, of which one takes longer from 1.6 on and one is new."""
    rng = np.random.default_rng(1)
    lines = ["version,level,network,op,measured,stack_cuda"]
    for version in range(12):
        later = version >= 6
        parts = {"conv": 6.0 - 0.5 * later, "gelu": 1.0 + 0.2 * later, "fused": 0.4 if later else 0}
        parts = {op: time * np.exp(rng.normal(0, 0.003)) for op, time in parts.items() if time}
        whole = sum(parts.values()) + 2.5
        cuda = 12.4 if later else 12.1
        lines.append(f"1.{version},network,net,,{whole:.5f},{cuda}")
        lines += [f"1.{version},operator,net,{op},{t:.5f},{cuda}" for op, t in parts.items()]
    return "\n".join(lines) + "\n"


def _repeats() -> str:
    """Forty configurations, measured three times; some rows are copies, some are impossible."""
    rng = np.random.default_rng(4)
    lines = ["batch,device,day,source,ms,p50,p99"]
    for i in range(120):
        batch, day = 1 + i // 3, 1 + i % 3
        graphs = "on" if i % 12 == 0 else "off"
        time = batch * np.exp(0.02 * rng.normal() + 0.3 * (graphs == "on"))
        text = f"graphs={graphs}; seed={i % 7}"
        lines.append(
            f"{batch},D{batch % 2},2026-01-{day:02d},{text},{time:.6f},{batch},{batch + 1}"
        )
    lines += [lines[5], lines[9]]
    lines.append("50,D1,2026-01-01,graphs=off; seed=1,-1.0,3,2")
    return "\n".join(lines) + "\n"


def _choices(measured: int) -> str:
    """Five devices and six networks; on some devices nothing was measured."""
    rng = np.random.default_rng(2)
    lines = ["device,model,batch,predicted,measured"]
    for device in range(5):
        for model in range(3):
            for batch in (1, 8):
                time = (1 + 0.2 * device) * (1 + model) * batch
                error = np.exp(rng.normal(0, 0.1))
                known = f"{time * error:.5f}" if device < measured else ""
                lines.append(f"D{device},m{model},{batch},{time},{known}")
    return "\n".join(lines) + "\n"


_COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": ("audit", "neusight"),
    "audit of two tools": ("audit", "tools.csv", "--by", "mode"),
    "audit of a claim": ("audit", "pairs.csv", "--claim", "<5%"),
    "audit of a correlation": ("audit", "pairs.csv", "--claim", "0.2", "--metric", "correlation"),
    "audit of an MAE": ("audit", "pairs.csv", "--claim", "0.9", "--metric", "MAE"),
    "error-budget": ("measurements", "budget", "pairs.csv"),
    "leakage": ("measurements", "leakage", "pairs.csv", "--training", "trained.csv"),
    "measurements": ("measurements", "check", "repeats.csv", "--measured", "ms", "--by", "device"),
    "propagate": ("propagate", "kernels.csv"),
    "propagate one run": ("propagate", "kernels.csv", "--run", "r3"),
    "propagate given errors": ("propagate", "kernels.csv", "--spread", "10%", "--run", "r3"),
    "validation": ("propagate", "validate", "kernels.csv", "--correlation",
                   "estimated,independent"),
    "calibration": ("calibrate", "evaluate", "kernels.csv", "--unit", "ms", "--estimator",
                    "device", "--split", "leave-device-out,leave-vendor-out"),
    "plausibility": ("calibrate", "check", "kernels.csv", "--unit", "ms"),
    "adaptation": ("calibrate", "adapt", "gpu.errcomp", "device.csv", "--unit", "ms"),
    "plan-runs": ("plan", "runs", "--model", "gpu.errcomp", "--candidates", "device.csv", "--unit",
                  "ms"),
    "plan-claim": ("plan", "claim", "--error", "12%", "--pilot", "pilot.csv"),
    "plan-gate": ("plan", "gate", "--change", "20%", "--noise", "2%", "--count", "20",
                  "--within", "1"),
    "half-life-check": ("halflife", "check", "history.csv", "new.csv", "--by", "op",
                        "--recalibrate"),
    "half-life-dry-run": ("halflife", "check", "history.csv", "--dry-run", "--by", "op"),
    "half-life-blame": ("halflife", "blame", "levels.csv", "--unit", "ms"),
    "half-lives": ("halflife", "fit", "history.csv", "--error", "10%"),
    "half-lives by group": ("halflife", "fit", "history.csv", "--by", "op", "--error", "10%"),
    "half-life-forecast": ("halflife", "forecast", "history.csv", "--by", "op", "--error", "10%"),
    "comparison": ("compare", "choices.csv", "--between", "device"),
    "comparison of measured rows": ("compare", "measured.csv", "--between", "device"),
    "decisions": ("compare", "measured.csv", "--between", "device", "--evaluate"),
    "decision-kinds": ("compare", "measured.csv", "--evaluate"),
    "search": ("claims", "search", "pairs.csv", "--figure", "7.0%"),
    "metrics": ("metrics", "pairs.csv", "--by", "device", "--figures", "mape,pearson,max_ape"),
    "metrics of two tools": ("metrics", "tools.csv", "--tool", "all"),
    "drivers": ("metrics", "drivers", "pairs.csv"),
    "replication": ("replicate", "survey", "--table", "table6_neusight"),
}  # fmt: skip


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the tables that the commands read."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "kernels.csv").write_text(_kernels(), encoding="utf-8")
    _fit(folder)
    (folder / "repeats.csv").write_text(_repeats(), encoding="utf-8")
    (folder / "choices.csv").write_text(_choices(4), encoding="utf-8")
    (folder / "measured.csv").write_text(_choices(5), encoding="utf-8")
    (folder / "paper.csv").write_text("GPU,MAPE (%)\nV100,5.2\nH100,2.3\n", encoding="utf-8")
    (folder / "history.csv").write_text(_validations(0, 9, slow_from=6), encoding="utf-8")
    (folder / "new.csv").write_text(_validations(9, 10, slow_from=0), encoding="utf-8")
    (folder / "levels.csv").write_text(_levels(), encoding="utf-8")
    pairs = "".join(
        f"{device},{mode},{10 + i},{(10 + i) * (0.9 + 0.03 * (i % 7))}\n"
        for i in range(12)
        for device in "AB"
        for mode in ("inference", "training")
    )
    (folder / "pairs.csv").write_text(f"device,mode,measured,predicted\n{pairs}C,training,1,2\n")
    (folder / "trained.csv").write_text("device,mode,measured\nA,training,2\n")
    pilot = "".join(f"m{i % 6},{10 + i},{(10 + i) * (0.9 + 0.03 * (i % 7))}\n" for i in range(24))
    (folder / "pilot.csv").write_text(f"model,measured,predicted\n{pilot}")
    tools = "".join(f"{tool},{line}\n" for tool in ("x", "y") for line in pairs.splitlines())
    (folder / "tools.csv").write_text(f"tool,device,mode,measured,predicted\n{tools}")
    return folder


def _fit(folder: Path) -> None:
    """Fit to the runs of three devices; two runs of the fourth stay apart."""
    head, *rows = _kernels().splitlines()
    new = [row for row in rows if ",D3," in row]
    known = "\n".join([head, *(row for row in rows if row not in new)]) + "\n"
    (folder / "device.csv").write_text("\n".join([head, *new[:6]]) + "\n", encoding="utf-8")
    from errcomp.calibration import Composition, save_model
    from errcomp.readers import kernels

    (folder / "known.csv").write_text(known, encoding="utf-8")
    fitted = Composition(estimators=()).fit(kernels.read(folder / "known.csv", unit="ms"))
    save_model(fitted.model_, folder / "gpu.errcomp", created="2026-01-31")


def _simulate_little(patch: pytest.MonkeyPatch) -> None:
    """Let commands that simulate do so less often: a document says the same, less precisely."""
    fewer(patch)
    patch.setattr("errcomp.halflife.gate.dry_run._MOST_ORDERS", 4)
    patch.setattr("errcomp.halflife.gate.planning._CHANGES", 24)


@pytest.fixture(scope="session")
def written(tables: Path) -> Any:
    """Return the document of a kind; each is written once."""
    folder = tables
    done: dict[str, Written] = {}

    def write(name: str) -> Written:
        if name not in done:
            path = folder / f"{name}.json"
            argv = [
                str(folder / a) if a.endswith((".csv", ".errcomp")) else a for a in _COMMANDS[name]
            ]
            out, err = io.StringIO(), io.StringIO()
            # Of an adaptation -o is the model.
            model = name == "adaptation"
            target = folder / "new.errcomp" if model else path
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                pytest.MonkeyPatch.context() as patch,
            ):
                _simulate_little(patch)
                code = main([*argv, "-o", str(target)])
            assert target.exists(), (code, err.getvalue())
            if model:
                again = io.StringIO()
                with contextlib.redirect_stdout(again), contextlib.redirect_stderr(err):
                    main([*argv, "-o", str(target), "--json"])
                path.write_text(again.getvalue(), encoding="utf-8")
            document = json.loads(path.read_text(encoding="utf-8"))
            done[name] = Written(path, document, out.getvalue().rstrip("\n"))
        return done[name]

    return write


# The drivers leave out the regression where statsmodels is missing.
@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.core] if name == "drivers" else [])
        for name in _COMMANDS
    ]
)
def each(request: pytest.FixtureRequest, written: Any) -> Written:
    """Return the documents of all kinds, one after the other."""
    found: Written = written(request.param)
    return found
