r"""The hierarchical model: priors, their draws, and the PyMC graph, compiled once per structure.

Every size of the graph except the number of runs is padded to a fixed grid, so that all folds of
a cross-validation, and mostly all fits of a process, share one compiled graph. What is padded has
no data: it keeps its prior, and is dropped from the posterior.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration._bayes_compat import import_pymc, quiet
from errcomp.calibration.design import Floats
from errcomp.calibration.hierarchical import SHARPNESS

__all__ = [
    "PRIORS",
    "GraphData",
    "Prior",
    "Sampled",
    "Structure",
    "compiled_graph",
    "effects",
    "padded_sizes",
    "prior_draws",
    "sample_graph",
]

Integers = NDArray[np.int64]

#: With two degrees of freedom or fewer the predictive distribution has no variance.
_LEAST_NU = 2.0


@dataclass(frozen=True, slots=True)
class Prior:
    """Prior of a parameter.

    Attributes
    ----------
    distribution : str
        As PyMC names it; its arguments are `args`.
    args : tuple of float
    unit : str
        ``"ln"``: of a log-ratio, 0.01 being about 1 %; ``"1"``: none.
    reason : str
    """

    distribution: str
    args: tuple[float, ...]
    unit: str
    reason: str


#: Priors of the parameters; effects of devices, models and features are normal around 0 with the
#: standard deviations ``*_sd``.
PRIORS = {
    "intercept": Prior("Normal", (0.0, 0.1), "ln", "sums of kernels are off by tens of percent"),
    "launch": Prior(
        "Normal", (1.0, 1.5), "1", "1: each launch hides once; more in training, below 0 on CPUs"
    ),
    "offset": Prior("Normal", (1.0, 0.2), "1", "1: the correction is right as it is"),
    "device_sd": Prior("HalfNormal", (0.1,), "ln", "devices differ by percents, rarely by 20 %"),
    "launch_sd": Prior("HalfNormal", (0.5,), "ln", "launches of devices differ by up to 2 or 3"),
    "model_sd": Prior("HalfNormal", (0.05,), "ln", "models differ less than devices"),
    "linear_sd": Prior(
        "HalfNormal", (0.05,), "ln", "one standard deviation of a feature: percents"
    ),
    "sigma": Prior("LogNormal", (-3.5, 0.7), "ln", "runs scatter by 1 to 12 % (95 %), median 3 %"),
    "nu_above": Prior(
        "Gamma", (2.0, 0.5), "1", "degrees of freedom above 2: from heavy tails to normal"
    ),
}


class Structure(NamedTuple):
    """Numbers of devices, models, costs and linear features."""

    devices: int
    models: int
    launch: int
    linear: int


def padded_sizes(sizes: Structure) -> Structure:
    """Return the sizes of the graph: twice the least ones as often as they do not suffice.

    Examples
    --------
    >>> padded_sizes(Structure(devices=9, models=5, launch=3, linear=2))
    Structure(devices=16, models=8, launch=4, linear=8)
    """
    least = Structure(devices=8, models=8, launch=4, linear=8)
    pairs = zip(sizes, least, strict=True)
    return Structure(*(few << max(0, -(-n // few) - 1).bit_length() for n, few in pairs))


@dataclass(frozen=True, slots=True, eq=False)
class GraphData:
    """Data of the graph: one row per run, columns padded with zeros.

    Attributes
    ----------
    costs, features : ndarray, shapes (n, structure.launch) and (n, structure.linear)
    rows : ndarray, shape (n, 2)
        Log-ratio and offset.
    groups : ndarray of int, shape (n, 2)
        Positions of device and model.
    levels : ndarray, shape (2,)
        1 where there is a level of devices (of models), else 0.
    """

    costs: Floats
    features: Floats
    rows: Floats
    groups: Integers
    levels: Floats

    @classmethod
    def of(
        cls,
        costs: Floats,
        features: Floats,
        rows: Floats,
        *,
        device: Integers | None,
        model: Integers | None,
    ) -> tuple[Structure, Self]:
        """Pad; devices and models are positions from 0, None where there is no such level."""
        groups = [np.zeros(len(rows), dtype=np.int64) if g is None else g for g in (device, model)]
        devices, models = (int(g.max()) + 1 for g in groups)
        sizes = padded_sizes(Structure(devices, models, costs.shape[1], features.shape[1]))
        return sizes, cls(
            _padded(costs, sizes.launch),
            _padded(features, sizes.linear),
            rows,
            np.column_stack(groups),
            np.array([device is not None, model is not None], dtype=np.float64),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the data by name."""
        return {name: getattr(self, name) for name in self.__slots__}


_COMPILED: dict[Structure, Any] = {}
_LOCK = threading.Lock()


def _padded(values: Floats, columns: int) -> Floats:
    return np.pad(values, ((0, 0), (0, columns - values.shape[1])))


def compiled_graph(structure: Structure, data: GraphData) -> Any:
    """Return nutpie's compiled model with this data; compiled once per process and structure.

    Raises
    ------
    MissingExtraError
        PyMC or nutpie is not installed.
    """
    pymc, nutpie = import_pymc()
    with _LOCK, quiet():
        if structure not in _COMPILED:
            graph = _graph(pymc, structure, data)
            _COMPILED[structure] = nutpie.compile_pymc_model(graph, backend="numba")
        return _COMPILED[structure].with_data(**data.arrays())


def _graph(pm: Any, sizes: Structure, data: GraphData) -> Any:
    """Build the PyMC model.

    Effects are standard normals (``*_z``) times their standard deviation, not centred: a device
    with few runs, or none, then makes no funnel.
    """
    pt = pm.math.pt

    def prior(name: str, **shape: int) -> Any:
        return getattr(pm, PRIORS[name].distribution)(name, *PRIORS[name].args, **shape)

    with pm.Model() as graph:
        costs, features, rows, groups, levels = (
            pm.Data(name, values) for name, values in data.arrays().items()
        )
        y, offset = rows[:, 0], rows[:, 1]
        device, model = groups[:, 0], groups[:, 1]
        z = {name: pm.Normal(f"{name}_z", 0.0, 1.0, shape=n) for name, n in _effect_sizes(sizes)}
        factor = pt.exp(levels[0] * prior("launch_sd") * z["device_launch"])
        hidden = factor[device] * pt.dot(costs, prior("launch", shape=sizes.launch))
        remainder = pt.log(pt.softplus(SHARPNESS * (1 - hidden)) / SHARPNESS)
        mu = (
            prior("intercept")
            + (levels[0] * prior("device_sd") * z["device_shift"])[device]
            + (levels[1] * prior("model_sd") * z["model_shift"])[model]
            + remainder
            + prior("offset") * offset
            + prior("linear_sd") * pt.dot(features, z["linear"])
        )
        _student_likelihood(pm, y, mu, prior("sigma"), prior("nu_above") + _LEAST_NU)
    return graph


def _student_likelihood(pm: Any, y: Any, mu: Any, sigma: Any, nu: Any) -> None:
    """Add the log-likelihood of a Student t; its normaliser once, not in every row.

    Compiles in three quarters of the time of ``pm.StudentT`` and samples as much faster.
    """
    pt = pm.math.pt
    half = (nu + 1) / 2
    log_scale = pt.gammaln(half) - pt.gammaln(nu / 2) - pt.log(nu * np.pi) / 2 - pt.log(sigma)
    spread = pt.sum(pt.log1p(((y - mu) / sigma) ** 2 / nu))
    pm.Potential("likelihood", y.shape[0] * log_scale - half * spread)


def _effect_sizes(sizes: Structure) -> tuple[tuple[str, int], ...]:
    return (
        ("device_shift", sizes.devices),
        ("device_launch", sizes.devices),
        ("model_shift", sizes.models),
        ("linear", sizes.linear),
    )


def prior_draws(rng: np.random.Generator, n: int, sizes: Structure) -> dict[str, Floats]:
    """Draw parameters from their priors, named as the variables of the graph.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of draws.
    sizes : Structure
        Numbers of devices, models and columns, as they are.
    """
    draw: dict[str, Any] = {
        "Normal": rng.normal,
        "HalfNormal": lambda scale, size: np.abs(rng.normal(0.0, scale, size)),
        "LogNormal": rng.lognormal,
        "Gamma": lambda shape, rate, size: rng.gamma(shape, 1 / rate, size),
    }
    found = {
        name: draw[prior.distribution](
            *prior.args, size=(n, sizes.launch) if name == "launch" else n
        )
        for name, prior in PRIORS.items()
    }
    z = {f"{name}_z": rng.normal(size=(n, size)) for name, size in _effect_sizes(sizes)}
    return {**found, **z}


def effects(variables: Mapping[str, Floats], *, devices: bool, models: bool) -> dict[str, Floats]:
    """Turn variables of the graph into the draws of the model: effects instead of ``*_z``.

    Parameters
    ----------
    variables : mapping of str to ndarray
        The first axes are those of the draws.
    devices, models : bool
        Whether there is such a level; without it its effects are 0.
    """
    v = variables
    of_devices, of_models = float(devices), float(models)
    return {
        **{name: v[name] for name in ("intercept", "sigma", "offset", "launch")},
        "nu": _LEAST_NU + v["nu_above"],
        "linear": v["linear_sd"][..., None] * v["linear_z"],
        "device_shift": of_devices * v["device_sd"][..., None] * v["device_shift_z"],
        "device_launch": of_devices * v["launch_sd"][..., None] * v["device_launch_z"],
        "model_shift": of_models * v["model_sd"][..., None] * v["model_shift_z"],
    }


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Draws of the variables of the graph, shapes (chains, draws, ...), of finished chains.

    Attributes
    ----------
    variables : dict of str to ndarray
    stats : dict of str to ndarray, shape (chains, draws)
        ``diverging``, ``energy``, ``n_steps``.
    seconds : float
    """

    variables: dict[str, Floats]
    stats: dict[str, NDArray[Any]]
    seconds: float


def sample_graph(
    structure: Structure,
    data: GraphData,
    *,
    draws: int,
    tune: int,
    chains: int,
    cores: int,
    target_accept: float,
    seed: int,
) -> Sampled:
    """Sample the posterior with NUTS; when interrupted, return the chains that were finished.

    Raises
    ------
    KeyboardInterrupt
        Before the first chain was finished.
    """
    compiled = compiled_graph(structure, data)
    _, nutpie = import_pymc()
    began = time.perf_counter()
    sampler = nutpie.sample(
        compiled,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=cores,
        target_accept=target_accept,
        seed=seed,
        progress_bar=False,
        save_warmup=False,
        blocking=False,
    )
    try:
        trace = sampler.wait()
    except KeyboardInterrupt:
        trace = sampler.abort()
    seconds = time.perf_counter() - began
    finished = _finished(trace, draws)
    if not finished.any():
        raise KeyboardInterrupt
    wanted = [*PRIORS, *(f"{name}_z" for name, _ in _effect_sizes(structure))]
    return Sampled(
        {name: trace.posterior[name].values[finished] for name in wanted},
        {n: trace.sample_stats[n].values[finished] for n in ("diverging", "energy", "n_steps")},
        seconds,
    )


def _finished(trace: Any, draws: int) -> NDArray[np.bool_]:
    """Tell which chains have all their draws; NaN stands where a draw was not made."""
    energy = trace.sample_stats["energy"].values
    made: NDArray[np.bool_] = np.isfinite(energy).sum(axis=1) == draws
    return made
