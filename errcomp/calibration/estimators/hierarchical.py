r"""The hierarchical model once it is fitted: posterior draws as arrays, predicting with SciPy.

Draw s of the posterior says of run i on device d, of model f,

.. math:: y_i \sim t_{\nu_s}(\mu_{is}, \sigma_s), \qquad
          \mu_{is} = c_s + a_{ds} + m_{fs}
          + \ln\!\Big(1 - e^{k_{ds}} \sum_j \kappa_{js} L_{ij}\Big) + w_s o_i
          + z_i^\top (B_s + b_{ds})

and all draws together are the posterior predictive distribution: a mixture of Student t with
equal weights. An unknown device (or model) has draws of its own, one from the distribution of all
devices per draw of that distribution, so that its band is as wide as devices differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import stdtr, stdtrit

from errcomp.calibration.estimators.base import as_names
from errcomp.calibration.estimators.hierarchical_arrays import (
    DRAWS,
    Columns,
    checked_draws,
    columns_of_meta,
    texts,
)
from errcomp.calibration.evaluation.scoring import check_probabilities
from errcomp.errors import InputError, describe_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from errcomp.calibration.design import Floats, Names

__all__ = ["SHARPNESS", "Columns", "HierarchicalModel", "LaunchOverhead", "log_remainder"]


#: Sharpness of the soft maximum that keeps what is left of a run above 0.
SHARPNESS = 20.0


def log_remainder(launches: Floats) -> Floats:
    r"""Return the log of the share of a run that is left when its launches are hidden.

    .. math:: \ln \tfrac{1}{20} \ln\!\big(1 + e^{20 (1 - u)}\big) \approx \ln(1 - u)

    to 1e-5 for u below 0.5, and defined above 1, where nothing would be left: there it falls like
    :math:`20 (1 - u)`.

    Parameters
    ----------
    launches : ndarray
        u, time of launches that disappears, as a share of the kernels; negative where time is
        added.

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
    found: Floats = np.where(left < -30.0, left, soft) - np.log(SHARPNESS)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class LaunchOverhead:
    """What launching one kernel costs on a device: posterior, in µs.

    Attributes
    ----------
    device : str
        ``""`` for a device that was not in the fit.
    column : str
        The cost it belongs to.
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
    """Posterior draws that predict, of a `BayesianResidual`.

    Parameters
    ----------
    columns : Columns
    devices, models : sequence of str
        Those in the fit; none where the model has no such level.
    draws : mapping of str to ndarray
        ``intercept``, ``sigma``, ``nu``, ``offset`` of shape (draws,); ``launch``, ``linear`` of
        shape (draws, columns); ``device_shift``, ``device_launch`` of shape (draws, devices + 1),
        ``device_slope`` (draws, devices + 1, varying columns), ``model_shift``
        (draws, models + 1), the last for an unknown one. Log-ratios, except ``device_launch``
        (log of a factor), ``launch``, ``offset`` and ``nu`` (no unit). An array that would have
        no values may be missing.

    Raises
    ------
    InputError
        An array is missing, has another shape, is not finite, or a scale is not positive.

    Notes
    -----
    Valid for runs like those of the fit: the band of a new device says how much the devices of
    the fit differ, not what a device of a new kind may do.
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
        """Return μ of each run under each draw, shape (n, draws)."""
        total: Floats = np.sum(list(self._terms(x, device, model).values()), axis=0)
        return total

    def parts(
        self, x: Floats, *, device: Names | None = None, model: Names | None = None
    ) -> dict[str, Floats]:
        """Return what each source adds to the log-ratio: posterior means, shape (n,) each.

        Returns
        -------
        dict
            ``launches``, ``offset``, ``linear``, ``device`` (its shift, and what its own
            coefficients add), ``model`` and ``intercept``; they add up to the posterior mean of μ.

        Raises
        ------
        InputError
            There are not as many features as in the fit, or one that is needed is NaN.
        """
        terms = self._terms(x, device, model)
        return {name: term.mean(axis=1) for name, term in terms.items()}

    def _terms(self, x: Floats, device: Names | None, model: Names | None) -> dict[str, Floats]:
        """Return what each source adds to μ under each draw, shape (n, draws) each."""
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
            Unknown ones are answered at the level of all devices (models).

        Returns
        -------
        ndarray, shape (n, len(q))

        Raises
        ------
        InputError
            There are not as many features as in the fit, one that is needed is NaN, or q are no
            ascending probabilities.
        """
        wanted = check_probabilities(q)
        mu = self.location(x, device=device, model=model)
        return self._mixture.quantiles(mu, wanted)

    def sample(
        self,
        x: Floats,
        rng: np.random.Generator,
        *,
        device: Names | None = None,
        model: Names | None = None,
    ) -> Floats:
        """Draw log-ratios of runs: one per posterior draw, shape (draws, n).

        Runs of one unknown device share what that draw says of it.
        """
        mu = self.location(x, device=device, model=model).T
        noise = rng.standard_t(self.draws["nu"][:, None], size=mu.shape)
        return mu + self.draws["sigma"][:, None] * noise

    def launch_overhead(self, floor_us: float | Mapping[str, float]) -> tuple[LaunchOverhead, ...]:
        r"""Return what one launch costs on each device, in µs: :math:`\kappa_j e^{k_d} f_d`.

        Parameters
        ----------
        floor_us : float or mapping of device to float
            Launch floor f in µs that the costs were made with; of each device, and of ``""`` for
            an unknown one, which is left out where the mapping lacks it.

        Returns
        -------
        tuple of LaunchOverhead
            Per device and cost; the unknown device last. Negative: time between kernels that the
            sum of kernels lacks.

        Raises
        ------
        InputError
            A floor is not a positive number, or is missing for a device.
        """
        floors = _checked_floors(floor_us, self.devices)
        found = []
        for d, name in enumerate((*self.devices, "")):
            if name not in floors:
                continue
            factor = floors[name] * np.exp(self.draws["device_launch"][:, d])
            for j, column in enumerate(self.columns.launch):
                draws = factor * self.draws["launch"][:, j]
                low, median, high = np.quantile(draws, (0.05, 0.5, 0.95)).tolist()
                label = self.columns.names[column]
                found.append(LaunchOverhead(name, label, median, low, high, draws))
        return tuple(found)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays, that make the model again."""
        c = self.columns
        meta = {
            "names": list(c.names),
            "launch": list(c.launch),
            "offset": c.offset,
            "linear": list(c.linear),
            "varying": list(c.varying),
            "devices": list(self.devices),
            "models": list(self.models),
        }
        return meta, {"center": c.center, "scale": c.scale, **self.draws}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the model again.

        Raises
        ------
        InputError
            Something is missing or cannot be.
        """
        lists = {name: texts(meta, name) for name in ("names", "devices", "models")}
        columns = columns_of_meta(meta, lists["names"], arrays)
        draws = {name: values for name, values in arrays.items() if name in DRAWS}
        return cls(columns, lists["devices"], lists["models"], draws)


def _checked_floors(
    floor_us: float | Mapping[str, float], devices: Sequence[str]
) -> dict[str, float]:
    """Return the launch floor of each device and, where there is one, of an unknown one."""
    if isinstance(floor_us, Mapping):
        given = dict(floor_us)
    else:
        given = dict.fromkeys((*devices, ""), floor_us)
    missing = [name for name in devices if name not in given]
    if missing:
        raise InputError(
            f"floor_us lacks {describe_names(missing)}. Give the launch floor of every device in "
            "the fit."
        )
    for name, floor in given.items():
        if not isinstance(floor, Real) or not 0 < floor < np.inf:
            of = f" of {name}" if name else ""
            raise InputError(
                f"floor_us{of} must be a number above 0, got {floor!r}. Give microseconds."
            )
    return {name: float(floor) for name, floor in given.items()}


def _positions(names: Names, known: Sequence[str]) -> NDArray[np.int64]:
    """Return the position of each name; that after the last for an unknown one."""
    at = {name: i for i, name in enumerate(known) if name}
    return np.asarray([at.get(name, len(known)) for name in names], dtype=np.int64)


# Quantiles of a mixture of Student t distributions with equal weights, for many rows at once.

#: Of the table of each component's distribution function; its error is then below 3e-6.
_KNOTS = 513
#: A quantile is found when its probability is this close.
_TOLERANCE = 1e-7
_MOST_STEPS = 60
#: Numbers held at once while quantiles are sought.
_BLOCK = 2**19
_GOLDEN = 0.6180339887498949


class StudentMixture:
    r"""Components with scales σ and degrees of freedom ν; each row has locations of its own.

    .. math:: F_i(y) = \frac1S \sum_{s=1}^S T_{\nu_s}\!\left(\frac{y - \mu_{is}}{\sigma_s}\right)

    The distribution function of each component is tabulated once: exact values take a second per
    two million.

    Parameters
    ----------
    sigma, nu : ndarray, shape (S,)
        Positive.

    Examples
    --------
    >>> mixture = StudentMixture(sigma=np.array([1.0, 1.0]), nu=np.array([5.0, 5.0]))
    >>> mixture.quantiles(np.array([[-9.0, 9.0], [2.0, 2.0]]), np.array([0.25, 0.75])).round(3)
    array([[-9.   ,  9.   ],
           [ 1.273,  2.727]])
    """

    def __init__(self, sigma: Floats, nu: Floats) -> None:
        self.sigma, self.nu = sigma, nu

    def quantiles(self, mu: Floats, q: Floats) -> Floats:
        """Return the quantiles of each row.

        Parameters
        ----------
        mu : ndarray, shape (n, S)
            Locations of the components.
        q : ndarray, shape (m,)
            Ascending probabilities.

        Returns
        -------
        ndarray, shape (n, m)
            Ascending in every row, to 1e-5 of probability.
        """
        rows = max(1, _BLOCK // (len(self.sigma) * len(q)))
        found = np.empty((len(mu), len(q)))
        for start in range(0, len(mu), rows):
            found[start : start + rows] = self._solve(mu[start : start + rows], q)
        # Neighbouring quantiles may be equal to the tolerance.
        return np.maximum.accumulate(found, axis=1)

    @cached_property
    def _table(self) -> Floats:
        """Distribution function of each component at z = t / (1 - t), t from 0 to 1."""
        t = np.linspace(0.0, 1.0, _KNOTS)[:-1]
        values = stdtr(self.nu[:, None], t / (1 - t))
        # One column more than knots, so that the last cell has an upper end too.
        return np.concatenate([values, np.ones((len(self.nu), 2))], axis=1)

    def _cdf(self, y: Floats, mu: Floats) -> tuple[Floats, Floats]:
        """Return the distribution function of the mixture and its density at y, (b, q) each."""
        z = (y[:, :, None] - mu[:, None, :]) / self.sigma
        size = np.abs(z)
        t = size / (1 + size)
        at = t * (_KNOTS - 1)
        cell = at.astype(np.intp)
        flat = cell + np.arange(len(self.sigma)) * self._table.shape[1]
        lower = self._table.ravel()[flat]
        rise = self._table.ravel()[flat + 1] - lower
        upper = lower + (at - cell) * rise
        cdf = np.where(z < 0, 1 - upper, upper).mean(axis=2)
        density = (rise * (_KNOTS - 1) * (1 - t) ** 2 / self.sigma).mean(axis=2)
        return cdf, density

    def _solve(self, mu: Floats, q: Floats) -> Floats:
        """Return the quantiles of a block of rows, shape (b, len(q))."""
        # The quantile of a mixture lies between those of its components.
        low, high = np.empty((2, len(mu), len(q)))
        for j, p in enumerate(q):
            each = mu + self.sigma * stdtrit(self.nu, p)
            low[:, j], high[:, j] = each.min(axis=1), each.max(axis=1)
        # Start at the quantiles of one value from each component, evenly spread.
        spread = self.sigma * stdtrit(self.nu, (0.5 + np.arange(len(self.sigma))) * _GOLDEN % 1)
        y = np.clip(np.quantile(mu + spread, q, axis=1).T, low, high)
        for _ in range(_MOST_STEPS):
            cdf, density = self._cdf(y, mu)
            off = cdf - q
            if (np.abs(off) < _TOLERANCE).all():
                break
            high, low = np.where(off > 0, y, high), np.where(off > 0, low, y)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = y - off / density
            inside = (step > low) & (step < high)
            y = np.where(inside, step, (low + high) / 2)
        return y
