r"""The hierarchical model: priors, their draws, and the PyMC graph, compiled once per structure.

Every size of the graph except the number of runs is padded to a fixed grid. So all folds of a
cross-validation, and usually all fits of a process, share one compiled graph. The padding has no
data: it keeps its prior, and is dropped from the posterior.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from errcomp.calibration.design import Floats, Names, as_names, check_least, position
from errcomp.calibration.estimators.bayesian.diagnostics import import_pymc, quiet
from errcomp.calibration.estimators.bayesian.hierarchical import DRAWS, SHARPNESS, Columns
from errcomp.errors import InputError, describe_names
from errcomp.system.processes import count_jobs

#: The group of the runs without a name.
UNKNOWN = "(unknown)"
#: A column with a smaller ratio of standard deviation to magnitude is constant.
_CONSTANT = 1e-12
_LEAST = {"draws": 50, "tune": 50, "chains": 1, "seed": 0}


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """A level of pooling: devices or models.

    Attributes
    ----------
    names : tuple of str
        Of the groups; empty where no run has a name.
    of : ndarray of str, shape (n,)
        Group of each run.
    """

    names: tuple[str, ...]
    of: Names

    @classmethod
    def from_names(cls, given: Names) -> Self:
        """Group runs by name; runs without a name form one group."""
        if not any(given):
            return cls((), given)
        of = given.copy()
        of[of == ""] = UNKNOWN
        return cls(tuple(sorted(set(of.tolist()))), of)

    @property
    def index(self) -> NDArray[np.int64] | None:
        """Position of the group of each run; None without groups."""
        if not self.names:
            return None
        at = {name: i for i, name in enumerate(self.names)}
        return np.asarray([at[name] for name in self.of], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The runs of a fit.

    Attributes
    ----------
    x : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    columns : Columns
    device, model : Level
    caveats : tuple of str
        Columns that were dropped, and parameters that the runs do not determine.
    """

    x: Floats
    y: Floats
    columns: Columns
    device: Level
    model: Level
    caveats: tuple[str, ...]

    @classmethod
    def of(
        cls,
        x: Floats,
        y: Floats,
        assigned: tuple[Columns, tuple[str, ...]],
        device: ArrayLike | None,
        model: ArrayLike | None,
    ) -> Self:
        """Group the runs.

        Raises
        ------
        InputError
            Names of devices or models are not one per run, or a feature is NaN.
        """
        columns, caveats = assigned
        columns.split(x)
        of_device = Level.from_names(as_names(device, len(x), "device"))
        of_model = Level.from_names(as_names(model, len(x), "model"))
        if len(of_device.names) == 1:
            caveats = (
                *caveats,
                f"all runs are on one device ({of_device.names[0]}): the data do not show how "
                "devices differ, so the priors alone determine bands for other devices",
            )
        return cls(x, y, columns, of_device, of_model, caveats)


def assign_columns(
    x: Floats,
    names: Sequence[str] | None,
    *,
    launch: Sequence[int | str],
    offset: int | str | None,
    varying: Sequence[int | str],
) -> tuple[Columns, tuple[str, ...]]:
    """Return the role of each column, and caveats: dropped columns, and costs known by prior only.

    Raises
    ------
    InputError
        A column does not exist, or has two roles.
    """
    labels = [str(name) for name in (range(x.shape[1]) if names is None else names)]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InputError(
            f"the columns of X need different names, got more than one column named "
            f"{describe_names(twice)}. Rename these columns."
        )
    costs = _positions(launch, "launch", x.shape[1], names)
    at = _positions([] if offset is None else [offset], "offset", x.shape[1], names)
    varied = _positions(varying, "varying", x.shape[1], names)
    taken = (*costs, *at)
    if len({*taken, *varied}) < len(taken) + len(varied):
        raise InputError(
            f"launch={launch!r}, offset={offset!r} and varying={varying!r} name a column twice. "
            "A column can have only one of these roles."
        )
    others = [column for column in range(x.shape[1]) if column not in taken]
    # NaN does not count as constant: splitting the columns refuses it by name.
    constant = [c for c in others if x[:, c].std() <= _CONSTANT * np.abs(x[:, c]).max()]
    idle = [c for c in costs if not x[:, c].any()]
    caveats = {
        "features dropped, because all runs have the same value": constant,
        "launch costs that only the prior determines, because all runs have the value 0": idle,
    }
    linear = tuple(column for column in others if column not in constant)
    center, scale = x[:, linear].mean(axis=0), x[:, linear].std(axis=0)
    left = tuple(column for column in varied if column in linear)
    columns = Columns(tuple(labels), costs, at[0] if at else None, linear, center, scale, left)
    return columns, tuple(
        f"{reason}: {describe_names([labels[c] for c in which])}"
        for reason, which in caveats.items()
        if which
    )


def _positions(
    columns: Sequence[int | str], word: str, width: int, names: Sequence[str] | None
) -> tuple[int, ...]:
    """Return the positions of columns."""
    if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
        raise InputError(f"{word} must be a list of columns, got {columns!r}. Write [{columns!r}].")
    return tuple(position(column, word, width, names) for column in columns)


def check_parameters(given: Mapping[str, Any]) -> None:
    """Check the parameters of the sampler.

    Raises
    ------
    InputError
        A parameter has an impossible value.
    """
    for name, least in _LEAST.items():
        check_least(name, given[name], least)
    count_jobs(given["n_jobs"])
    if not 0 < given["target_accept"] < 1:
        raise InputError(f"target_accept must be in (0, 1), got {given['target_accept']!r}.")
    if given["check"] not in ("raise", "warn", "ignore"):
        raise InputError(f'check must be "raise", "warn" or "ignore", got {given["check"]!r}.')


Integers = NDArray[np.int64]

#: With two degrees of freedom or fewer the predictive distribution has no variance.
_LEAST_NU = 2.0


@dataclass(frozen=True, slots=True)
class Prior:
    """Prior of a parameter.

    Attributes
    ----------
    distribution : str
        PyMC's name for it; its arguments are `args`.
    args : tuple of float
    unit : str
        ``"ln"``: of a log-ratio, where 0.01 is about 1 %; ``"1"``: none.
    reason : str

    Examples
    --------
    >>> PRIORS["intercept"].distribution, PRIORS["intercept"].args
    ('Normal', (0.0, 0.1))
    """

    distribution: str
    args: tuple[float, ...]
    unit: str
    reason: str


#: Priors of the parameters; effects of devices, models and features are normal around 0 with the
#: standard deviations ``*_sd``.
PRIORS = {
    "intercept": Prior("Normal", (0.0, 0.1), "ln", "sums of kernels are off by about 10 %"),
    "launch": Prior(
        "Normal",
        (1.0, 1.5),
        "1",
        "near 1: a run hides each launch once, and starting the run costs one launch; higher in "
        "training, negative on CPUs",
    ),
    "offset": Prior("Normal", (1.0, 0.2), "1", "1: the correction is right"),
    "device_sd": Prior(
        "HalfNormal", (0.1,), "ln", "devices differ by a few per cent, rarely by 20 %"
    ),
    "launch_sd": Prior(
        "HalfNormal",
        (0.5,),
        "ln",
        "launch costs differ between devices by a factor of up to 2 or 3",
    ),
    "model_sd": Prior("HalfNormal", (0.05,), "ln", "models differ less than devices"),
    "linear_sd": Prior(
        "HalfNormal",
        (0.05,),
        "ln",
        "one standard deviation of a feature changes the time by a few per cent",
    ),
    "slope_sd": Prior(
        "HalfNormal",
        (0.03,),
        "ln",
        "the effect of a feature varies between devices by less than the effect itself",
    ),
    "sigma": Prior("LogNormal", (-3.5, 0.7), "ln", "runs scatter by 1 to 12 % (95 %), median 3 %"),
    "nu_above": Prior(
        "Gamma", (2.0, 0.5), "1", "degrees of freedom above 2: tails from heavy to nearly normal"
    ),
}


#: Effects of devices, models and features, and the standard deviation that belongs to each.
SPREADS = {
    "device_launch": "launch_sd",
    "device_shift": "device_sd",
    "device_slope": "slope_sd",
    "model_shift": "model_sd",
    "linear": "linear_sd",
}
#: All but the first add up.
_ADDING = tuple(SPREADS)[1:]
#: Name of their joint vector in the graph.
_EFFECTS = "effects_z"


class Structure(NamedTuple):
    """Numbers of devices, models, costs, linear features, and those that vary by device."""

    devices: int
    models: int
    launch: int
    linear: int
    varying: int


def padded_sizes(sizes: Structure) -> Structure:
    """Return the sizes of the graph: the least ones, doubled until they suffice.

    Examples
    --------
    >>> padded_sizes(Structure(devices=9, models=5, launch=3, linear=2, varying=0))
    Structure(devices=16, models=8, launch=4, linear=8, varying=2)
    """
    least = Structure(devices=8, models=8, launch=4, linear=8, varying=2)
    pairs = zip(sizes, least, strict=True)
    return Structure(*(few << max(0, -(-n // few) - 1).bit_length() for n, few in pairs))


@dataclass(frozen=True, slots=True, eq=False)
class GraphData:
    """Data of the graph: one row per run, columns padded with zeros.

    Attributes
    ----------
    rows : ndarray, shape (n, 2)
        Log-ratio and offset.
    costs : ndarray, shape (n, structure.launch)
    on : ndarray, shape (n, structure.devices)
        1 at the device of a run; all 0 without a level of devices.
    design : ndarray, shape (n, k)
        Multipliers of the additive effects, in the order of `_ADDING`.
    """

    rows: Floats
    costs: Floats
    on: Floats
    design: Floats

    @classmethod
    def of(
        cls,
        costs: Floats,
        features: Floats,
        rows: Floats,
        *,
        varying: Sequence[int],
        device: Integers | None,
        model: Integers | None,
    ) -> tuple[Structure, Self]:
        """Pad; devices and models are positions from 0, or None without such a level."""
        on, of = (_indicators(group, len(rows)) for group in (device, model))
        varied = features[:, varying]
        each = (values.shape[1] for values in (on, of, costs, features, varied))
        sizes = padded_sizes(Structure(*each))
        on, varied = _padded(on, sizes.devices), _padded(varied, sizes.varying)
        blocks = {
            "device_shift": on,
            "device_slope": (on[:, :, None] * varied[:, None, :]).reshape(len(rows), -1),
            "model_shift": _padded(of, sizes.models),
            "linear": _padded(features, sizes.linear),
        }
        design = np.concatenate([blocks[name] for name in _ADDING], axis=1)
        return sizes, cls(rows, _padded(costs, sizes.launch), on, design)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the data by name."""
        return {name: getattr(self, name) for name in self.__slots__}


_COMPILED: dict[Structure, Any] = {}
_LOCK = threading.Lock()


def _padded(values: Floats, columns: int) -> Floats:
    return np.pad(values, ((0, 0), (0, columns - values.shape[1])))


def _indicators(group: Integers | None, rows: int) -> Floats:
    """Return 1 at the group of each row, shape (rows, groups); one column of 0 without groups."""
    if group is None:
        return np.zeros((rows, 1))
    return np.eye(int(group.max()) + 1)[group]


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

    Effects are standard normals times their standard deviation (not centred), so that a device with
    few runs, or none, makes no funnel. All are one vector, and their sum is one product: each
    further variable and each look-up by group takes seconds to compile.
    """
    pt = pm.math.pt

    def prior(name: str, **shape: int) -> Any:
        return getattr(pm, PRIORS[name].distribution)(name, *PRIORS[name].args, **shape)

    lengths = [math.prod(shape) for shape in effect_shapes(sizes).values()]
    spread_of = np.repeat(np.eye(len(lengths)), lengths, axis=0)
    with pm.Model() as graph:
        rows, costs, on, design = (pm.Data(name, v) for name, v in data.arrays().items())
        z = pm.Normal(_EFFECTS, 0.0, 1.0, shape=sum(lengths))
        effect = pt.dot(spread_of, pt.stack([prior(name) for name in SPREADS.values()])) * z
        launch = pt.dot(costs, prior("launch", shape=sizes.launch))
        hidden = pt.exp(pt.dot(on, effect[: sizes.devices])) * launch
        mu = (
            prior("intercept")
            + pt.log(pt.softplus(SHARPNESS * (1 - hidden)) / SHARPNESS)
            + prior("offset") * rows[:, 1]
            + pt.dot(design, effect[sizes.devices :])
        )
        _student_likelihood(pm, rows[:, 0], mu, prior("sigma"), prior("nu_above") + _LEAST_NU)
    return graph


def _student_likelihood(pm: Any, y: Any, mu: Any, sigma: Any, nu: Any) -> None:
    """Add the log-likelihood of a Student t, with its normaliser once instead of in every row.

    Compiling and sampling take three quarters of the time of ``pm.StudentT``.
    """
    pt = pm.math.pt
    half = (nu + 1) / 2
    log_scale = pt.gammaln(half) - pt.gammaln(nu / 2) - pt.log(nu * np.pi) / 2 - pt.log(sigma)
    spread = pt.sum(pt.log1p(((y - mu) / sigma) ** 2 / nu))
    pm.Potential("likelihood", y.shape[0] * log_scale - half * spread)


def effect_shapes(sizes: Structure) -> dict[str, tuple[int, ...]]:
    """Return the shape of each effect, in the order of the graph."""
    return {name: tuple(getattr(sizes, axis) for axis in DRAWS[name]) for name in SPREADS}


def _split_normals(z: Floats, sizes: Structure) -> dict[str, Floats]:
    """Return the standard normals of each effect by name, as ``*_z``."""
    shapes = effect_shapes(sizes)
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
    return {
        f"{name}_z": part.reshape(*z.shape[:-1], *shapes[name])
        for name, part in zip(shapes, np.split(z, ends, axis=-1), strict=True)
    }


def prior_draws(rng: np.random.Generator, n: int, sizes: Structure) -> dict[str, Floats]:
    """Draw parameters from their priors, with the names of the graph's variables.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of draws.
    sizes : Structure
        Numbers of devices, models and columns, without padding.
    """
    draw: dict[str, Any] = {
        "Normal": rng.normal,
        "HalfNormal": lambda scale, size: np.abs(rng.normal(0.0, scale, size)),
        "LogNormal": rng.lognormal,
        "Gamma": lambda shape, rate, size: rng.gamma(shape, 1 / rate, size),
    }
    draws = {
        name: draw[prior.distribution](
            *prior.args, size=(n, sizes.launch) if name == "launch" else n
        )
        for name, prior in PRIORS.items()
    }
    shapes = effect_shapes(sizes)
    z = {f"{name}_z": rng.normal(size=(n, *shape)) for name, shape in shapes.items()}
    return {**draws, **z}


def effects(variables: Mapping[str, Floats], *, devices: bool, models: bool) -> dict[str, Floats]:
    """Turn variables of the graph into the draws of the model: effects instead of ``*_z``.

    Parameters
    ----------
    variables : mapping of str to ndarray
        The first axes are those of the draws.
    devices, models : bool
        Whether the level exists; without it its effects are 0.
    """
    v = variables
    present = {"device": float(devices), "model": float(models)}
    scaled = {}
    for name, spread in SPREADS.items():
        z = v[f"{name}_z"]
        sd = v[spread].reshape(*v[spread].shape, *[1] * (z.ndim - v[spread].ndim))
        scaled[name] = present.get(name.partition("_")[0], 1.0) * sd * z
    unscaled = {name: v[name] for name in ("intercept", "sigma", "offset", "launch")}
    return {**unscaled, "nu": _LEAST_NU + v["nu_above"], **scaled}


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Draws of the graph's variables in finished chains, shapes (chains, draws, ...).

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
    n_jobs: int | None,
    target_accept: float,
    seed: int,
) -> Sampled:
    """Sample the posterior with NUTS; when interrupted, return the finished chains.

    Raises
    ------
    KeyboardInterrupt
        Interrupted before the first chain was finished.
    """
    compiled = compiled_graph(structure, data)
    _, nutpie = import_pymc()
    began = time.perf_counter()
    sampler = nutpie.sample(
        compiled,
        draws=draws,
        tune=tune,
        chains=chains,
        cores=count_jobs(n_jobs),
        target_accept=target_accept,
        seed=seed,
        progress_bar=False,
        save_warmup=False,
        blocking=False,
    )
    try:
        trace = sampler.wait()
    except KeyboardInterrupt:
        with quiet():
            trace = sampler.abort()
    seconds = time.perf_counter() - began
    finished = _finished(trace, draws)
    if not finished.any():
        raise KeyboardInterrupt
    variables = {name: trace.posterior[name].values[finished] for name in (*PRIORS, _EFFECTS)}
    z = variables.pop(_EFFECTS)
    return Sampled(
        {**variables, **_split_normals(z, structure)},
        {n: trace.sample_stats[n].values[finished] for n in ("diverging", "energy", "n_steps")},
        seconds,
    )


def _finished(trace: Any, draws: int) -> NDArray[np.bool_]:
    """Return which chains have all their draws; a missing draw is NaN."""
    energy = trace.sample_stats["energy"].values
    finished: NDArray[np.bool_] = np.isfinite(energy).sum(axis=1) == draws
    return finished
