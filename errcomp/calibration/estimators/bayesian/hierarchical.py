r"""The hierarchical model once it is fitted: posterior draws as arrays, predicting with SciPy.

Draw s of the posterior gives, for run i on device d and of model f,

.. math:: y_i \sim t_{\nu_s}(\mu_{is}, \sigma_s), \qquad
          \mu_{is} = c_s + a_{ds} + m_{fs}
          + \ln\!\Big(1 - e^{k_{ds}} \sum_j \kappa_{js} L_{ij}\Big) + w_s o_i
          + z_i^\top (B_s + b_{ds})

and all draws together are the posterior predictive distribution: a mixture of Student t with
equal weights. An unknown device (or model) has its own draws, from the distribution of all devices
(one per posterior draw), so that its band is as wide as devices differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from errcomp.calibration.design import Floats, as_features, as_names, check_known
from errcomp.calibration.evaluation.scoring import check_probabilities
from errcomp.errors import InputError, describe_names
from errcomp.stats.mixtures import StudentMixture

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.calibration.design import Names

__all__ = [
    "DRAWS",
    "SHARPNESS",
    "HierarchicalModel",
    "LaunchOverhead",
    "log_remainder",
]

_LARGEST = 1e6
#: Largest logarithm of a factor, so that the factor is finite.
_LARGEST_LOG = 100.0
#: Arrays of draws, with the shape of a draw in terms of the model's sizes.
DRAWS: dict[str, tuple[str, ...]] = {
    "intercept": (),
    "sigma": (),
    "nu": (),
    "offset": (),
    "launch": ("launch",),
    "linear": ("linear",),
    "device_shift": ("devices",),
    "device_launch": ("devices",),
    "device_slope": ("devices", "varying"),
    "model_shift": ("models",),
}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The role of each column of the features.

    Attributes
    ----------
    names : tuple of str
        Names of all columns, in the order of the fit.
    launch : tuple of int
        Costs: shares of the summed kernels, L.
    offset : int or None
        Column with a coefficient near 1.
    linear : tuple of int
        Linear terms, standardised.
    center, scale : ndarray, shape (len(linear),)
        Their mean and standard deviation over the runs of the fit.
    varying : tuple of int
        Columns of `linear` whose coefficient depends on the device.
    """

    names: tuple[str, ...]
    launch: tuple[int, ...]
    offset: int | None
    linear: tuple[int, ...]
    center: Floats
    scale: Floats
    varying: tuple[int, ...] = ()

    @property
    def varying_at(self) -> list[int]:
        """Positions of `varying` in `linear`."""
        return [self.linear.index(column) for column in self.varying]

    @property
    def used(self) -> tuple[int, ...]:
        """All columns that the model uses, ascending."""
        offset = () if self.offset is None else (self.offset,)
        return tuple(sorted({*self.launch, *offset, *self.linear}))

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return costs, offset and standardised features: shapes (n, l), (n,) and (n, p).

        Raises
        ------
        InputError
            The number of columns differs from the fit, or a used column is NaN.
        """
        rows = as_features(x, len(self.names))
        check_known(rows, self.used, self.names, " (boosted)")
        offset = np.zeros(len(rows)) if self.offset is None else rows[:, self.offset]
        linear = (rows[:, self.linear] - self.center) / self.scale
        return rows[:, self.launch], offset, linear


def checked_draws(draws: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Floats]:
    """Return the draws after checking their shapes; an array without values may be missing."""
    shapes = {name: tuple(sizes[axis] for axis in axes) for name, axes in DRAWS.items()}
    missing = [
        name
        for name, shape in shapes.items()
        if not isinstance(draws.get(name), np.ndarray) and (name in draws or 0 not in shape)
    ]
    if missing:
        raise InputError(f"the model lacks the arrays {', '.join(missing)}. Fit the model again.")
    n = len(np.atleast_1d(draws["sigma"]))
    arrays = {name: draws.get(name, np.empty((n, *shape))) for name, shape in shapes.items()}
    for name, values in arrays.items():
        shape = (n, *shapes[name])
        if values.shape != shape or values.dtype != np.float64 or not n:
            raise InputError(
                f"{name} must be float64 of shape {shape}, got {values.dtype} of shape "
                f"{values.shape}. Fit the model again."
            )
        most = _LARGEST_LOG if name == "device_launch" else _LARGEST
        if not (np.abs(values) < most).all():
            raise InputError(
                f"{name} must be finite, from {-most:g} to {most:g}. Fit the model again."
            )
    for name in ("sigma", "nu"):
        if not (arrays[name] > 0).all():
            raise InputError(f"{name} must be above 0, got {arrays[name].min()}. Fit again.")
    return arrays


def texts(meta: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of distinct texts."""
    listed = meta.get(name)
    fine = isinstance(listed, list) and all(isinstance(text, str) for text in listed)
    if not fine or len(set(listed or ())) < len(listed or ()):
        raise InputError(f"{name} must be a list of distinct strings, got {str(listed)[:80]}.")
    return tuple(listed or ())


def columns_of_meta(
    meta: Mapping[str, Any], names: tuple[str, ...], arrays: Mapping[str, Any]
) -> Columns:
    """Restore the columns."""
    offset = meta.get("offset")
    varying = meta.get("varying", [])
    given = [meta.get("launch"), meta.get("linear"), [] if offset is None else [offset]]
    if not all(isinstance(part, list) for part in (*given, varying)):
        raise InputError(
            "launch, linear and varying must be lists of columns. Fit the model again."
        )
    flat = [column for part in given for column in part or ()]
    fine = all(type(column) is int and 0 <= column < len(names) for column in flat)
    if not fine or len(set(flat)) < len(flat):
        raise InputError(
            f"launch, linear and offset must be distinct positions among {len(names)} columns, got "
            f"{str(flat)[:80]}. Fit the model again."
        )
    launch, linear = tuple(given[0] or ()), tuple(given[1] or ())
    if len({c for c in linear if c in varying}) < len(varying):
        raise InputError(
            f"varying must be distinct linear columns, got {str(varying)[:80]}. Fit the model "
            "again."
        )
    parts = []
    for name in ("center", "scale"):
        values = arrays.get(name)
        if (
            not isinstance(values, np.ndarray)
            or values.shape != (len(linear),)
            or values.dtype != np.float64
            or not np.isfinite(values).all()
        ):
            raise InputError(
                f"{name} must be one finite float64 per linear column. Fit the model again."
            )
        parts.append(values)
    if not (parts[1] > 0).all():
        raise InputError("scale must be above 0. Fit the model again.")
    return Columns(names, launch, offset, linear, parts[0], parts[1], tuple(varying))


#: Sharpness of the soft maximum that keeps the rest of a run above 0.
SHARPNESS = 20.0


def log_remainder(launches: Floats) -> Floats:
    r"""Return the log of the share of a run that remains when its launches are hidden.

    .. math:: \ln \tfrac{1}{20} \ln\!\big(1 + e^{20 (1 - u)}\big) \approx \ln(1 - u)

    to 1e-5 for u below 0.5. It is defined above 1, where nothing would remain; there it falls like
    :math:`20 (1 - u)`.

    Parameters
    ----------
    launches : ndarray
        u, hidden launch time as a share of the kernels; negative where time is added.

    Returns
    -------
    ndarray of the same shape

    Examples
    --------
    >>> log_remainder(np.array([0.0, 0.2, -0.1])).round(4).tolist()
    [0.0, -0.2231, 0.0953]
    """
    left = SHARPNESS * (1 - launches)
    # Far below 0 the logarithm of the soft maximum is its argument.
    soft = np.log(np.logaddexp(0.0, np.maximum(left, -30.0)))
    remainder: Floats = np.where(left < -30.0, left, soft) - np.log(SHARPNESS)
    return remainder


@dataclass(frozen=True, slots=True, eq=False)
class LaunchOverhead:
    """Posterior cost of launching a kernel on a device, in µs.

    Attributes
    ----------
    device : str
        ``""`` for a device that was not in the fit.
    column : str
        The column of costs.
    median, low, high : float
        µs; low and high are the ends of the 90 % interval.
    draws : ndarray, shape (draws,)
        µs, for a figure.
    """

    device: str
    column: str
    median: float
    low: float
    high: float
    draws: Floats


class HierarchicalModel:
    """The posterior draws of a `BayesianResidual`, which predict.

    Parameters
    ----------
    columns : Columns
    devices, models : sequence of str
        Devices and models of the fit; empty where the model has no such level.
    draws : mapping of str to ndarray
        ``intercept``, ``sigma``, ``nu``, ``offset`` of shape (draws,); ``launch``, ``linear`` of
        shape (draws, columns); ``device_shift``, ``device_launch`` of shape (draws, devices + 1),
        ``device_slope`` (draws, devices + 1, varying columns), ``model_shift``
        (draws, models + 1), the last for an unknown one. Log-ratios, except ``device_launch``
        (log of a factor), ``launch``, ``offset`` and ``nu`` (no unit). Empty arrays may be
        missing.

    Raises
    ------
    InputError
        An array is missing, has another shape, is not finite, or a scale is not positive.

    Notes
    -----
    Valid for runs like those of the fit. The band of a new device reflects how much the devices of
    the fit differ; a new kind of device may differ more.
    """

    KIND = "hierarchical"

    def __init__(
        self,
        columns: Columns,
        devices: Sequence[str],
        models: Sequence[str],
        draws: Mapping[str, Floats],
    ) -> None:
        self.columns = columns
        self.devices = tuple(devices)
        self.models = tuple(models)
        self.draws = checked_draws(
            draws,
            {
                "launch": len(columns.launch),
                "linear": len(columns.linear),
                "varying": len(columns.varying),
                "devices": len(self.devices) + 1,
                "models": len(self.models) + 1,
            },
        )

    def __repr__(self) -> str:
        return (
            f"HierarchicalModel(devices={len(self.devices)}, models={len(self.models)}, "
            f"columns={len(self.columns.names)}, draws={self.n_draws})"
        )

    @cached_property
    def _mixture(self) -> StudentMixture:
        return StudentMixture(self.draws["sigma"], self.draws["nu"])

    @property
    def n_draws(self) -> int:
        """Number of posterior draws."""
        return len(self.draws["sigma"])

    def location(
        self, x: Floats, *, device: Names | None = None, model: Names | None = None
    ) -> Floats:
        """Return μ of each run under each draw, shape (n, draws).

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> model.location(np.array([[0.0]])).round(2).tolist()
        [[0.1, 0.1]]
        """
        total: Floats = np.sum(list(self._terms(x, device, model).values()), axis=0)
        return total

    def parts(
        self, x: Floats, *, device: Names | None = None, model: Names | None = None
    ) -> dict[str, Floats]:
        """Return the contribution of each source to the log-ratio: posterior means, shape (n,).

        Returns
        -------
        dict
            ``launches``, ``offset``, ``linear``, ``device`` (its shift and its own coefficients),
            ``model`` and ``intercept``; they add up to the posterior mean of μ.

        Raises
        ------
        InputError
            The number of features differs from the fit, or a needed feature is NaN.

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> model.parts(np.array([[0.2]]))["launches"].round(2).tolist()
        [-0.22]
        """
        terms = self._terms(x, device, model)
        return {name: term.mean(axis=1) for name, term in terms.items()}

    def _terms(self, x: Floats, device: Names | None, model: Names | None) -> dict[str, Floats]:
        """Return the contribution of each source to μ under each draw, shape (n, draws) each."""
        launches, offset, linear = self.columns.split(x)
        n, draws = len(offset), self.draws
        on = _positions(as_names(device, n, "device"), self.devices)
        of = _positions(as_names(model, n, "model"), self.models)
        factor = np.exp(draws["device_launch"])[:, on].T
        varied = linear[:, self.columns.varying_at]
        slopes = np.einsum("nv,snv->ns", varied, draws["device_slope"][:, on])
        return {
            "launches": log_remainder(factor * (launches @ draws["launch"].T)),
            "offset": offset[:, None] * draws["offset"],
            "linear": linear @ draws["linear"].T,
            "device": draws["device_shift"][:, on].T + slopes,
            "model": draws["model_shift"][:, of].T,
            "intercept": np.broadcast_to(draws["intercept"], (n, self.n_draws)),
        }

    def predict_quantiles(
        self,
        x: Floats,
        q: Sequence[float],
        *,
        device: Names | None = None,
        model: Names | None = None,
    ) -> Floats:
        r"""Return quantiles of the posterior predictive distribution of the log-ratio.

        The quantile y at probability q solves

        .. math:: \frac1S \sum_{s=1}^S T_{\nu_s}\!\left(\frac{y - \mu_{is}}{\sigma_s}\right) = q

        to 1e-5 of probability: a safeguarded Newton iteration, all rows at once.

        Parameters
        ----------
        x : array_like, shape (n, p)
            The features of the fit, in their order.
        q : sequence of float
            Probabilities, ascending.
        device, model : ndarray of str, shape (n,), optional
            Unknown devices (models) are predicted from all devices (models).

        Returns
        -------
        ndarray, shape (n, len(q))

        Raises
        ------
        InputError
            The number of features differs from the fit, a needed feature is NaN, or q are not
            ascending probabilities.

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> model.predict_quantiles([[0.0]], [0.5]).round(2).tolist()
        [[0.1]]
        """
        wanted = check_probabilities(q)
        mu = self.location(x, device=device, model=model)
        return self._mixture.quantiles(mu, wanted)

    def sample(
        self,
        x: Floats,
        *,
        device: Names | None = None,
        model: Names | None = None,
        seed: int | Sequence[int] = 0,
    ) -> Floats:
        """Draw log-ratios of runs: one per posterior draw, shape (draws, n).

        Runs of one unknown device share its draw.

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> model.sample(np.array([[0.0]]), seed=0).shape
        (2, 1)
        """
        mu = self.location(x, device=device, model=model).T
        noise = np.random.default_rng(seed).standard_t(self.draws["nu"][:, None], size=mu.shape)
        return mu + self.draws["sigma"][:, None] * noise

    def launch_overhead(self, floor_us: float | Mapping[str, float]) -> tuple[LaunchOverhead, ...]:
        r"""Return the cost of a launch on each device, in µs: :math:`\kappa_j e^{k_d} f_d`.

        Parameters
        ----------
        floor_us : float or mapping of device to float
            Launch floor f in µs with which the costs were computed, or one per device. ``""``
            stands for an unknown device, which is left out if the mapping lacks it.

        Returns
        -------
        tuple of LaunchOverhead
            Per device and cost; the unknown device last. A negative cost is time between kernels
            that the sum of kernels lacks.

        Raises
        ------
        InputError
            A floor is not a positive number, or is missing for a device.

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> [cost.median for cost in model.launch_overhead(5.0)]
        [5.0]
        """
        floors = _checked_floors(floor_us, self.devices)
        overheads = []
        for d, name in enumerate((*self.devices, "")):
            if name not in floors:
                continue
            factor = floors[name] * np.exp(self.draws["device_launch"][:, d])
            for j, column in enumerate(self.columns.launch):
                draws = factor * self.draws["launch"][:, j]
                low, median, high = np.quantile(draws, (0.05, 0.5, 0.95)).tolist()
                label = self.columns.names[column]
                overheads.append(LaunchOverhead(name, label, median, low, high, draws))
        return tuple(overheads)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores the model.

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> meta, arrays = model.to_arrays()
        >>> arrays["launch"].tolist()
        [[1.0], [1.0]]
        """
        c = self.columns
        lists = {name: list(getattr(c, name)) for name in ("names", "launch", "linear", "varying")}
        meta = {
            **lists,
            "offset": c.offset,
            "devices": list(self.devices),
            "models": list(self.models),
        }
        return meta, {"center": c.center, "scale": c.scale, **self.draws}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the model.

        Raises
        ------
        InputError
            A value is missing or impossible.

        Examples
        --------
        >>> one = np.ones(2)
        >>> draws = {"intercept": 0.1 * one, "sigma": 0.02 * one, "nu": 5 * one, "offset": one,
        ...          "device_shift": np.zeros((2, 1)), "device_launch": np.zeros((2, 1)),
        ...          "model_shift": np.zeros((2, 1)), "launch": np.full((2, 1), 1.0)}
        >>> columns = Columns(("cost",), (0,), None, (), np.empty(0), np.empty(0), ())
        >>> model = HierarchicalModel(columns, (), (), draws)
        >>> HierarchicalModel.from_arrays(*model.to_arrays())
        HierarchicalModel(devices=0, models=0, columns=1, draws=2)
        """
        lists = {name: texts(meta, name) for name in ("names", "devices", "models")}
        columns = columns_of_meta(meta, lists["names"], arrays)
        draws = {name: values for name, values in arrays.items() if name in DRAWS}
        return cls(columns, lists["devices"], lists["models"], draws)


def _checked_floors(
    floor_us: float | Mapping[str, float], devices: Sequence[str]
) -> dict[str, float]:
    """Return the launch floor of each device and, if given, of an unknown device."""
    if isinstance(floor_us, Mapping):
        given = dict(floor_us)
    else:
        given = dict.fromkeys((*devices, ""), floor_us)
    missing = [name for name in devices if name not in given]
    if missing:
        raise InputError(
            f"floor_us lacks {describe_names(missing)}. Give the launch floor (the time of the "
            "shortest kernels, in µs) of every device in the fit."
        )
    for name, floor in given.items():
        if not isinstance(floor, Real) or not 0 < floor < np.inf:
            of = f" of {name}" if name else ""
            raise InputError(
                f"floor_us{of} must be a number above 0, got {floor!r}. Give microseconds."
            )
    return {name: float(floor) for name, floor in given.items()}


def _positions(names: Names, known: Sequence[str]) -> NDArray[np.int64]:
    """Return the position of each name; for an unknown name, the position after the last."""
    at = {name: i for i, name in enumerate(known) if name}
    return np.asarray([at.get(name, len(known)) for name in names], dtype=np.int64)
