"""Make the archived model files of the schema that is written now.

    python tests/data/modelfile/make.py

Files that are there are never made again: they stand for what users have. The data are simulated
here, from a seed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from errcomp import __version__
from errcomp.calibration.modelfile import (
    SCHEMA,
    FeatureRange,
    Member,
    ModelContent,
    fingerprint,
    read_model,
    write_model,
)
from errcomp.tables import Kernels

FOLDER = Path(__file__).parent / f"v{SCHEMA}"
NAMES = ("launch", "slow", "log_total")
DEVICES, MODELS = ("A100", "V100", "Größe 4"), ("bert", "gpt2")
LEVELS, QUANTILES = (0.5, 0.9), (0.05, 0.25, 0.5, 0.75, 0.95)
N = 48


def simulated():
    """Return features, log-ratios, devices and models of runs."""
    rng = np.random.default_rng(20250131)
    x = np.column_stack([rng.uniform(0, 0.3, N), rng.normal(0, 0.02, N), rng.normal(1, 0.5, N)])
    device = np.array(DEVICES, dtype=object)[np.arange(N) % 3]
    model = np.array(MODELS, dtype=object)[np.arange(N) // 3 % 2]
    effect = np.array([0.05, -0.02, 0.1])[np.arange(N) % 3]
    y = 0.05 - 0.8 * x[:, 0] + x[:, 1] + effect + rng.standard_t(4, N) * 0.02
    return x, y, device, model


def linear(x, y, **known):
    from errcomp.calibration.estimators.linear.baselines import RobustLinear

    return RobustLinear().fit(x, y, **known)


def trees(x, y, **known):
    from errcomp.calibration.estimators.boosted.residual import BoostedResidual

    return BoostedResidual(offset=1, max_rounds=40, seed=1).fit(x, y, **known)


def hierarchical(x, y, **known):
    from errcomp.calibration.estimators.bayesian.residual import BayesianResidual

    short = {"draws": 60, "tune": 300, "chains": 2, "check": "ignore"}
    return BayesianResidual(launch=(0,), offset=1, seed=1, n_jobs=1, **short).fit(x, y, **known)


def physics(x, y, **known):
    from errcomp.calibration.estimators.physics.residual import PhysicsResidual

    return PhysicsResidual(launch=(0,), host=(2,), offset=1).fit(x, y, **known)


#: One model of each kind, no larger than it has to be.
FITS = (linear, trees, hierarchical, physics)


def content_with(member: Member) -> ModelContent:
    x, _, device, model = simulated()
    table = {"run": [f"r{i}" for i in range(N)], "kernel": ["all"] * N, "measured": x[:, 2] + 9}
    kernels = Kernels({**table, "device": device.tolist(), "model": model.tolist()}, unit="ms")
    ranges = zip(NAMES, ("1", "ln", "log10 ms"), x.min(axis=0), x.max(axis=0), strict=True)
    return ModelContent(
        task="composition",
        unit="ms",
        features=(*(FeatureRange(*r) for r in ranges), FeatureRange("unknown", "GB", None, None)),
        devices=DEVICES,
        models=MODELS,
        modes=("inference",),
        levels=LEVELS,
        members=(member,),
        fingerprint=fingerprint(kernels),
        versions={"errcomp": __version__, "numpy": np.__version__},
        created="2025-01-31",
        conformal=({"by": "device", "scores": [0.5, 1.0, 1.5]},),
        extra={"kernels": {"GEMM": 1.07, "größe": [1, None, True]}},
    )


def expected_of(path: Path) -> dict[str, object]:
    """Say what is in the file, and what it predicts on known and new devices."""
    content = read_model(path)
    (member,) = content.members
    x = simulated()[0][:4] + 0.01
    device = [*DEVICES, "H100"]
    found = member.restore().predict_quantiles(x, QUANTILES, device=np.array(device, dtype=object))
    plain = ("task", "unit", "devices", "models", "modes", "levels", "fingerprint", "versions")
    return {
        **{name: getattr(content, name) for name in (*plain, "created", "conformal", "extra")},
        "features": [[f.name, f.unit, f.low, f.high] for f in content.features],
        "name": member.name,
        "kind": member.kind,
        "meta": member.meta,
        "non_finite": member.non_finite,
        "arrays": {
            name: [str(a.dtype), list(a.shape), hashlib.sha256(a.tobytes()).hexdigest()]
            for name, a in sorted(member.arrays.items())
        },
        "x": x.tolist(),
        "device": device,
        "q": QUANTILES,
        "quantiles": found.tolist(),
    }


def table(seed: int, devices: tuple[str, ...]) -> dict[str, list[object]]:
    """Return kernels of six runs on each device: three kernels each, all but one predicted well."""
    rng = np.random.default_rng(seed)
    rows = []
    for device in devices:
        for model in (*MODELS, "opt"):
            for batch in (1, 4):
                work = batch * rng.uniform(0.05, 0.2, 3)
                end = 24 * float(work.sum()) * (1.05 if device == "V100" else 1.0)
                for i, name in enumerate(("Linear", "Softmax", "Gelu")):
                    took = float(work[i]) + 0.008
                    said = took * (0.8, 1.1, 1.0)[i] * float(np.exp(rng.normal(0, 0.02)))
                    run = f"{device}/{model}/{batch}"
                    rows.append((run, device, model, "inference", name, 24, said, took, end))
    names = ("run", "device", "model", "mode", "kernel_class", "count", "predicted", "measured")
    return dict(zip((*names, "run_measured"), map(list, zip(*rows, strict=True)), strict=True))


def whole(path: Path, *, adapted: bool = False) -> None:
    """Write a whole model of a prediction, and what it says of new runs."""
    from errcomp.calibration.composition import Composition
    from errcomp.calibration.storing import load_model, save_model

    fitted = Composition(task="prediction", estimators=("device",))
    fitted.fit(Kernels(table(1, DEVICES), unit="ms"))
    model = fitted.model_
    if adapted:
        few = Kernels(table(3, ("H100",)), unit="ms")
        model = model.adapt(few.take(np.isin(few.run.astype(str), ["H100/bert/1", "H100/opt/4"])))
    save_model(model, path, created="2025-01-31")
    columns = table(2, ("V100", "H100"))
    new = {name: columns[name] for name in columns if name not in ("measured", "run_measured")}
    rows = load_model(path).predict(Kernels(new, unit="ms")).rows()
    kinds = sorted({member.kind for member in read_model(path).members})
    text = json.dumps({"kinds": kinds, "kernels": new, "rows": rows}, indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    if not (FOLDER / "whole.errcomp").exists():
        whole(FOLDER / "whole.errcomp")
    if not (FOLDER / "adapted.errcomp").exists():
        whole(FOLDER / "adapted.errcomp", adapted=True)
    x, y, device, model = simulated()
    for fit in FITS:
        path = FOLDER / f"{fit.__name__}.errcomp"
        if path.exists():
            print(f"{path.name} is there and stays as it is")
            continue
        fitted = fit(x, y, device=device, model=model).portable_
        write_model(path, content_with(Member.of(fit.__name__, fitted)))
        text = json.dumps(expected_of(path), indent=1, ensure_ascii=False)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
