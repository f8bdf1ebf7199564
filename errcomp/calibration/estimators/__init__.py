"""Estimators of the composition. Each is one file, or one folder, here that declares itself.

A module here with a tuple ``ESTIMATORS`` adds them to `Composition`, its evaluation, model files
and ``errcomp calibrate``. It is imported to print a help text, so its head imports neither NumPy
nor the libraries of a fit: functions import them, or other modules of its folder. Parts that
several estimators share are in ``shared/``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

from errcomp.errors import InputError, offer

if TYPE_CHECKING:
    from errcomp.calibration.design import Design, ResidualModel, Task

__all__ = [
    "BASELINES",
    "STACK",
    "WITHOUT_EXTRA",
    "Estimator",
    "check_estimators",
    "columns_of",
    "default_estimators",
    "estimators",
    "fit_member",
    "fitted_for",
    "needs_of",
    "stacked",
]

#: A baseline is to be beaten, a model is fitted to beat it, a combination weighs models.
Role = Literal["baseline", "model", "combination"]


@dataclass(frozen=True, slots=True)
class Estimator:
    """One estimator of the composition, as its file declares it.

    Attributes
    ----------
    name : str
        Short and unique; used on the command line, in results and in model files.
    make : callable or None
        ``make(task, seed=, n_jobs=, quick=)`` returns the `ResidualModel` to fit; `quick`: inside a
        cross-validation, with little work. None for a combination of fitted models.
    aliases : tuple of str
        Other names for it.
    role : {"model", "baseline", "combination"}
        Baselines are always fitted. By default the last estimator of a model predicts: baselines
        come first, combinations last.
    by_default : bool
        Whether it is fitted if no estimators are named.
    stacked : bool
        Whether ``stack`` weighs it.
    needs : tuple of (str, str)
        Packages that fitting imports, each with the extra that installs it.
    extra : str
        The extra that installs all of them.
    recorded : tuple of str
        Libraries whose versions a model file records.
    features : callable or None
        ``features(task)`` names its features, in their order; None: the usual ones, which model
        files of all versions have.
    looks : bool
        Whether its predictions depend on features.
    named : bool
        Whether it gets the names of the features, as a dataframe.
    explains : bool
        Whether its ``portable_`` has ``parts``, which split a prediction by cause.
    stored : (str, str, str) or None
        Kind of its ``portable_`` in a model file, and module and name of the class that writes it
        (``to_arrays``) and reads it (``from_arrays``). None: it cannot be stored.

    Examples
    --------
    >>> linear = estimators()["linear"]
    >>> linear.role, linear.needs
    ('baseline', ())
    """

    name: str
    make: Callable[..., ResidualModel] | None
    aliases: tuple[str, ...] = ()
    role: Role = "model"
    by_default: bool = False
    stacked: bool = False
    needs: tuple[tuple[str, str], ...] = ()
    extra: str = ""
    recorded: tuple[str, ...] = ()
    features: Callable[[Task], Sequence[str]] | None = None
    looks: bool = True
    named: bool = False
    explains: bool = False
    stored: tuple[str, str, str] | None = None


#: Weighs all estimators that are `stacked`; see `errcomp.calibration.evaluation.scoring`.
STACK = Estimator("stack", None, role="combination", by_default=True, extra="calibration")


@cache
def estimators() -> dict[str, Estimator]:
    """Return all estimators by name: baselines, models, combinations.

    Raises
    ------
    InputError
        Two of them have the same name.
    """
    declared: list[Estimator] = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        declared += getattr(import_module(f"{__name__}.{module}"), "ESTIMATORS", ())
    declared.append(STACK)
    names = [name for estimator in declared for name in (estimator.name, *estimator.aliases)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"two estimators are named {twice[0]!r}. Rename one of them.")
    roles = get_args(Role)
    declared.sort(key=lambda estimator: roles.index(estimator.role))
    return {estimator.name: estimator for estimator in declared}


#: Fitted by the commands where no estimator is named and a package of the default is missing.
WITHOUT_EXTRA = ("physics",)


def default_estimators() -> tuple[str, ...]:
    """Return the estimators fitted by default, in addition to the baselines.

    Examples
    --------
    >>> default_estimators()
    ('bayesian', 'boosted', 'stack')
    """
    return tuple(name for name, estimator in estimators().items() if estimator.by_default)


def stacked() -> tuple[str, ...]:
    """Return the estimators that ``stack`` weighs.

    Examples
    --------
    >>> stacked()
    ('bayesian', 'boosted', 'physics')
    """
    return tuple(name for name, estimator in estimators().items() if estimator.stacked)


def check_estimators(names: Sequence[str]) -> tuple[str, ...]:
    """Return the estimators in order, without repeats and aliases.

    Raises
    ------
    InputError
        An unknown name; the message lists the known ones.

    Examples
    --------
    >>> check_estimators(["linear", "sum", "linear"])
    ('sum', 'linear')
    """
    known = estimators()
    own = {alias: name for name, estimator in known.items() for alias in (name, *estimator.aliases)}
    unknown = [name for name in names if name not in own]
    if unknown or not names:
        named = (
            f"unknown estimator{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))}"
        )
        raise InputError(
            f"{named if unknown else 'no estimator is named'}. "
            f"{offer('Estimators', tuple(known), wanted=''.join(unknown[:1]))}."
        )
    wanted = {own[name] for name in names}
    return tuple(name for name in known if name in wanted)


def fitted_for(names: Sequence[str]) -> list[str]:
    """Return the models to fit for these; for ``stack`` those that it weighs.

    Examples
    --------
    >>> fitted_for(["sum", "stack"])
    ['sum', 'bayesian', 'boosted', 'physics']
    """
    made_of = stacked() if STACK.name in names else ()
    return [*dict.fromkeys([*(name for name in names if name != STACK.name), *made_of])]


def needs_of(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the packages that fitting needs: estimator, package and its extra.

    Examples
    --------
    >>> needs_of(["linear"]), needs_of(["boosted"])[0]
    ([], ('boosted', 'xgboost', 'boost'))
    """
    return [(name, *need) for name in fitted_for(names) for need in estimators()[name].needs]


def columns_of(name: str, task: Task) -> tuple[int, ...]:
    """Return the columns of the design that an estimator gets.

    Examples
    --------
    >>> columns_of("linear", "composition") == tuple(sorted(columns_of("linear", "composition")))
    True
    """
    from errcomp.calibration.features import FEATURE_NAMES, USUAL

    chosen = estimators()[name].features
    return tuple(map(FEATURE_NAMES.index, USUAL if chosen is None else chosen(task)))


def seen_by(name: str, task: Task) -> tuple[int, ...]:
    """Return the columns of the design on which its predictions depend."""
    return columns_of(name, task) if estimators()[name].looks else ()


def fit_member(
    name: str, design: Design, *, seed: int, n_jobs: int | None, quick: bool = False
) -> ResidualModel:
    """Fit one estimator, not a combination, to a design.

    Parameters
    ----------
    quick : bool
        For a cross-validation inside a fit: fewer draws, poor diagnostics allowed.

    Examples
    --------
    >>> from errcomp.calibration.features import design
    >>> from errcomp.tables import Kernels
    >>> runs = Kernels({"run": list("abc"), "kernel": ["gemm"] * 3, "measured": [1.0, 2.0, 3.0],
    ...                 "run_measured": [1.1, 2.2, 3.3]}, unit="ms")
    >>> model = fit_member("global", design(runs, task="composition"), seed=0, n_jobs=None)
    >>> round(model.portable_.line.intercept, 3)  # ln 1.1
    0.095
    """
    chosen = estimators()[name]
    assert chosen.make is not None  # combinations are not fitted
    columns = columns_of(name, design.task)
    x: Any = design.x[:, columns]
    if chosen.named:
        import polars as pl

        x = pl.DataFrame(x, schema=[design.names[column] for column in columns])
    known: dict[str, Any] = {"device": design.device, "model": design.model}
    made = chosen.make(design.task, seed=seed, n_jobs=n_jobs, quick=quick)
    return made.fit(x, design.log_ratio, **known)


#: The estimators that a model of runs has to beat; always fitted.
BASELINES = tuple(name for name, estimator in estimators().items() if estimator.role == "baseline")
