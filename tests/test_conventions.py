"""Names of parameters, results and examples in the whole public API: docs/api-conventions.md."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import errcomp
from errcomp.errors import InputError, renamed
from errcomp.metrics import mape
from errcomp.readers.joining import join
from errcomp.report.html import svg
from errcomp.report.writing import flat_columns

# Signatures of estimators can only be read where their packages are installed.
pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    {
        name
        for page in (ROOT / "docs/reference/api").glob("*.rst")
        for name in re.findall(r"\.\. public:: (\S+)", page.read_text(encoding="utf-8"))
    }
)
#: Name that other projects, or this one before, use → name here.
OTHER_NAMES = {
    "confidence": "level",
    "confidence_level": "level",
    "coverage_level": "level",
    "rng": "seed",
    "random_state": "seed",
    "generator": "seed",
    "cores": "n_jobs",
    "workers": "n_jobs",
    "processes": "n_jobs",
    "observed": "measured",
    "actual": "measured",
    "y_true": "measured",
    "y_pred": "predicted",
    "groupby": "by",
    "n_boot": "resamples",
    "n_resamples": "resamples",
    "n_draws": "draws",
    "assume": "correlation",
    "filename": "path",
    "file_name": "path",
}


def functions_of(module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield public functions and methods, and how users make classes that are no results."""
    imported = importlib.import_module(module)
    for name in imported.__all__:
        value = getattr(imported, name)
        if inspect.isfunction(value):
            yield f"{module}.{name}", value
        if not inspect.isclass(value) or not value.__module__.startswith("errcomp"):
            continue
        if "__init__" in vars(value) and not is_dataclass(value):
            yield f"{module}.{name}", value.__init__
        yield from ((f"{module}.{name}.{key}", method) for key, method in methods_of(value))


def methods_of(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods of a class that errcomp defines, without properties."""
    for key in dir(cls):
        member = inspect.getattr_static(cls, key)
        member = getattr(member, "__func__", member)
        if (
            not key.startswith("_")
            and inspect.isfunction(member)
            and (member.__module__ or "").startswith("errcomp")
        ):
            yield key, member


FUNCTIONS = {name: function for module in MODULES for name, function in functions_of(module)}
PARAMETERS = [
    (name, parameter)
    for name, function in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters.values()
]


def test_there_are_signatures_to_look_at() -> None:
    assert len(MODULES) > 50
    assert len(FUNCTIONS) > 400


def test_one_name_for_each_meaning() -> None:
    wrong = {
        f"{name}({parameter.name}): {OTHER_NAMES[parameter.name]}"
        for name, parameter in PARAMETERS
        if parameter.name in OTHER_NAMES
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("name", "annotation", "default"),
    [
        ("seed", r"int( \| Sequence\[int\])?", 0),
        ("n_jobs", r"int \| None", (None, 2)),
        ("alpha", r"float", 0.05),
        ("resamples", r"int", 9999),
        ("progress", r".* \| None", None),
        ("level", r"float( \| (None|Sequence\[float\]))?|Layer", (0.95, 0.9)),
        ("levels", r"Sequence\[float\]|tuple\[float, \.\.\.\]", None),
        ("by", r"str( \| Sequence\[str\])?|Sequence\[str\]|Literal.*", None),
        ("clusters", r"(?!.*str).*", None),
    ],
)
def test_a_name_has_one_type_and_one_default(name: str, annotation: str, default: Any) -> None:
    defaults = default if isinstance(default, tuple) else (default,)
    asked = [(where, p) for where, p in PARAMETERS if p.name == name]
    assert asked
    wrong = [
        f"{where}({p})"
        for where, p in asked
        if not re.fullmatch(annotation, str(p.annotation))
        or (p.default is not p.empty and defaults != (None,) and p.default not in defaults)
    ]
    assert wrong == []


def test_no_groups_is_written_in_one_way() -> None:
    assert [where for where, p in PARAMETERS if p.name == "by" and p.default is None] == []


@pytest.mark.parametrize("name", ["predicted", "measured"])
def test_predicted_and_measured_are_given_by_name(name: str) -> None:
    both = {where for where, p in PARAMETERS if p.name == "predicted"}
    wrong = [
        where
        for where, p in PARAMETERS
        if p.name == name and where in both and p.kind is not p.KEYWORD_ONLY
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "name", [n for n in errcomp.__all__ if inspect.isfunction(getattr(errcomp, n))]
)
def test_options_are_given_by_name(name: str) -> None:
    parameters = inspect.signature(getattr(errcomp, name)).parameters.values()
    options = {p.name for p in parameters if p.default is not p.empty}
    assert {p.name for p in parameters if p.kind is p.KEYWORD_ONLY} == options


def test_the_page_names_each_name_that_is_held_here() -> None:
    page = (ROOT / "docs/api-conventions.md").read_text(encoding="utf-8")
    assert {name for name in OTHER_NAMES.values() if f"`{name}`" not in page} == {"correlation"}


def test_names_of_before_warn() -> None:
    @renamed(cores="n_jobs")
    def fit(*, n_jobs: int = 1) -> int:
        return n_jobs

    with pytest.warns(DeprecationWarning, match="fit: the parameter cores is now n_jobs"):
        assert fit(cores=3) == 3  # type: ignore[call-arg]
    with warnings.catch_warnings(action="error"):
        assert fit(n_jobs=2) == 2
    with pytest.raises(TypeError, match="cores is the old name of n_jobs"):
        fit(cores=3, n_jobs=2)  # type: ignore[call-arg]
    assert "cores" not in inspect.signature(join).parameters


#: Parameters that have another name today, and the modules where they are.
OLD_NAMES = {
    "errcomp.calibration.Composition.__init__": {"cores": "n_jobs"},
    "errcomp.calibration.evaluation.composed.evaluate_composition": {"cores": "n_jobs"},
    "errcomp.calibration.evaluation.scoring.crps_from_quantiles": {"observed": "measured"},
    "errcomp.calibration.evaluation.scoring.pinball": {"observed": "measured"},
    "errcomp.calibration.evaluation.scoring.pit_from_quantiles": {"observed": "measured"},
    "errcomp.calibration.view.parameters.posterior": {"observed": "measured"},
    "errcomp.halflife.view.figures.draw": {"found": "half_lives"},
    "errcomp.halflife.view.figures.draw_releases_heat": {"found": "half_lives"},
    "errcomp.metrics.bands.coverage_interval": {"cluster": "clusters", "confidence": "level"},
    "errcomp.metrics.bands.interval_score": {"observed": "measured"},
    "errcomp.propagation.errors.components.estimate_components": {"confidence": "level"},
    "errcomp.propagation.errors.fitting.fit_errors": {"confidence": "level"},
    "errcomp.propagation.errors.tails.Tails.quantile": {"level": "q"},
    "errcomp.propagation.errors.tails.observe": {"cluster": "clusters"},
    "errcomp.propagation.errors.tails.variance_df": {"cluster": "clusters"},
    "errcomp.propagation.sums.laws.Moments.quantile": {"level": "q"},
    "errcomp.propagation.validation.validate": {"assume": "correlation"},
    "errcomp.readers.joining.join": {"by": "match"},
}


@pytest.mark.parametrize("name", OLD_NAMES)
def test_a_parameter_is_known_by_its_old_name(name: str) -> None:
    words = name.split(".")
    at = next(i for i, word in enumerate(words) if word[0].isupper() or i == len(words) - 1)
    function: Any = importlib.import_module(".".join(words[:at]))
    for word in words[at:]:
        function = getattr(function, word)
    known = inspect.signature(function).parameters
    for old, today in OLD_NAMES[name].items():
        assert old not in known
        assert today in known
        with pytest.raises(TypeError, match=f"{old} is the old name of {today}"):
            function(**{old: 1, today: 1})


DOCUMENTS = sorted((ROOT / "tests/data/documents-v1").glob("*.json"))


@pytest.mark.extras
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_result_shows_and_writes_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Figures are made, but not written as SVG: that of each result is compared with an image.
    monkeypatch.setattr(svg, "_svg", lambda figure: ET.Element("svg"))
    result: Any = errcomp.read_result(path)
    line = repr(result)
    assert "\n" not in line
    assert line.startswith(type(result).__name__.removeprefix("_") + "(")
    assert len(line) < 120
    assert str(result).count("\n") > 2
    assert json.loads(result.to_json()) == result.to_dict()
    frame = result.to_frame()
    assert frame.height > 0
    assert frame.columns == list(flat_columns(result.rows_document()))
    assert result._repr_html_().startswith("<")


@pytest.mark.extras
def test_a_result_that_cannot_draw_itself_says_what_can() -> None:
    axes = pytest.importorskip("matplotlib.axes")
    stored: Any = errcomp.read_result(DOCUMENTS[0].parent / "half-lives-by-group.json")
    with pytest.raises(InputError, match="does not hold the errors of single series.* Draw it"):
        stored.plot()
    found = errcomp.half_life(errcomp.datasets.load("ort-releases").where({"level": ["run"]}))
    assert isinstance(found.plot(), axes.Axes)


@pytest.mark.parametrize("name", ["neusight", "neusight-kernels", "ort-releases"])
def test_every_table_shows_and_returns_its_frame(name: str) -> None:
    table = errcomp.datasets.load(name)
    assert re.fullmatch(r"(Pairs|Kernels|History)\(.*\)", repr(table))
    assert table.to_frame().height == len(table)


def test_a_composition_shows_its_parameters_and_writes_its_fit() -> None:
    model = errcomp.Composition(estimators=("device",), seed=3)
    assert repr(model) == "Composition(estimators=('device',), seed=3)"
    kernels = errcomp.datasets.load("ort-cpu").where({"model": ["conv", "gemm", "mlp"]})
    model.fit(kernels)
    assert re.fullmatch(r"CompositionModel\(linear, \d+ runs\)", repr(model.model_))
    assert json.loads(model.to_json())["schema"] == "errcomp.model/1"
    assert model.to_frame()["estimator"].unique().sort().to_list() == [
        *("device", "global", "linear", "sum")
    ]
    predictions = model.predict(kernels)
    assert re.fullmatch(r"Predictions\(linear, n=\d+ runs\)", repr(predictions))
    assert predictions.to_frame().height == len(predictions)
    assert json.loads(predictions.to_json())["rows"][0]["run"] == predictions.run[0]
    measured = kernels.totals().run_measured
    assert model.score(kernels) == -mape(predicted=predictions.predicted, measured=measured)


#: How a class is written as JSON and read: used by `errcomp.codec`, which is internal.
OF_CODEC = {"from_field", "json_schema", "keys"}


def has_example(thing: Any, known: dict[str, set[str]]) -> bool:
    """Return whether pytest finds a doctest in the docstring, and does not skip it."""
    module = thing.__module__
    if not module.startswith("errcomp"):
        return False
    if module not in known:
        tests = doctest.DocTestFinder().find(sys.modules[module])
        known[module] = {
            test.name
            for test in tests
            if any(not example.options.get(doctest.SKIP) for example in test.examples)
        }
    return f"{module}.{thing.__qualname__}" in known[module]


def names_in(annotation: object) -> set[str]:
    return set(re.findall(r"\w+", str(annotation)))


def test_every_public_function_and_method_has_an_example() -> None:
    """For a method that overrides another, an example of the base class is enough."""
    missing: list[str] = []
    known: dict[str, set[str]] = {}
    for name, function in FUNCTIONS.items():
        module, _, key = name.rpartition(".")
        if key in OF_CODEC or inspect.isclass(getattr(sys.modules.get(module), key, None)):
            continue
        package, _, cls = module.rpartition(".")
        owner = getattr(sys.modules.get(package), cls, None)
        bases = owner.__mro__ if inspect.isclass(owner) else ()
        same = [vars(base)[key] for base in bases if key in vars(base)] or [function]
        if not any(has_example(getattr(one, "__func__", one), known) for one in same):
            missing.append(name)
    assert missing == []


def test_every_public_class_has_an_example() -> None:
    """In its docstring or methods, or in a function that returns it or an object that holds it."""
    known: dict[str, set[str]] = {}
    classes: dict[str, type] = {}
    for module in map(importlib.import_module, MODULES):
        values = {name: getattr(module, name) for name in module.__all__}
        classes |= {
            name: value
            for name, value in values.items()
            if inspect.isclass(value)
            and value.__module__.startswith("errcomp")
            and not issubclass(value, Exception)
        }
    returned = {
        name
        for function in FUNCTIONS.values()
        if has_example(function, known)
        for name in names_in(inspect.signature(function).return_annotation)
    }
    shown = {
        name
        for name, cls in classes.items()
        if name in returned
        or has_example(cls, known)
        or any(
            has_example(method, known)
            for _, method in methods_of(cls)
            if method.__qualname__.startswith(f"{cls.__name__}.")
        )
    }
    before = -1
    while len(shown) > before:  # also the classes of attributes
        before = len(shown)
        for cls in [classes[name] for name in shown]:
            fields = [
                a for base in cls.__mro__ for a in vars(base).get("__annotations__", {}).values()
            ]
            getters = [
                p.fget for _, p in inspect.getmembers(cls, lambda x: isinstance(x, property))
            ]
            fields += [inspect.signature(get).return_annotation for get in getters if get]
            shown |= set().union(*map(names_in, fields)) & set(classes)
    assert sorted(set(classes) - shown) == []
