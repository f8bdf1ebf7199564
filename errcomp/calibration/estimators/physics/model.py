r"""The physical model once it is fitted: a few sets of parameters, averaged.

Set k of the parameters gives, for run i on device d,

.. math:: \mu_{ik} = c_k + a_{dk} + w_k o_i + \frac1q \ln\!\Big(e^{q r_{ik}} + h_{ik}^q\Big),
          \qquad r_{ik} = \ln\!\Big(1 - e^{g_{dk}} \sum_j \kappa_{jk} L_{ij}\Big),
          \qquad h_{ik} = \sum_j e^{\eta_{jk}} H_{ij}

r is what remains of the kernels where launches hide, h the time that the host needs to issue them;
the run takes the longer of the two, with a soft transition. The location is the mean of the sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Names, as_features, as_names, check_known
from errcomp.calibration.estimators.bayesian.hierarchical import SHARPNESS, log_remainder
from errcomp.calibration.estimators.shared.spread import Spreads
from errcomp.errors import InputError

__all__ = ["PARAMETERS", "Columns", "PhysicsModel", "Terms", "terms_of"]

#: Parameters of a set, each with the axis that it has one value for.
PARAMETERS: dict[str, str] = {
    "intercept": "",
    "offset": "",
    "launch": "launch",
    "device_shift": "devices",
    "device_launch": "devices",
    "host": "host",
}
#: How sharp the transition is between a run that waits for its kernels and one for its host.
_SHARP = 4.0
_LARGEST = 50.0


@dataclass(frozen=True, slots=True)
class Columns:
    """The role of each column of the features, by position.

    Attributes
    ----------
    width : int
        Number of columns.
    launch : tuple of int
        Costs of launches, as shares of the summed kernels: L.
    host : tuple of int
        Launches (or 1) per µs of the summed kernels: H.
    offset : int or None
        A correction in logs, expected to be right.
    """

    width: int
    launch: tuple[int, ...]
    host: tuple[int, ...]
    offset: int | None

    @property
    def used(self) -> tuple[int, ...]:
        """All columns that the model reads, ascending."""
        return tuple(sorted({*self.launch, *self.host, *self._offset}))

    @property
    def _offset(self) -> tuple[int, ...]:
        return () if self.offset is None else (self.offset,)

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return costs, host and offset of each row: shapes (n, l), (n, h) and (n,)."""
        offset = np.zeros(len(x)) if self.offset is None else x[:, self.offset]
        return x[:, self.launch], x[:, self.host], offset


class Terms(NamedTuple):
    """What launches and host make of the kernels, and the derivatives.

    Attributes
    ----------
    remainder : ndarray, shape (..., n)
        ln of what remains of the kernels where launches hide.
    both : ndarray, shape (..., n)
        ln of the longer of kernels and host.
    by_launch, by_host : ndarray, shape (..., n, l) and (..., n, h)
        Derivatives of `both` with respect to κ and η.
    by_factor : ndarray, shape (..., n)
        Derivative with respect to the device's factor g.
    """

    remainder: Floats
    both: Floats
    by_launch: Floats
    by_host: Floats
    by_factor: Floats


def terms_of(costs: Floats, hosts: Floats, launch: Floats, factor: Floats, host: Floats) -> Terms:
    """Return the terms of runs for one set of parameters, or for several at once.

    Parameters
    ----------
    costs : ndarray, shape (n, l)
    hosts : ndarray, shape (n, h)
    launch : ndarray, shape (..., l)
        κ.
    factor : ndarray, shape (..., n)
        g of the device of each run.
    host : ndarray, shape (..., h)
        η, logs of µs.

    Examples
    --------
    A run whose launches are all hidden, 20 % of its kernels:

    >>> none = np.zeros((1, 0))
    >>> found = terms_of(np.array([[0.2]]), none, np.ones(1), np.zeros(1), np.zeros(0))
    >>> found.both.round(3).tolist()
    [-0.223]

    A host that needs twice as long as the kernels:

    >>> found = terms_of(none, np.array([[1.0]]), np.zeros(0), np.zeros(1), np.log([2.0]))
    >>> found.both.round(2).tolist()
    [0.71]
    """
    scale = np.exp(factor)
    hidden = scale * (launch @ costs.T)
    remainder = log_remainder(hidden)
    # Derivative of the soft maximum: its logistic weight over its value.
    left = np.maximum(SHARPNESS * (1 - hidden), -_LARGEST)
    soft = np.logaddexp(0.0, left)
    slope = np.where(left <= -30.0, -SHARPNESS, -SHARPNESS / (1 + np.exp(-left)) / soft)
    if hosts.shape[1]:
        per = np.exp(host)
        time = per @ hosts.T
        waits = np.log(np.maximum(time, np.exp(-_LARGEST)))
        both = np.logaddexp(_SHARP * remainder, _SHARP * waits) / _SHARP
        kernels = np.exp(_SHARP * (remainder - both))
        by_host = ((1 - kernels) / np.maximum(time, np.exp(-_LARGEST)))[..., None] * hosts
        by_host *= per[..., None, :]
    else:
        both, kernels = remainder, np.ones_like(remainder)
        by_host = np.zeros((*remainder.shape, 0))
    return Terms(
        remainder,
        both,
        (kernels * slope * scale)[..., None] * costs,
        by_host,
        kernels * slope * hidden,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PhysicsModel:
    """Sets of parameters with their weights, and the spread of runs around the prediction.

    Attributes
    ----------
    columns : Columns
    devices : tuple of str
        Devices of the fit; another one has no shift and no factor of its own.
    weights : ndarray, shape (sets,)
        They add up to 1.
    sets : mapping of str to ndarray
        The arrays of `PARAMETERS`, the first axis of each is that of the sets.
    spreads : Spreads

    Examples
    --------
    >>> from errcomp.calibration.estimators.physics.residual import PhysicsResidual
    >>> x, y = [[0.0], [0.1], [0.2], [0.3]], [0.0, -0.1, -0.22, -0.36]
    >>> model = PhysicsResidual(launch=[0]).fit(x, y).portable_
    >>> PhysicsModel.from_arrays(*model.to_arrays()).devices
    ()
    """

    columns: Columns
    devices: tuple[str, ...]
    weights: Floats
    sets: Mapping[str, Floats]
    spreads: Spreads

    KIND = "physics"

    def parts(
        self, x: Floats, *, device: Names | None = None, model: Names | None = None
    ) -> dict[str, Floats]:
        """Return the contribution of each source to the log-ratio, shape (n,) each.

        Returns
        -------
        dict
            ``launches``, ``host`` (what waiting for it adds), ``offset``, ``device`` and
            ``intercept``; they add up to the prediction.

        Examples
        --------
        >>> from errcomp.calibration.estimators.physics.residual import PhysicsResidual
        >>> x, y = [[0.0], [0.1], [0.2], [0.3]], [0.0, -0.1, -0.22, -0.36]
        >>> model = PhysicsResidual(launch=[0]).fit(x, y).portable_
        >>> parts = model.parts(np.array([[0.2]]))
        >>> bool(parts["launches"][0] < -0.15), parts["host"].tolist()
        (True, [0.0])
        """
        rows = as_features(x, self.columns.width)
        check_known(rows, self.columns.used, range(self.columns.width), "")
        costs, hosts, offset = self.columns.split(rows)
        names = as_names(device, len(rows), "device")
        at = {name: i for i, name in enumerate(self.devices)}
        on = np.array([at.get(name, -1) for name in names.tolist()], dtype=np.int64)
        found = {
            name: np.zeros(len(rows))
            for name in ("launches", "host", "offset", "device", "intercept")
        }
        for k, weight in enumerate(self.weights.tolist()):
            one = {name: values[k] for name, values in self.sets.items()}
            shift, factor = (
                np.where(on >= 0, np.append(one[name], 0.0)[on], 0.0)
                for name in ("device_shift", "device_launch")
            )
            terms = terms_of(costs, hosts, one["launch"], factor, one["host"])
            found["launches"] += weight * terms.remainder
            found["host"] += weight * (terms.both - terms.remainder)
            found["offset"] += weight * one["offset"] * offset
            found["device"] += weight * shift
            found["intercept"] += weight * one["intercept"]
        return found

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at ascending probabilities q, shape (n, len(q)).

        Raises
        ------
        InputError
            The number of features differs from the fit, a needed feature is not finite, or q are
            not ascending probabilities.

        Examples
        --------
        >>> from errcomp.calibration.estimators.physics.residual import PhysicsResidual
        >>> x, y = [[0.0], [0.1], [0.2], [0.3]], [0.0, -0.1, -0.22, -0.36]
        >>> model = PhysicsResidual(launch=[0]).fit(x, y).portable_
        >>> model.predict_quantiles(np.array([[0.1]]), [0.5]).round(1).tolist()
        [[-0.1]]
        """
        location: Floats = np.sum(list(self.parts(x, device=device).values()), axis=0)
        return self.spreads.around(location, q, device)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata for JSON, and arrays, from which `from_arrays` restores the model.

        Examples
        --------
        >>> from errcomp.calibration.estimators.physics.residual import PhysicsResidual
        >>> x, y = [[0.0], [0.1], [0.2], [0.3]], [0.0, -0.1, -0.22, -0.36]
        >>> meta, arrays = PhysicsResidual(launch=[0]).fit(x, y).portable_.to_arrays()
        >>> meta["launch"], round(float(arrays["weights"].sum()), 6)
        ([0], 1.0)
        """
        c = self.columns
        meta = {
            "width": c.width,
            "launch": list(c.launch),
            "host_columns": list(c.host),
            "offset_column": c.offset,
            "devices": list(self.devices),
            "spreads": self.spreads.to_meta(),
        }
        return meta, {"weights": self.weights, **self.sets}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore the model.

        Raises
        ------
        InputError
            A value is missing or impossible.

        Examples
        --------
        >>> from errcomp.calibration.estimators.physics.residual import PhysicsResidual
        >>> x, y = [[0.0], [0.1], [0.2], [0.3]], [0.0, -0.1, -0.22, -0.36]
        >>> model = PhysicsResidual(launch=[0]).fit(x, y).portable_
        >>> PhysicsModel.from_arrays({}, model.to_arrays()[1])
        Traceback (most recent call last):
            ...
        errcomp.errors.InputError: width must be a whole number above 0, got None. Fit again.
        """
        columns = _columns_of(meta)
        devices = meta.get("devices")
        if not isinstance(devices, list) or not all(isinstance(one, str) for one in devices):
            raise InputError(
                f"devices must be a list of strings, got {str(devices)[:80]}. Fit again."
            )
        spreads = meta.get("spreads")
        if not isinstance(spreads, dict):
            raise InputError(f"spreads must be a mapping, got {str(spreads)[:80]}. Fit again.")
        weights = _array(arrays, "weights", None)
        if not len(weights) or (weights < 0).any() or abs(float(weights.sum()) - 1) > 1e-9:
            raise InputError("weights must be at least 0 and add up to 1. Fit the model again.")
        sizes = {"launch": len(columns.launch), "host": len(columns.host), "devices": len(devices)}
        sets = {
            name: _array(arrays, name, (len(weights), sizes[axis]) if axis else (len(weights),))
            for name, axis in PARAMETERS.items()
        }
        return cls(columns, tuple(devices), weights, sets, Spreads.from_meta(spreads))


def _columns_of(meta: Mapping[str, Any]) -> Columns:
    width = meta.get("width")
    if type(width) is not int or width < 1:
        raise InputError(f"width must be a whole number above 0, got {width!r}. Fit again.")
    offset = meta.get("offset_column")
    given = [meta.get("launch"), meta.get("host_columns"), [] if offset is None else [offset]]
    flat = [column for part in given if isinstance(part, list) for column in part]
    fine = all(isinstance(part, list) for part in given) and all(
        type(column) is int and 0 <= column < width for column in flat
    )
    if not fine or len(set(flat)) < len(flat):
        raise InputError(
            f"launch, host and offset must be distinct positions among {width} columns, got "
            f"{str(given)[:80]}. Fit the model again."
        )
    return Columns(width, tuple(given[0] or ()), tuple(given[1] or ()), offset)


def _array(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...] | None
) -> NDArray[Any]:
    values = arrays.get(name)
    if (
        not isinstance(values, np.ndarray)
        or values.dtype != np.float64
        or (values.ndim != 1 if shape is None else values.shape != shape)
        or not (np.abs(values) < _LARGEST).all()
    ):
        of = "one axis" if shape is None else f"shape {shape}"
        raise InputError(
            f"{name} must be float64 of {of}, from {-_LARGEST:g} to {_LARGEST:g}. Fit the model "
            "again."
        )
    return values
