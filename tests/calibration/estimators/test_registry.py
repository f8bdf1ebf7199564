"""An estimator is one file that declares itself; names of estimators, and what each sees."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errcomp.calibration import (
    Composition,
    estimators,
    evaluate_composition,
    load_model,
    save_model,
)
from errcomp.calibration.estimators import (
    check_estimators,
    columns_of,
    default_estimators,
    fit_member,
    fitted_for,
    needs_of,
    seen_by,
)
from errcomp.calibration.features import FEATURE_NAMES, PHYSICAL
from errcomp.calibration.modelfile import KINDS, portable
from errcomp.errors import InputError
from errcomp.readers import kernels

#: All that somebody writes to add an estimator: one file in errcomp/calibration/estimators.
FILE = '''
"""``middle``: the mean log-ratio of the fit, with a normal band."""

from __future__ import annotations

from errcomp.calibration.estimators import Estimator


class Constant:
    KIND = "constant"

    def __init__(self, mean, spread):
        self.mean, self.spread = mean, spread

    def predict_quantiles(self, x, q, *, device=None):
        import numpy as np
        from scipy.special import ndtri

        return np.tile(self.mean + self.spread * ndtri(np.asarray(q)), (len(x), 1))

    def to_arrays(self):
        return {"mean": self.mean, "spread": self.spread}, {}

    @classmethod
    def from_arrays(cls, meta, arrays):
        return cls(meta["mean"], meta["spread"])


class Middle:
    def fit(self, X, y, *, device=None, model=None):
        self.portable_ = Constant(float(y.mean()), float(y.std()))
        return self


def _make(task, *, seed, n_jobs, quick):
    return Middle()


ESTIMATORS = (
    Estimator(
        "middle",
        _make,
        aliases=("mean",),
        by_default=True,
        needs=(("middling", "middle"),),
        extra="middle",
        features=lambda task: ("total_ms",),
        looks=False,
        stored=("constant", __name__, "Constant"),
    ),
)
'''
COLUMNS = ("run", "device", "model", "mode", "kernel", "kernel_class")
#: As few devices and models as calibrate all bands.
FEW = (("A100", "L4", "V100"), ("bert", "gpt2", "opt"))
#: Fewer, where bands are not looked at.
FEWER = (("A100", "L4"), ("bert", "gpt2"))


def _forget(name: str) -> None:
    estimators.estimators.cache_clear()
    sys.modules.pop(f"{estimators.__name__}.{name}", None)
    vars(estimators).pop(name, None)


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Put a file into the folder of estimators."""
    folder = tmp_path / "estimators"
    folder.mkdir()
    monkeypatch.setattr(estimators, "__path__", [*estimators.__path__, str(folder)])

    def write(text: str = FILE) -> None:
        (folder / "middle.py").write_text(text, encoding="utf-8")
        _forget("middle")

    yield write
    monkeypatch.undo()
    _forget("middle")


@pytest.fixture
def kernels_csv(runs_of: Any, tmp_path: Path) -> Path:
    import polars as pl

    table = runs_of(*FEWER)
    given = {name: table.column(name) for name in COLUMNS}
    given |= {name: getattr(table, name) for name in ("count", "predicted", "measured")}
    path = tmp_path / "kernels.csv"
    end = np.repeat(table.totals().run_measured, 4)
    pl.DataFrame({**given, "run_measured": end, "unit": "ms"}, strict=False).write_csv(path)
    return path


def test_one_file_is_fitted_predicts_and_is_judged(add: Callable[..., None], runs_of: Any) -> None:
    add()
    assert check_estimators(["stack", "mean", "sum"]) == ("sum", "middle", "stack")
    assert default_estimators() == ("bayesian", "boosted", "middle", "stack")
    table = runs_of(*FEW)
    fitted = Composition(estimators=("mean",)).fit(table)
    assert fitted.model_.estimators == ("sum", "global", "device", "linear", "middle")
    found = fitted.predict(table)
    assert found.estimator == "middle"
    ratio = np.log(table.totals().run_measured / table.totals().measured)
    assert np.log(found.predicted / found.total) == pytest.approx(np.full(18, ratio.mean()))
    assert (found.low[:, 2] < found.predicted).all()
    assert found.calibrated.all()
    judged = evaluate_composition(table, estimators=("middle",), splits=["leave-device-out"])
    row = judged.row("leave-device-out", "middle")
    assert (row.n, row.refused, len(row.groups)) == (18, 0, 3)
    assert [difference.against for difference in row.against] == [
        "sum",
        "global",
        "device",
        "linear",
    ]


def test_one_file_is_kept_in_model_files(
    add: Callable[..., None], runs_of: Any, tmp_path: Path
) -> None:
    add()
    table, path = runs_of(*FEWER), tmp_path / "middle.errcomp"
    model = Composition(estimators=("middle",)).fit(table).model_
    save_model(model, path, created="2030-01-31")
    again = load_model(path)
    assert again.estimators[-1] == "middle"
    assert again.members["middle"].to_arrays() == model.members["middle"].to_arrays()
    assert again.predict(table).rows() == model.predict(table).rows()
    # Where the file is not there, its model files are refused.
    add("")
    with pytest.raises(InputError, match="unknown kind of model: 'constant'"):
        load_model(path)


def test_one_file_is_offered_by_the_command(
    add: Callable[..., None],
    run: Callable[..., Any],
    kernels_csv: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "middle" not in run("calibrate", "fit", "--help").out
    add()
    for action in ("fit", "evaluate"):
        said = " ".join(run("calibrate", action, "--help").out.split())
        assert "middle needs the extra errcomp[middle];" in said
        assert "Default: bayesian,boosted,middle,stack" in said
    model = tmp_path / "middle.errcomp"
    argv = ("calibrate", "fit", kernels_csv, "--estimator", "mean", "-o", model)
    lacking = run(*argv)
    assert lacking.code == 2
    assert "fitting the estimator middle needs middling" in lacking.err
    monkeypatch.setattr("errcomp.cli.commands.calibrate.find_spec", lambda name: "there")
    assert run(*argv, "--json").json["estimators"][-1] == "middle"
    shown = run("predict", kernels_csv, "--model", model, "--estimator", "middle", "--json").json
    known = load_model(model).predict(kernels.read(kernels_csv))
    assert [row["predicted"] for row in shown["rows"]] == known.predicted.tolist()


def test_what_declares_itself_stacked_is_weighed(add: Callable[..., None]) -> None:
    assert fitted_for(["sum", "stack"]) == ["sum", "bayesian", "boosted", "physics"]
    add(FILE.replace("by_default=True", "stacked=True"))
    assert set(fitted_for(["stack"])) == {"bayesian", "boosted", "physics", "middle"}
    assert ("middle", "middling", "middle") in needs_of(["stack"])
    assert default_estimators() == ("bayesian", "boosted", "stack")


def test_two_of_one_name_are_refused(add: Callable[..., None]) -> None:
    add(FILE.replace('"mean"', '"stack"'))
    with pytest.raises(InputError, match="two estimators are named 'stack'"):
        estimators.estimators()


def test_what_no_model_file_holds_is_not_saved(
    add: Callable[..., None], runs_of: Any, tmp_path: Path
) -> None:
    add(FILE.replace('stored=("constant", __name__, "Constant")', "stored=None"))
    model = Composition(estimators=("middle",)).fit(runs_of(*FEWER)).model_
    with pytest.raises(InputError, match="a model file cannot hold the estimator middle"):
        save_model(model, tmp_path / "middle.errcomp", created="2030-01-31")
    assert not list(tmp_path.glob("*.errcomp"))


@pytest.mark.core
def test_names_are_known_without_the_libraries_of_a_fit() -> None:
    heavy = {"numpy", "scipy", "polars", "sklearn", "xgboost", "pymc", "nutpie", "arviz"}
    code = (
        "import sys; from errcomp.calibration.estimators import estimators; print(*estimators(), "
        f"{heavy!r} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "sum global device linear bayesian boosted physics stack set()"


def test_each_kind_of_a_model_file_is_that_of_its_class() -> None:
    for one in estimators.estimators().values():
        assert one.stored is None or one.stored[0] == portable(one.stored[0]).KIND
    assert {"kernel-correction", "training"} < set(KINDS)


def test_estimators_come_in_order_each_once() -> None:
    assert check_estimators(["stack", "sum", "stack"]) == ("sum", "stack")
    assert check_estimators([*estimators.estimators()]) == tuple(estimators.estimators())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["oracle"], "unknown estimator 'oracle'. Estimators: sum, global"),
        (["a", "sum", "b"], "unknown estimators 'a', 'b'. Estimators"),
        ([], "no estimator is named"),
    ],
)
def test_unknown_estimators_are_named(names: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        check_estimators(names)


def test_what_estimators_see() -> None:
    usual = len(FEATURE_NAMES) - len(PHYSICAL)
    assert columns_of("boosted", "prediction") == tuple(range(usual))
    assert {*range(usual, len(FEATURE_NAMES))} < {*columns_of("physics", "prediction")}
    assert [FEATURE_NAMES[i] for i in columns_of("bayesian", "composition")][:5] == [
        "launch_idle",
        "launch_work",
        "launch_work_training",
        "run_start",
        "slow_kernels",
    ]
    assert seen_by("device", "prediction") == ()
    assert seen_by("linear", "prediction") == columns_of("linear", "prediction")
    assert seen_by("stack", "prediction") == seen_by("boosted", "prediction")


@pytest.mark.parametrize("name", ["sum", "global", "device", "linear"])
def test_baselines_are_fitted(runs_of: Any, name: str) -> None:
    from errcomp.calibration.features import design

    found = design(runs_of(), task="composition")
    model = fit_member(name, found, seed=0, n_jobs=1)
    x = found.x[:, columns_of(name, "composition")]
    said = model.predict(x, device=found.device)
    assert said.shape == (40,)
    assert (said == 0).all() == (name == "sum")


def test_models_that_say_names_get_a_dataframe(
    runs_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from errcomp.calibration.features import design

    found = design(runs_of(("L4",), ("bert", "opt")), task="composition")
    got: list[Any] = []

    class Asked:
        def fit(self, *given: Any, **known: Any) -> str:
            got.append((given, known))
            return "fitted"

    def make(task: str, **options: Any) -> Asked:
        got.append((task, options))
        return Asked()

    known = estimators.estimators()
    for name, named in (("bayesian", True), ("boosted", False)):
        monkeypatch.setitem(known, name, replace(known[name], make=make))
        assert fit_member(name, found, seed=4, n_jobs=2, quick=True) == "fitted"
        asked, ((x, y), groups) = got[-2:]
        assert asked == ("composition", {"seed": 4, "n_jobs": 2, "quick": True})
        assert np.array_equal(y, found.log_ratio)
        assert (groups["device"] is found.device, groups["model"] is found.model) == (True, True)
        columns = columns_of(name, "composition")
        if named:
            assert x.columns == [FEATURE_NAMES[column] for column in columns]
            x = x.to_numpy()
        assert np.array_equal(x, found.x[:, columns], equal_nan=True)


@pytest.mark.extras
def test_models_are_made_for_a_task() -> None:
    """The offset of composed kernels is launches; predicted kernels may lack their costs."""
    pytest.importorskip("sklearn")
    from errcomp.calibration.estimators.bayesian.residual import BayesianResidual
    from errcomp.calibration.estimators.boosted.residual import BoostedResidual

    def made(name: str, task: str, *, quick: bool = False) -> dict[str, Any]:
        make = estimators.estimators()[name].make
        assert make is not None
        return vars(make(task, seed=7, n_jobs=3, quick=quick))

    plain = {
        **{"launch": (), "offset": None, "varying": (), "draws": 2000, "tune": 1000, "chains": 4},
        **{"n_jobs": 2, "target_accept": 0.95, "seed": 0, "check": "raise"},
    }
    assert vars(BayesianResidual()) == plain
    own = {**plain, "launch": (0, 1, 2, 3), "seed": 7, "n_jobs": 3}
    assert made("bayesian", "prediction") == own
    assert made("bayesian", "composition") == {**own, "offset": 4}
    assert made("bayesian", "prediction", quick=True) == {
        **own,
        **{"draws": 300, "tune": 400, "chains": 2, "target_accept": 0.9, "check": "ignore"},
    }
    trees = {
        **{"offset": None, "monotone": None, "max_rounds": 120, "max_depth": 2},
        **{"learning_rate": 0.05, "min_child_weight": 3.0, "subsample": 0.7},
        **{"seed": 0, "n_jobs": None},
    }
    assert vars(BoostedResidual()) == trees
    assert made("boosted", "prediction") == {**trees, "seed": 7}
    hidden = FEATURE_NAMES.index("hidden_launches")
    assert columns_of("boosted", "composition")[hidden] == hidden
    assert made("boosted", "composition", quick=True) == {**trees, "seed": 7, "offset": hidden}
