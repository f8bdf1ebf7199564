"""Estimators of the composition: each is one file, or one folder, in this one that declares itself.

A module here with a tuple ``ESTIMATORS`` adds them: to `Composition`, its evaluation, model files
and ``errcomp calibrate``. It is imported to print a help text, so its head imports neither NumPy
nor the libraries of a fit: they are imported in functions, or stand in modules of a folder beside
it. What several estimators are built from is in ``shared/``.
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
    "Estimator",
    "check_estimators",
    "columns_of",
    "default_estimators",
    "estimators",
    "fit_member",
    "fitted_for",
    "needs_of",
    "seen_by",
    "stacked",
]

#: What has to be beaten, what is fitted to beat it, and what is made of these.
Role = Literal["baseline", "model", "combination"]


@dataclass(frozen=True, slots=True)
class Estimator:
    """One estimator of the composition, as its file declares it.

    Attributes
    ----------
    name : str
        Short and unique: on the command line, in results and in model files.
    make : callable or None
        ``make(task, seed=, cores=, quick=)`` returns the `ResidualModel` to fit; `quick`: inside a
        cross-validation, with little work. None for what is made of fitted models.
    aliases : tuple of str
        Other names that it is asked for by.
    role : {"model", "baseline", "combination"}
        Baselines are fitted always; of the estimators of a model the last one predicts by default:
        baselines come first, combinations last.
    by_default : bool
        Whether it is fitted where no estimators are named.
    stacked : bool
        Whether ``stack`` weighs it.
    needs : tuple of (str, str)
        Packages that fitting imports, each with the extra that brings it.
    extra : str
        That brings all of them.
    recorded : tuple of str
        Libraries whose versions model files note.
    features : callable or None
        ``features(task)`` names the features it is given, in their order; None: all.
    looks : bool
        Whether what it says depends on features.
    named : bool
        Whether it is given the names of the features, as a data frame.
    explains : bool
        Whether its ``portable_`` has ``parts``, which tell a prediction apart by cause.
    stored : (str, str, str) or None
        Kind of its ``portable_`` in a model file, and module and name of the class that writes it
        (``to_arrays``) and reads it (``from_arrays``). None: no model file holds it.
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


#: Weighs all that declare themselves `stacked`; see `errcomp.calibration.evaluation.scoring`.
STACK = Estimator("stack", None, role="combination", by_default=True, extra="calibration")


@cache
def estimators() -> dict[str, Estimator]:
    """Return all estimators by name: baselines, models, combinations.

    Raises
    ------
    InputError
        Two of them have one name.
    """
    declared: list[Estimator] = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        declared += getattr(import_module(f"{__name__}.{module}"), "ESTIMATORS", ())
    declared.append(STACK)
    names = [name for estimator in declared for name in (estimator.name, *estimator.aliases)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"two estimators are called {twice[0]!r}. Name one of them differently.")
    roles = get_args(Role)
    declared.sort(key=lambda estimator: roles.index(estimator.role))
    return {estimator.name: estimator for estimator in declared}


def default_estimators() -> tuple[str, ...]:
    """Return what is fitted beside the baselines where no estimators are named."""
    return tuple(name for name, estimator in estimators().items() if estimator.by_default)


def stacked() -> tuple[str, ...]:
    """Return the estimators that ``stack`` weighs."""
    return tuple(name for name, estimator in estimators().items() if estimator.stacked)


def check_estimators(names: Sequence[str]) -> tuple[str, ...]:
    """Return the estimators in order, each once, by their own names.

    Raises
    ------
    InputError
        A name is not known; the message lists those that are.
    """
    known = estimators()
    own = {alias: name for name, estimator in known.items() for alias in (name, *estimator.aliases)}
    unknown = [name for name in names if name not in own]
    if unknown or not names:
        raise InputError(
            f"unknown estimator{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))}. "
            f"{offer('Known', tuple(known), wanted=''.join(unknown[:1]))}."
        )
    wanted = {own[name] for name in names}
    return tuple(name for name in known if name in wanted)


def fitted_for(names: Sequence[str]) -> list[str]:
    """Return what has to be fitted for these: those of them that are, and what ``stack`` weighs."""
    made_of = stacked() if STACK.name in names else ()
    return [*dict.fromkeys([*(name for name in names if name != STACK.name), *made_of])]


def needs_of(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return what fitting these needs: estimator, package, and the extra that brings it."""
    return [(name, *need) for name in fitted_for(names) for need in estimators()[name].needs]


def columns_of(name: str, task: Task) -> tuple[int, ...]:
    """Return the columns of the design that an estimator is given."""
    from errcomp.calibration.features import FEATURE_NAMES

    chosen = estimators()[name].features
    return tuple(map(FEATURE_NAMES.index, FEATURE_NAMES if chosen is None else chosen(task)))


def seen_by(name: str, task: Task) -> tuple[int, ...]:
    """Return the columns of the design that what an estimator says depends on."""
    return columns_of(name, task) if estimators()[name].looks else ()


def fit_member(
    name: str, design: Design, *, seed: int, cores: int, quick: bool = False
) -> ResidualModel:
    """Fit one estimator that is no combination to a design.

    Parameters
    ----------
    quick : bool
        In a cross-validation inside a fit: fewer draws, diagnostics not insisted on.
    """
    chosen = estimators()[name]
    assert chosen.make is not None  # combinations are not fitted
    columns = columns_of(name, design.task)
    x: Any = design.x[:, columns]
    if chosen.named:
        import polars as pl

        x = pl.DataFrame(x, schema=[design.names[column] for column in columns])
    known: dict[str, Any] = {"device": design.device, "model": design.model}
    made = chosen.make(design.task, seed=seed, cores=cores, quick=quick)
    return made.fit(x, design.log_ratio, **known)


#: What a model of runs has to beat; always fitted.
BASELINES = tuple(name for name, estimator in estimators().items() if estimator.role == "baseline")
