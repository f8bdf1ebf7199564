r"""The physical model of the log-ratio, fitted in milliseconds.

.. math:: \min_\theta \sum_i -\ln t_\nu\!\left(\frac{y_i - \mu_i(\theta)}{\sigma}\right)
          + \tfrac12 \sum_j \frac{(\theta_j - \theta_{0j})^2}{s_j^2}

with μ of `errcomp.calibration.estimators.physics.model`, by Gauss-Newton steps on weighted
residuals (Student t errors as weights, Lange, Little and Taylor 1989). How strongly intercept and
devices are shrunken is not known beforehand: each of a few choices is tried on held-out devices and
models, and the predictions are averaged with weights that fall with that error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from errcomp.calibration.design import (
    Floats,
    Parameters,
    Predicting,
    as_features,
    as_names,
    as_targets,
    check_known,
    position,
)
from errcomp.calibration.estimators.physics.model import (
    Columns,
    PhysicsModel,
    Terms,
    terms_of,
)
from errcomp.calibration.estimators.shared.spread import (
    Integers,
    LeftOut,
    Spread,
    Spreads,
    fit_spread,
    left_out,
)
from errcomp.errors import InputError

__all__ = ["PhysicsResidual"]

#: Degrees of freedom: few, so that a disturbed run does not move the others.
_DEGREES = 3.0
#: Prior mean and standard deviation: a run hides each launch once, the correction is right, and a
#: host needs about 5 µs to launch a kernel.
_PRIORS = {
    "offset": (1.0, 0.2),
    "launch": (1.0, 0.5),
    "device_launch": (0.0, 0.1),
    "host": (np.log(5.0), 1.0),
}
#: Standard deviations of the intercept and of the devices' shifts, to choose from.
_CHOICES = [(level, shift) for level in (0.005, 0.02, 0.1) for shift in (0.01, 0.05)]
#: Mean held-out error (ln) by which a choice must be worse to count e times less, per run.
_EQUAL = 0.05
_STEPS, _SHORT = 60, 15
_SMALLEST = 1e-3


class PhysicsResidual(Parameters, Predicting):
    r"""Launch costs, the host that issues them and devices, by penalised least squares.

    Parameters
    ----------
    launch : sequence of int
        Columns of costs: launch time as a share of the summed kernels.
    host : sequence of int
        Columns of launches per µs of the summed kernels; where the host takes longer than the
        kernels, the run takes as long as the host.
    offset : int, optional
        Column of a correction in logs.

    Attributes
    ----------
    portable_ : PhysicsModel
    n_features_in_ : int

    Notes
    -----
    A device that was not in the fit has no shift of its own. Valid where runs wait for kernels or
    for launches; time for transfers between devices is not part of it.

    References
    ----------
    Lange, Little and Taylor (1989), "Robust Statistical Modeling Using the t Distribution", JASA
    84(408), 881-896, doi:10.1080/01621459.1989.10478852.

    Examples
    --------
    Launches that hide once, except in one disturbed run:

    >>> share = np.linspace(0.0, 0.4, 20)
    >>> y = np.log(1 - share)
    >>> y[3] += 0.5
    >>> model = PhysicsResidual(launch=[0]).fit(share[:, None], y)
    >>> model.predict([[0.3]]).round(2).tolist(), np.log(0.7).round(2)
    ([-0.36], np.float64(-0.36))
    """

    portable_: PhysicsModel

    def __init__(
        self,
        launch: Sequence[int] = (),
        host: Sequence[int] = (),
        offset: int | None = None,
    ) -> None:
        self.launch = launch
        self.host = host
        self.offset = offset

    def fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        *,
        device: ArrayLike | None = None,
        model: ArrayLike | None = None,
    ) -> Self:
        """Fit the log-ratios.

        Parameters
        ----------
        X : array_like, shape (n, p)
        y : array_like, shape (n,)
            Log of the measured run to the sum of its kernels.
        device, model : array_like of str, shape (n,), optional
            Groups held out to choose the shrinkage and to learn the width of bands.

        Returns
        -------
        self

        Raises
        ------
        InputError
            Values are not finite numbers, shapes differ, a column does not exist, or there are
            fewer than two runs.

        Examples
        --------
        >>> model = PhysicsResidual().fit([[0.0]] * 4, [0.1, 0.1, 0.1, 0.1])
        >>> model.predict([[0.0]]).round(1).tolist()
        [0.1]
        """
        x = as_features(X)
        targets = as_targets(y, len(x))
        columns = self._columns(x.shape[1])
        check_known(x, columns.used, range(x.shape[1]), "")
        devices, models = as_names(device, len(x), "device"), as_names(model, len(x), "model")
        known = tuple(sorted(set(devices.tolist()) - {""}))
        on = np.array([known.index(d) if d else -1 for d in devices.tolist()], dtype=np.int64)
        runs = _Runs(*columns.split(x), targets, on, len(known))
        held = left_out(devices, models, seed=0)
        # With one device both are the same rows, which are fitted once.
        of = {out: targets - runs.held_out(out) for out in dict.fromkeys(held.values())}
        errors = {name: of[out] for name, out in held.items()}
        weights = _weights(sum(np.abs(found).mean(axis=1) for found in errors.values()), len(x))
        spreads: dict[str, Spread] = {
            name: fit_spread(weights @ errors[name], out.group) for name, out in held.items()
        }
        self.portable_ = PhysicsModel(
            columns,
            known,
            weights,
            runs.solve(_STEPS),
            Spreads(dict.fromkeys(known, 0.0), **spreads),
        )
        self.n_features_in_ = x.shape[1]
        return self

    def _columns(self, width: int) -> Columns:
        parts = {
            word: tuple(position(column, word, width, None) for column in columns)
            for word, columns in (("launch", self.launch), ("host", self.host))
        }
        offset = None if self.offset is None else position(self.offset, "offset", width, None)
        taken = [*parts["launch"], *parts["host"], *([] if offset is None else [offset])]
        if len(set(taken)) < len(taken):
            raise InputError(
                f"launch={self.launch!r}, host={self.host!r} and offset={self.offset!r} name a "
                "column twice. A column can have only one of these roles."
            )
        return Columns(width, parts["launch"], parts["host"], offset)


def _weights(errors: Any, runs: int) -> Floats:
    """Return the weights of the choices: the better their held-out error, the larger."""
    weights = np.exp(-(errors - errors.min()) * runs / (2 * _EQUAL))
    shares: Floats = weights / weights.sum()
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """The runs of a fit, and the parameters that fit them best."""

    costs: Floats
    hosts: Floats
    offset: Floats
    y: Floats
    on: Integers
    devices: int

    def take(self, rows: Integers) -> _Runs:
        """Return some of the runs."""
        return _Runs(
            self.costs[rows],
            self.hosts[rows],
            self.offset[rows],
            self.y[rows],
            self.on[rows],
            self.devices,
        )

    def held_out(self, out: LeftOut) -> Floats:
        """Return what each choice predicts for held-out runs, shape (choices, n)."""
        predicted = np.empty((len(_CHOICES), len(self.y)))
        for rows, held in out:
            # A device without runs keeps its prior: it has no shift.
            predicted[:, held] = self.take(held)._predict(self.take(rows).solve(_SHORT))
        return predicted

    def solve(self, steps: int) -> dict[str, Floats]:
        """Return the parameters for each choice, which is the first axis of each array."""
        sizes = {
            "intercept": 1, "offset": 1, "launch": self.costs.shape[1],
            "device_shift": self.devices, "device_launch": self.devices,
            "host": self.hosts.shape[1],
        }  # fmt: skip
        ends = np.cumsum([0, *sizes.values()])
        at = {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(sizes)}
        middle, sd = _priors(sizes)
        theta, scale = middle.copy(), np.full(len(_CHOICES), self._first_scale())
        moving = np.arange(len(_CHOICES))
        for _ in range(steps):
            here, width = theta[moving], sd[moving]
            step, scale[moving] = self._step(here, at, middle[0], width, scale[moving])
            size = np.abs(step / width).max(axis=1)
            # At most one prior standard deviation at a time: the model is only locally a line.
            theta[moving] = here + step / np.maximum(1.0, size)[:, None]
            moving = moving[size >= 1e-5]
            if not len(moving):
                break
        found = {name: theta[:, part] for name, part in at.items()}
        return {**found, "intercept": found["intercept"][:, 0], "offset": found["offset"][:, 0]}

    def _step(
        self, theta: Floats, at: dict[str, slice], middle: Floats, sd: Floats, scale: Floats
    ) -> tuple[Floats, Floats]:
        """Return the step of each choice from here, and its new scale."""
        residual, slopes = self._linear(theta, at)
        weight = (_DEGREES + 1) / (_DEGREES + (residual / scale[:, None]) ** 2)
        weighted = (weight / scale[:, None] ** 2)[:, :, None] * slopes
        prior = sd**-2
        weighted = weighted.transpose(0, 2, 1)
        precision = weighted @ slopes + prior[:, :, None] * np.eye(sd.shape[1])
        gradient = (weighted @ residual[:, :, None])[:, :, 0] - (theta - middle) * prior
        inverse = np.linalg.inv(precision)
        # As many parameters as the runs decide about, not the prior.
        used = sd.shape[1] - (np.diagonal(inverse, axis1=1, axis2=2) * prior).sum(axis=1)
        left = np.maximum(len(self.y) - used, len(self.y) / 3)
        wide = np.sqrt((weight * residual**2).sum(axis=1) / left)
        return (inverse @ gradient[:, :, None])[:, :, 0], np.maximum(wide, _SMALLEST)

    def _first_scale(self) -> float:
        spread = np.median(np.abs(self.y - np.median(self.y))) / 0.6745
        return max(float(spread), 0.01)

    def _linear(self, theta: Floats, at: dict[str, slice]) -> tuple[Floats, Floats]:
        """Return residuals, shape (choices, n), and derivatives of the location by parameter."""
        one = {name: theta[:, part] for name, part in at.items()}
        shift, terms = self._terms(one)
        location = one["intercept"] + shift + one["offset"] * self.offset + terms.both
        mine = np.equal.outer(self.on, np.arange(self.devices)).astype(np.float64)
        slopes = np.empty((len(theta), len(self.y), theta.shape[1]))
        slopes[:, :, at["intercept"]] = 1.0
        slopes[:, :, at["offset"]] = self.offset[:, None]
        slopes[:, :, at["launch"]] = terms.by_launch
        slopes[:, :, at["device_shift"]] = mine
        slopes[:, :, at["device_launch"]] = terms.by_factor[:, :, None] * mine
        slopes[:, :, at["host"]] = terms.by_host
        return self.y - location, slopes

    def _terms(self, found: dict[str, Floats]) -> tuple[Floats, Terms]:
        # A run on no known device has neither.
        none = np.zeros((len(found["device_shift"]), 1))
        shift, factor = (
            np.concatenate([found[name], none], axis=1)[:, self.on]
            for name in ("device_shift", "device_launch")
        )
        return shift, terms_of(self.costs, self.hosts, found["launch"], factor, found["host"])

    def _predict(self, found: dict[str, Floats]) -> Floats:
        """Return the location of these runs for parameters that others gave."""
        shift, terms = self._terms(found)
        intercept, offset = found["intercept"][:, None], found["offset"][:, None]
        location: Floats = intercept + shift + offset * self.offset + terms.both
        return location


def _priors(sizes: dict[str, int]) -> tuple[Floats, Floats]:
    """Return means and standard deviations of the parameters, shape (choices, parameters)."""
    each = [
        {**_PRIORS, "intercept": (0.0, level), "device_shift": (0.0, shift)}
        for level, shift in _CHOICES
    ]
    middle, sd = (
        np.array([np.repeat([one[name][i] for name in sizes], [*sizes.values()]) for one in each])
        for i in (0, 1)
    )
    return middle, sd
