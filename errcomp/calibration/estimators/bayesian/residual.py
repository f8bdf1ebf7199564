r"""The Bayesian model of the log-ratio: physics of launches, pooled over devices and models.

Needs PyMC, nutpie, ArviZ and scikit-learn to fit; the fitted
`errcomp.calibration.estimators.bayesian.hierarchical.HierarchicalModel` predicts with SciPy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import ndtri

from errcomp.calibration.design import Predicting, as_names, as_targets, check_least, validated
from errcomp.calibration.estimators.bayesian.diagnostics import (
    Check,
    Diagnostics,
    SamplingError,
    SamplingWarning,
    diagnose,
    enforce,
    import_arviz,
    warn_of,
)
from errcomp.calibration.estimators.bayesian.hierarchical import (
    DRAWS,
    Columns,
    HierarchicalModel,
    LaunchOverhead,
)
from errcomp.calibration.estimators.bayesian.model import (
    PRIORS,
    SPREADS,
    UNKNOWN,
    GraphData,
    Integers,
    Level,
    Prior,
    Runs,
    Sampled,
    Structure,
    assign_columns,
    check_parameters,
    effect_shapes,
    effects,
    prior_draws,
    sample_graph,
)
from errcomp.calibration.estimators.bayesian.posteriors import compared, posterior_of
from errcomp.errors import InputError, MissingExtraError, describe_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from errcomp.calibration.design import Floats

__all__ = [
    "PRIORS",
    "BayesianResidual",
    "Diagnostics",
    "Prior",
    "PriorPredictive",
    "SamplingError",
    "SamplingWarning",
]


try:
    from sklearn.base import BaseEstimator, RegressorMixin, clone  # type: ignore[import-untyped]
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ImportError as error:
    raise MissingExtraError("scikit-learn", "calibration", "the Bayesian residual model") from error


#: Second attempt: factors of the draws and the tuning, and the least acceptance.
_SECOND = (3, 2)
_CAREFUL = 0.98


class BayesianResidual(Predicting, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Hierarchical, robust model of the log-ratio, built from the costs of kernel launches.

    .. math:: y_i \sim t_\nu(\mu_i, \sigma), \qquad
              \mu_i = c + a_{d(i)} + m_{f(i)}
              + \ln\!\Big(1 - e^{k_{d(i)}} \sum_j \kappa_j L_{ij}\Big) + w o_i
              + z_i^\top (B + b_{d(i)})

    * L, costs: launch time as a share of the summed kernels (or any other share that counts
      differently in the run than in the sum). :math:`\kappa_j` is how often it disappears: 1 where
      each launch hides once, below 0 where time between kernels is added.
    * k, a: each device's factor of its launches (log), and its shift. m: the shift of the model
      family. All are shrunken to 0 as far as devices (models) are alike.
    * o, offset: a correction in logs, expected to be right; w is near 1.
    * z, linear features: all other columns, standardised over the runs of the fit. b: the device's
      addition to the coefficients of `varying`, shrunken to 0; 0 for the others.
    * Student t: unexplained runs do not distort the fit.

    Parameters
    ----------
    launch : sequence of int or str
        Columns of costs L, by position, or by name where X has names.
    offset : int or str, optional
        Column of the offset.
    varying : sequence of int or str
        Linear columns whose coefficient depends on the device, e.g. the size of a run where
        devices differ in how the error grows with it. Few: each adds a coefficient per device.
    draws, tune : int
        Per chain, kept and discarded.
    chains : int
    n_jobs : int
        Chains sampled at once. The draws do not depend on it.
    target_accept : float
        Of the sampler, in (0, 1): larger is slower and diverges less.
    seed : int
    check : {"raise", "warn", "ignore"}
        What to do if diagnostics are bad. ``"ignore"`` also silences caveats, e.g. in a
        cross-validation; they remain in ``diagnostics_`` and ``caveats_``.

    Attributes
    ----------
    portable_ : HierarchicalModel
        Predicts, and can be stored.
    posterior_ : arviz.InferenceData, or xarray.DataTree with ArviZ 1
        Groups posterior, sample_stats, log_likelihood and observed_data.
    diagnostics_ : Diagnostics
    caveats_ : tuple of str
        Columns that were dropped, and parameters that the data do not determine.
    n_features_in_ : int

    Notes
    -----
    Priors are in `PRIORS`, each with its unit and reason; `prior_predictive` shows what they imply.

    If diagnostics are bad and would raise, the model is sampled once more, with three times the
    draws, twice the tuning and a target_accept of 0.98: with few runs chains mix slowly.

    The first fit of a process compiles the model (about 25 s). Further fits do not, unless there
    are more devices, models or columns than the compiled sizes (8, 8, and 4 costs, 8 linear and 2
    varying columns, doubled as needed).

    A device that was not in the fit gets the distribution of devices: its band is as wide as
    devices differ. Without any device in the fit there is no such level, and the band is valid for
    the devices of the fit alone. Misleads for features far outside the fit, where the linear part
    extrapolates without limit.

    Examples
    --------
    >>> PRIORS["device_sd"].distribution, PRIORS["device_sd"].args, PRIORS["device_sd"].unit
    ('HalfNormal', (0.1,), 'ln')
    >>> model = BayesianResidual(launch=[0])
    >>> x = [[0.0], [0.1], [0.2]]
    >>> bool(model.prior_predictive(x).share_within_tenfold > 0.95)
    True
    """

    portable_: HierarchicalModel

    def __init__(
        self,
        launch: Sequence[int | str] = (),
        offset: int | str | None = None,
        varying: Sequence[int | str] = (),
        draws: int = 2000,
        tune: int = 1000,
        chains: int = 4,
        n_jobs: int | None = 2,
        target_accept: float = 0.95,
        seed: int = 0,
        check: Check = "raise",
    ) -> None:
        self.launch = launch
        self.offset = offset
        self.varying = varying
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.n_jobs = n_jobs
        self.target_accept = target_accept
        self.seed = seed
        self.check = check

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Sample the posterior.

        Parameters
        ----------
        X : array_like, shape (n, p)
            Finite.
        y : array_like, shape (n,)
            Log of the measured run to the sum of its kernels.
        device, model : array_like of str, shape (n,), optional
            Levels of pooling. Runs whose name is ``""`` form one group.

        Returns
        -------
        self

        Raises
        ------
        InputError
            Values are not finite numbers, shapes differ, a column does not exist, or a parameter
            has an impossible value.
        SamplingError
            Diagnostics are bad and `check` is ``"raise"``.
        MissingExtraError
            PyMC, nutpie or ArviZ is not installed.
        KeyboardInterrupt
            Interrupted before the first chain was finished. Later, the finished chains are kept,
            and a `SamplingWarning` says so.

        Examples
        --------
        Sampling takes half a minute, so the last line is not run.

        >>> model = BayesianResidual(launch=["cost"])
        >>> model.fit(x, y, device=device)  # doctest: +SKIP
        """
        import_arviz()
        check_parameters(self.get_params())
        if hasattr(self, "portable_"):
            # A fit that fails must not leave an older model that predicts.
            del self.portable_
        runs = self._runs(X, y, device, model)
        costs, offset, linear = runs.columns.split(runs.x)
        structure, data = GraphData.of(
            costs,
            linear,
            np.column_stack([runs.y, offset]),
            varying=runs.columns.varying_at,
            device=runs.device.index,
            model=runs.model.index,
        )
        self.caveats_ = runs.caveats
        for draws, tune, target_accept in self._attempts():
            sampled = sample_graph(
                structure,
                data,
                draws=draws,
                tune=tune,
                chains=self.chains,
                n_jobs=self.n_jobs,
                target_accept=target_accept,
                seed=self.seed,
            )
            posterior = Posterior(sampled, runs.columns, runs.device, runs.model)
            self.diagnostics_ = diagnose(
                posterior.variables,
                posterior.labels,
                divergent=sampled.stats["diverging"],
                energy=sampled.stats["energy"],
                seconds=sampled.seconds,
                interrupted=len(sampled.stats["energy"]) < self.chains,
            )
            if self.diagnostics_.ok or self.diagnostics_.interrupted:
                break
        self.posterior_ = posterior.to_arviz(runs.x, runs.y)
        warn_of(self.caveats_, self.diagnostics_, self.chains, self.check)
        enforce(self.diagnostics_, self.check)
        self.portable_ = posterior.portable(np.random.default_rng([self.seed, 1]))
        return self

    def _attempts(self) -> list[tuple[int, int, float]]:
        """Return draws, tuning and acceptance; of a second attempt, too, if bad draws raise."""
        first = (self.draws, self.tune, self.target_accept)
        if self.check != "raise":
            return [first]
        more, longer = _SECOND
        return [first, (more * self.draws, longer * self.tune, max(self.target_accept, _CAREFUL))]

    def loo(self) -> Any:
        r"""Return ArviZ's estimate of leave-one-out predictions of the runs (PSIS-LOO).

        Valid for new runs of the devices and models of the fit. It says nothing about new devices:
        hold out whole devices for those. With a Pareto k above 0.7, or less with few draws (ArviZ
        warns), the estimate is not reliable.

        Returns
        -------
        arviz.ELPDData

        References
        ----------
        Vehtari, Gelman and Gabry (2017), "Practical Bayesian model evaluation using leave-one-out
        cross-validation and WAIC", Statistics and Computing 27, doi:10.1007/s11222-016-9696-4.

        Examples
        --------
        Sampling takes half a minute, so the last lines are not run.

        >>> model = BayesianResidual(launch=["cost"])
        >>> model = model.fit(x, y, device=device)  # doctest: +SKIP
        >>> model.loo()  # doctest: +SKIP
        """
        check_is_fitted(self, "portable_")
        return import_arviz().loo(self.posterior_, pointwise=True)

    def compare(self, others: Mapping[str, BayesianResidual], *, name: str = "this") -> Any:
        """Compare with other models of the same runs by leave-one-out scores.

        Parameters
        ----------
        others : mapping of str to BayesianResidual
            Fitted to the same log-ratios.
        name : str
            Name of this model in the table.

        Returns
        -------
        pandas.DataFrame
            The result of ``arviz.compare``: best first, with differences and standard errors.
            Differences of a worse model are positive with ArviZ below 1, negative with ArviZ 1.

        Raises
        ------
        InputError
            Another model was fitted to other log-ratios, or has the name of this one.

        Examples
        --------
        Sampling takes half a minute, so the last lines are not run.

        >>> small, large = BayesianResidual(), BayesianResidual(launch=["cost"])
        >>> small = small.fit(x, y)  # doctest: +SKIP
        >>> small.compare({"launches": large.fit(x, y)})  # doctest: +SKIP
        """
        models = {name: self, **others}
        if len(models) <= len(others):
            raise InputError(f"two models are named {name!r}. Choose another name=.")
        for other in models.values():
            check_is_fitted(other, "portable_")
        y = self.posterior_.observed_data["y"].values
        different = [
            n for n, m in others.items() if not np.array_equal(m.posterior_.observed_data["y"], y)
        ]
        if different:
            raise InputError(
                f"{describe_names(different)} and {name} were fitted to different log-ratios, so "
                "they cannot be compared. Fit all models to the same runs."
            )
        return compared({n: m.posterior_ for n, m in models.items()})

    def posterior_predictive(
        self,
        X: ArrayLike,  # noqa: N803
        *,
        device: ArrayLike | None = None,
    ) -> Floats:
        """Draw log-ratios of runs, one per stored draw of the posterior.

        Parameters
        ----------
        X : array_like, shape (n, p)
        device : array_like of str, shape (n,), optional

        Returns
        -------
        ndarray, shape (draws, n)
            Reproducible for a seed. Rows of one unknown device share its draw, so that sums over
            its runs have the right spread.

        Examples
        --------
        Sampling takes half a minute, so the last lines are not run.

        >>> model = BayesianResidual(launch=["cost"])
        >>> model = model.fit(x, y, device=device)  # doctest: +SKIP
        >>> model.posterior_predictive(x, device=device).shape  # doctest: +SKIP
        """
        x = self._features(X)
        names = as_names(device, len(x), "device")
        return self.portable_.sample(x, device=names, seed=[self.seed, 2])

    def prior_predictive(
        self,
        X: ArrayLike,  # noqa: N803
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
        draws: int = 1000,
    ) -> PriorPredictive:
        """Simulate runs from the priors alone; needs neither a fit nor PyMC.

        Parameters
        ----------
        X : array_like, shape (n, p)
        device, model : array_like of str, shape (n,), optional
        draws : int

        Returns
        -------
        PriorPredictive

        Raises
        ------
        InputError
            As `fit`.

        Examples
        --------
        >>> found = BayesianResidual(launch=[0]).prior_predictive([[0.0], [0.1]], draws=100)
        >>> found.log_ratio.shape
        (100, 2)
        """
        check_least("draws", draws, 1)
        # A clone, so that this fit keeps its columns.
        runs = clone(self)._runs(X, None, device, model)
        rng = np.random.default_rng([self.seed, 3])
        return prior_predictive(runs, rng, draws)

    def launch_overhead(self, floor_us: float | Mapping[str, float]) -> tuple[LaunchOverhead, ...]:
        """Return the cost of a launch on each device, in µs.

        See `HierarchicalModel.launch_overhead`.

        Examples
        --------
        Sampling takes half a minute, so the last lines are not run.

        >>> model = BayesianResidual(launch=["cost"])
        >>> model = model.fit(x, y, device=device)  # doctest: +SKIP
        >>> [(cost.device, cost.median) for cost in model.launch_overhead(5.0)]  # doctest: +SKIP
        """
        check_is_fitted(self, "portable_")
        return self.portable_.launch_overhead(floor_us)

    def _features(self, X: ArrayLike) -> Any:  # noqa: N803
        check_is_fitted(self, "portable_")
        return validated(self, X, reset=False)

    def _runs(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike | None,
        device: ArrayLike | None,
        model: ArrayLike | None,
    ) -> Runs:
        """Return checked runs; log-ratios that are not given are 0."""
        if y is None:
            x = validated(self, X, reset=True)
            target = np.zeros(len(x))
        else:
            x, target = validated(self, X, y, reset=True, y_numeric=True, ensure_min_samples=2)
            target = as_targets(target, len(x))
        assigned = assign_columns(
            x,
            getattr(self, "feature_names_in_", None),
            launch=self.launch,
            offset=self.offset,
            varying=self.varying,
        )
        return Runs.of(x, target, assigned, device, model)


# From sampled variables to the posterior by name, and to the model that predicts.

#: Number of stored draws: with 1000 a quantile at 5 % is accurate to 0.7 points of probability.
_MOST_STORED = 1000
_RATIO_RANGE = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class PriorPredictive:
    """Runs simulated from the priors alone.

    Attributes
    ----------
    log_ratio : ndarray, shape (draws, n)
        One simulated log-ratio of each run under each draw of the priors.
    share_within_tenfold : float
        Share of simulated ratios of the measured run to the sum of its kernels in [0.1, 10].
    median, low, high : float
        Median and central 90 % of the simulated ratios, all runs together.
    """

    log_ratio: Floats
    share_within_tenfold: float
    median: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """The draws of the parameters that have data, under their public names.

    Attributes
    ----------
    sampled : Sampled
    columns : Columns
    device, model : Level
    """

    sampled: Sampled
    columns: Columns
    device: Level
    model: Level

    @cached_property
    def axes(self) -> dict[str, dict[str, list[str]]]:
        """Names and values along the axes of each parameter that has axes."""
        labels = self.columns.names
        along = {
            "launch": ("cost", [labels[column] for column in self.columns.launch]),
            "linear": ("feature", [labels[column] for column in self.columns.linear]),
            "devices": ("device", list(self.device.names)),
            "varying": ("varying_feature", [labels[column] for column in self.columns.varying]),
            "models": ("model", list(self.model.names)),
        }
        by_name = {name: dict(along[axis] for axis in axes) for name, axes in DRAWS.items() if axes}
        if not self.columns.launch:
            del by_name["device_launch"]
        return {name: axes for name, axes in by_name.items() if all(axes.values())}

    @property
    def labels(self) -> dict[str, list[list[str]]]:
        """Values along the axes of each parameter."""
        return {name: list(axes.values()) for name, axes in self.axes.items()}

    @cached_property
    def variables(self) -> dict[str, Floats]:
        """Draws of each parameter, shape (chains, draws, ...)."""
        raw = self._unpadded()
        draws = effects(raw, devices=True, models=True)
        draws = {n: v for n, v in draws.items() if n in self.axes or not DRAWS[n]}
        if self.columns.offset is None:
            del draws["offset"]
        spreads = {sd: raw[sd] for effect, sd in SPREADS.items() if effect in self.axes}
        return {**draws, **spreads}

    def _unpadded(self) -> dict[str, Floats]:
        """Return the variables of the graph without padding."""
        sizes = _sizes(self.columns, self.device, self.model)
        shapes = {f"{name}_z": shape for name, shape in effect_shapes(sizes).items()}
        shapes["launch"] = (sizes.launch,)
        slices: dict[str, Any] = {name: (..., *map(slice, shape)) for name, shape in shapes.items()}
        return {name: v[slices.get(name, ...)] for name, v in self.sampled.variables.items()}

    def portable(self, rng: np.random.Generator) -> HierarchicalModel:
        """Return the model that predicts, with at most 1000 draws, evenly spaced."""
        total = self.sampled.stats["energy"].size
        chosen = np.linspace(0, total - 1, min(_MOST_STORED, total)).round().astype(int)
        return self._model(chosen, rng, without=(UNKNOWN,))

    def _model(
        self, chosen: Integers, rng: np.random.Generator, without: tuple[str, ...] = ()
    ) -> HierarchicalModel:
        raw = {name: _flat(v)[chosen] for name, v in self._unpadded().items()}
        known = {}
        for prefix, level in (("device", self.device), ("model", self.model)):
            known[prefix] = [name for name in level.names if name not in without]
            at = [level.names.index(name) for name in known[prefix]]
            for name in [n for n in raw if n.startswith(prefix) and n.endswith("_z")]:
                raw[name] = np.concatenate([raw[name][:, at], _one_more(raw[name], rng)], axis=1)
        draws = effects(raw, devices=bool(self.device.names), models=bool(self.model.names))
        return HierarchicalModel(self.columns, known["device"], known["model"], draws)

    def to_arviz(self, x: Floats, y: Floats) -> Any:
        """Return the posterior as an ArviZ object, with the log-likelihood of each run."""
        from scipy import stats

        everything = np.arange(self.sampled.stats["energy"].size)
        full = self._model(everything, np.random.default_rng(0))
        mu = full.location(x, device=self.device.of, model=self.model.of)
        density = np.asarray(stats.t.logpdf(y[:, None], full.draws["nu"], mu, full.draws["sigma"]))
        shape = (*self.sampled.stats["energy"].shape, len(y))
        coords = {axis: names for axes in self.axes.values() for axis, names in axes.items()}
        groups = {
            "posterior": self.variables,
            "sample_stats": self.sampled.stats,
            "log_likelihood": {"y": density.T.reshape(shape)},
            "observed_data": {"y": y},
        }
        return posterior_of(
            groups,
            coords=coords,
            dims={**{name: list(axes) for name, axes in self.axes.items()}, "y": ["run"]},
        )


def _sizes(columns: Columns, device: Level, model: Level) -> Structure:
    return Structure(
        devices=len(device.names),
        models=len(model.names),
        launch=len(columns.launch),
        linear=len(columns.linear),
        varying=len(columns.varying),
    )


def _flat(values: Floats) -> Floats:
    """Join the chains."""
    return values.reshape(math.prod(values.shape[:2]), *values.shape[2:])


def _one_more(z: Floats, rng: np.random.Generator) -> Floats:
    """Return standard normals of one more group: shape (draws, 1, ...) for (draws, groups, ...).

    An unknown group is one more draw from the distribution of groups. Evenly spread draws have less
    noise than random ones.
    """
    n, each = len(z), z.shape[2:]
    order = np.repeat(np.arange(n)[:, None], math.prod(each), axis=1)
    return ndtri((rng.permuted(order, axis=0) + 0.5) / n).reshape(n, 1, *each)


def prior_predictive(runs: Runs, rng: np.random.Generator, draws: int) -> PriorPredictive:
    """Simulate runs from the priors alone."""
    columns, device, model = runs.columns, runs.device, runs.model
    sizes = _sizes(columns, device, model)
    # One more device and model, for unknown ones.
    sizes = sizes._replace(devices=sizes.devices + 1, models=sizes.models + 1)
    levels = {"devices": bool(device.names), "models": bool(model.names)}
    prior = HierarchicalModel(
        columns, device.names, model.names, effects(prior_draws(rng, draws, sizes), **levels)
    )
    seed = int(rng.integers(2**32))
    log_ratio = prior.sample(runs.x, device=device.of, model=model.of, seed=seed)
    inside = float((np.abs(log_ratio) <= np.log(_RATIO_RANGE)).mean())
    low, median, high = np.exp(np.quantile(log_ratio, (0.05, 0.5, 0.95))).tolist()
    return PriorPredictive(log_ratio, inside, median, low, high)
