r"""Partial pooling of kernels: the fit, and predictions for new kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from errcomp.calibration.design import Floats
from errcomp.errors import InputError

Counts = NDArray[np.int64]


def median(values: Floats, n: Counts) -> float:
    """Return the median of values that occur n times each."""
    total = int(n.sum())
    return float(np.mean(_ranked(values, n, [(total - 1) // 2, total // 2])))


def quantile(values: Floats, n: Counts, q: float) -> float:
    """Return a quantile of values that occur n times each, interpolated as NumPy does."""
    at = (int(n.sum()) - 1) * q
    below = int(at)
    both = _ranked(values, n, [below, min(below + 1, int(n.sum()) - 1)])
    return float(np.quantile(both, at - below))


def _ranked(values: Floats, n: Counts, ranks: list[int]) -> Floats:
    """Return the values of these ranks, from 0."""
    order = np.argsort(values, kind="stable")
    at = np.searchsorted(np.cumsum(n[order]), ranks, side="right")
    return values[order[at]]


Codes = NDArray[np.int64]

#: Standard deviation of normal data over the scale of a t with 4 degrees of freedom fitted to them.
CONSISTENCY = 1.2034
NORMAL_90 = float(special.ndtri(0.95))

#: Shapes of the arrays in a file: C classes, D devices, F families.
_SHAPES = {
    "mean": "4", "ratios": "4", "typical": "2", "kind": "C", "kind_var": "C", "scale": "C",
    "own": "C", "freedom": "C", "slope": "C", "slope_var": "C", "centre": "C", "low": "C",
    "high": "C", "device": "D", "device_var": "D", "family": "F", "family_var": "F",
    "relative": "CF", "relative_var": "CF", "cell": "CD", "cell_var": "CD", "device_family": "D",
}  # fmt: skip
_MAY_BE_NAN = ("relative", "relative_var", "cell", "cell_var")
#: Must be positive or at least 0.
_NOT_NEGATIVE = ("ratios", "typical", "scale", "own", "freedom")


class Scatter(NamedTuple):
    """Predicted logarithm of new kernels: arrays of shape (n,).

    ``base`` is the variance of the mean, ``shared`` that of the common error of a run's kernels of
    the class, ``own`` that of each kernel. ``here`` says whether the class was measured on the
    device.
    """

    mean: Floats
    base: Floats
    shared: Floats
    own: Floats
    here: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Effects with their variances for C classes, D devices, F families; NaN: not measured.

    Attributes
    ----------
    mean, ratios : ndarray, shape (4,)
        Mean of all classes, its variance, and the variances between classes and between devices;
        variance between families, then ρ², τ², τ_f² in units of h².
    typical : ndarray, shape (2,)
        h² of an unseen class and its degrees of freedom.
    kind, kind_var, scale, own, freedom, slope, slope_var, centre, low, high : ndarray, shape (C,)
        Effect, h², variance of a kernel's own error, degrees of freedom of both, slope; mean and
        range of the log sizes.
    device, device_var : ndarray, shape (D,)
    family, family_var : ndarray, shape (F,)
    relative, relative_var : ndarray, shape (C, F)
        Class in the family, relative to class and device.
    cell, cell_var : ndarray, shape (C, D)
        Class on the device, with all effects.
    device_family : ndarray of int, shape (D,)
    """

    mean: Floats
    ratios: Floats
    typical: Floats
    kind: Floats
    kind_var: Floats
    scale: Floats
    own: Floats
    freedom: Floats
    slope: Floats
    slope_var: Floats
    centre: Floats
    low: Floats
    high: Floats
    device: Floats
    device_var: Floats
    family: Floats
    family_var: Floats
    relative: Floats
    relative_var: Floats
    cell: Floats
    cell_var: Floats
    device_family: Codes

    def predict(self, kind: Codes, device: Codes, family: Codes, size: Floats) -> Scatter:
        """Predict kernels of these groups; -1 is a group that was not measured."""
        known, device_known = kind >= 0, device >= 0
        family = np.where(device_known, self.device_family[device], family)
        scale = np.where(known, self.scale[kind], self.typical[0])
        freedom = np.where(known, self.freedom[kind], self.typical[1])
        # A normal with the same central 90 % replaces the t of few measurements.
        few = (special.stdtrit(freedom, 0.95) / NORMAL_90) ** 2
        own = np.where(known, self.own[kind], self.typical[0] * CONSISTENCY**2) * few
        scale = scale * few
        mu, mu_var, kinds, devices = self.mean
        families, run, cell, relative = self.ratios
        mean = np.where(known, self.kind[kind], mu)
        base = np.where(known, self.kind_var[kind], mu_var + kinds)
        named = family >= 0
        mean = mean + np.where(device_known, self.device[device], named * self.family[family])
        other = devices + np.where(named, self.family_var[family], families)
        base = base + np.where(device_known, self.device_var[device], other)
        both = known & named & np.isfinite(self.relative[kind, family])
        mean = mean + np.where(both, self.relative[kind, family], 0)
        base = base + np.where(both, self.relative_var[kind, family], scale * relative)
        base = base + scale * cell
        here = known & device_known & np.isfinite(self.cell[kind, device])
        mean = np.where(here, self.cell[kind, device], mean)
        base = np.where(here, self.cell_var[kind, device], base)
        # Beyond the measured sizes the line stays flat.
        size = np.clip(size, self.low[kind], self.high[kind]) - self.centre[kind]
        mean = mean + np.where(known, self.slope[kind] * size, 0)
        base = base + np.where(known, self.slope_var[kind] * size**2, 0)
        return Scatter(mean, base, scale * run, own, here)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]) -> Pooled:
        """Restore it from arrays of C classes, D devices and F families.

        Raises
        ------
        InputError
            An array is missing, has the wrong shape or type, or holds an impossible value.
        """
        checked: dict[str, Any] = {}
        for name, letters in _SHAPES.items():
            shape = tuple(sizes[x] if x in sizes else int(x) for x in letters)
            value = arrays.get(name)
            kinds = "iu" if name == "device_family" else "f"
            if value is None or value.dtype.kind not in kinds or value.shape != shape:
                got = "none" if value is None else f"{value.dtype} of shape {value.shape}"
                raise InputError(
                    f"array {name!r} of the kernel corrections must be "
                    f"{'integers' if kinds == 'iu' else 'floats'} of shape {shape}, got {got}. "
                    "Fit and write the corrections again."
                )
            bad = np.isinf(value) if name in _MAY_BE_NAN else ~np.isfinite(value)
            if name.endswith("_var") or name in _NOT_NEGATIVE:
                bad |= value < 0
            if name == "device_family":
                bad |= (value < 0) | (value >= sizes["F"])
            if bad.any():
                raise InputError(
                    f"array {name!r} of the kernel corrections holds the impossible value "
                    f"{value[bad][0]}. Fit and write the corrections again."
                )
            checked[name] = value.astype(np.int64 if kinds == "iu" else np.float64)
        return cls(**checked)


# Partial pooling of logarithms: kernels in runs, runs in classes on devices, and shared effects.
#
# .. math::
#     y_i = \alpha_c + \delta_d + \gamma_{cf} + \gamma_{cd} + \beta_c (z_i - \bar z_c)
#           + \rho_{cdr} + \varepsilon_i
#
# with class c, device d of family f, run r and log size z. All effects but the kernel's own are
# normal around 0 (:math:`\alpha` around the mean of all classes). Those with a class in their index
# have standard deviations that are multiples of the class's own :math:`h_c`, and :math:`h_c^2` is
# scaled inverse chi-squared between classes: classes with errors of 1 % and of 50 % fit one model,
# but not one spread. :math:`\varepsilon` is Student t with four degrees of freedom, so outliers
# have little effect.

_FREEDOM = 4.0
#: Least spread of a class: 0.1 %.
_RESOLUTION = 1e-3
_ROUNDS = 8
#: Levels that are kept while variances are fitted: those of one place, and of a step of each ratio.
_LEVELS_KEPT = 4
#: Fewest kernels for a 90 % quantile.
_FEWEST = 50
#: Medians of the log-normal priors of standard deviations, for cases without data: the spread of
#: devices with one device; of runs and cells (in units of the kernels') with one run per cell.
_KERNEL, _RUN, _CELL, _FAMILY, _CLASS, _DEVICE = 0.15, 0.2, 0.7, 0.5, 0.3, 0.1
_RATIOS = np.array([_RUN, _CELL, _FAMILY])
#: Their logarithmic standard deviations. That of the kernels determines bands from few kernels.
_VAGUE, _FIRM = 1.5, 0.7
#: Standard deviation of slopes: ten times the size changes a factor by 2 %. Not fitted, because
#: sizes within runs depend on the model, and the slopes of one model misled on others.
_SLOPE = 0.01


@dataclass(frozen=True, slots=True)
class Observed:
    """Data to pool: arrays of shape (n,), groups as codes from 0 without gaps.

    Attributes
    ----------
    y, size : ndarray
        Logarithms of the ratio or time, and of the predicted time.
    weight : ndarray
        Weight of each kernel among those of its class in its run, > 0.
    n : ndarray of int
        Number of kernels of each value, all with the same size and weight; ``y`` is their mean.
    scatter : ndarray
        Mean squared deviation of their logarithms from that mean.
    run, kind, device : ndarray of int
    family : ndarray of int, shape (devices,)
    """

    y: Floats
    size: Floats
    weight: Floats
    n: Codes
    scatter: Floats
    run: Codes
    kind: Codes
    device: Codes
    family: Codes


class _Level(NamedTuple):
    """Groups of one level: precision, mean, scatter within and log determinant."""

    precision: Floats
    mean: Floats
    scatter: Floats
    logdet: Floats

    def up(self, parent: Codes, n: int, ratio: float) -> _Level:
        """Gather groups in their parents; each group has its own variance `ratio`."""
        inflation = 1 + ratio * self.precision
        weight = self.precision / inflation
        total = _sums(parent, weight, n)
        mean = _sums(parent, weight * self.mean, n) / total
        off = weight * (self.mean - mean[parent]) ** 2
        scatter = _sums(parent, self.scatter + off, n)
        return _Level(total, mean, scatter, _sums(parent, self.logdet + np.log(inflation), n))


def _sums(group: Codes, value: Floats | Codes, n: int = 0) -> Floats:
    """Add the values of each group up."""
    return np.bincount(group, value, n).astype(np.float64, copy=False)


def _prior(log: Any, median: Any, spread: float = _VAGUE) -> Any:
    return (log - np.log(median)) ** 2 / (2 * spread**2)


class _Fit:
    """One fit: groups of the observations, and the effects as they are estimated."""

    def __init__(self, seen: Observed) -> None:
        self.seen = seen
        self.n_kinds, self.n_devices = int(seen.kind.max()) + 1, int(seen.device.max()) + 1
        self.n_families = int(seen.family.max()) + 1
        cells, cell = _numbered(seen.kind, seen.device)
        runs, self.run = _numbered(cell, seen.run)
        self.cell, self.run_cell = cell, runs[0]
        self.cell_kind, self.cell_device = cells
        in_family, self.cell_family = _numbered(self.cell_kind, seen.family[self.cell_device])
        self.family_kind, self.family_family = in_family
        sums = _sums(self.run, seen.n * seen.weight)
        # Kish's effective number, so that weights do not count as more kernels.
        effective = sums**2 / _sums(self.run, seen.n * seen.weight**2)
        self.weight = seen.n * seen.weight * (effective / sums)[self.run]
        run_kind = self.cell_kind[self.run_cell]
        self.freedom = _sums(run_kind, effective, self.n_kinds) - 1
        self.device = np.zeros(self.n_devices)
        self.slope = np.zeros(self.n_kinds)
        self.theta = np.log([_KERNEL, *_RATIOS, 4.0])
        self._start()

    def _start(self) -> None:
        y, kind, times = self.seen.y, self.seen.kind, self.seen.n
        order = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
        off = y - np.asarray([median(y[i], times[i]) for i in order])[kind]
        mad = 1.4826 * np.asarray([median(np.abs(off[i]), times[i]) for i in order])
        n = _sums(kind, times)
        several = mad[n > 2]
        usual = max(float(np.median(several)), _RESOLUTION) if len(several) else _KERNEL
        self.scale: Floats = (4 * usual**2 + n * mad**2) / (4 + n)
        self.square: Floats = off**2 + self.seen.scatter

    def round(self) -> None:
        """Update the weights of the kernels, and estimate everything once."""
        seen, kind = self.seen, self.seen.kind
        run_ratio = np.exp(2 * self.theta[1])
        weight = (_FREEDOM + 1) / (_FREEDOM + self.square / (self.scale[kind] * (1 + run_ratio)))
        weight = weight * self.weight
        total = _sums(self.run, weight)
        size = _sums(self.run, weight * seen.size) / total
        self.centre = _sums(kind, weight * seen.size) / _sums(kind, weight)
        self._slopes(weight, total, seen.size - size[self.run])
        y = seen.y - self.slope[kind] * (seen.size - self.centre[kind])
        self.level = _Level(
            total, _sums(self.run, weight * y) / total, np.zeros(len(total)), np.zeros(len(total))
        )
        within = _sums(self.run, weight * ((y - self.level.mean[self.run]) ** 2 + seen.scatter))
        self.level = self.level._replace(scatter=within)
        self._scales()
        self._kinds()
        self._devices()
        self._cells()
        self.square = (y - self.cell_mean[self.cell]) ** 2 + seen.scatter

    def _slopes(self, weight: Floats, total: Floats, size: Floats) -> None:
        """Estimate slopes from sizes within runs; between runs the model differs, too."""
        kind, y = self.seen.kind, self.seen.y
        off = y - (_sums(self.run, weight * y) / total)[self.run]
        n = self.n_kinds
        square, cross = (_sums(kind, weight * size * v, n) for v in (size, off))
        # Sizes that differ only by rounding errors are one size.
        seen = square > 1e-6
        share = square / (square + self.scale / _SLOPE**2)
        self.slope = np.where(seen, share * cross / np.where(seen, square, 1), 0)
        self.slope_var = (1 - share) * _SLOPE**2

    def _ratios(self, theta: Floats) -> tuple[float, float, float]:
        run, cell, family = np.exp(2 * theta[1:4]).tolist()
        return run, cell, family if self.n_families > 1 else 0.0

    def _levels(self, level: _Level) -> Callable[[Floats], tuple[_Level, _Level]]:
        """Return what gathers the runs in cells and in classes.

        A step of one ratio leaves the levels below it as they are: these are not computed again.
        """

        @lru_cache(_LEVELS_KEPT)
        def cells(run: float) -> _Level:
            return level.up(self.run_cell, len(self.cell_kind), run)

        @lru_cache(_LEVELS_KEPT)
        def families(run: float, cell: float) -> _Level:
            return cells(run).up(self.cell_family, len(self.family_kind), cell)

        @lru_cache(_LEVELS_KEPT)
        def kinds(run: float, cell: float, family: float) -> _Level:
            return families(run, cell).up(self.family_kind, self.n_kinds, family)

        def gather(theta: Floats) -> tuple[_Level, _Level]:
            ratios = self._ratios(theta)
            return cells(ratios[0]), kinds(*ratios)

        return gather

    def _scales(self) -> None:
        """Fit variances by restricted likelihood, integrated over the classes' scales (a t)."""
        run_device = self.cell_device[self.run_cell]
        gather = self._levels(self.level._replace(mean=self.level.mean - self.device[run_device]))

        def loss(theta: Floats) -> float:
            top, nu = gather(theta)[1], np.exp(theta[4])
            prior, half = nu * np.exp(2 * theta[0]), (nu + self.freedom) / 2
            t = special.gammaln(half) - special.gammaln(nu / 2) + nu / 2 * np.log(prior)
            t = t - half * np.log(prior + top.scatter)
            t = t - (top.logdet + np.log(top.precision)) / 2
            penalty = _prior(theta[1:4], _RATIOS).sum() + _prior(theta[4], 4.0)
            return float(-t.sum() + penalty + _prior(theta[0], _KERNEL, _FIRM))

        self.theta = _minimise(loss, self.theta)
        self.nu = float(np.exp(self.theta[4]))
        self.usual = float(np.exp(2 * self.theta[0]))
        self.cells, self.top = gather(self.theta)
        scatter = self.nu * self.usual + self.top.scatter
        self.scale = np.maximum(scatter / (self.nu + self.freedom), _RESOLUTION**2)

    def _kinds(self) -> None:
        """Pool the classes around their mean."""
        means, var = self.top.mean, self.scale / self.top.precision

        def loss(log: Floats) -> float:
            v = var + np.exp(2 * log[0])
            mean = (means / v).sum() / (1 / v).sum()
            like = np.log(v).sum() + ((means - mean) ** 2 / v).sum() + np.log((1 / v).sum())
            return float(like / 2 + _prior(log[0], _CLASS))

        self.between = float(np.exp(2 * _minimise(loss, [np.log(_CLASS)])[0]))
        v = var + self.between
        self.mean_var = float(1 / (1 / v).sum())
        self.mean = float((means / v).sum() * self.mean_var)
        self.kind = self.mean + self.between / v * (means - self.mean)
        self.kind_var = self.between * var / v

    def _devices(self) -> None:
        """Pool the devices over their classes around their families, and these around 0."""
        kind, device = self.cell_kind, self.cell_device
        _, cell, family = self._ratios(self.theta)
        left = self.cells.mean + self.device[device] - self.kind[kind]
        var = self.scale[kind] * (cell + family + 1 / self.cells.precision) + self.kind_var[kind]
        total = _sums(device, 1 / var)
        level = _Level(total, _sums(device, left / var) / total, 0 * total, 0 * total)
        several = self.n_families > 1

        def loss(log: Floats) -> float:
            up = level.up(self.seen.family, self.n_families, np.exp(2 * log[0]))
            spread = several * np.exp(2 * log[1]) + 1 / up.precision
            # The families' own terms, without the factor of the flat mean.
            like = up.scatter + up.logdet + np.log(up.precision * spread) + up.mean**2 / spread
            return float(like.sum() / 2 + _prior(log, _DEVICE).sum())

        log = _minimise(loss, [np.log(_DEVICE)] * 2)
        self.devices = float(np.exp(2 * log[0]))
        self.families = float(np.exp(2 * log[1])) if several else 0.0
        up = level.up(self.seen.family, self.n_families, self.devices)
        share = self.families * up.precision / (1 + self.families * up.precision)
        self.family, self.family_var = share * up.mean, (1 - share) * self.families
        own = self.devices * total / (1 + self.devices * total)
        centre = self.family[self.seen.family]
        self.device = centre + own * (level.mean - centre)
        # At most that of an unseen device.
        rest = (1 - own) ** 2 * self.family_var[self.seen.family]
        self.device_var = (1 - own) * self.devices + rest

    def _cells(self) -> None:
        """Pool each class on each device around class and device together."""
        kind, device = self.cell_kind, self.cell_device
        run, cell, family = self._ratios(self.theta)
        plain = self.level.up(self.run_cell, len(kind), run)
        left = plain.mean - self.kind[kind] - self.device[device]
        scale = self.scale[kind]
        weight = 1 / (scale * (cell + 1 / plain.precision))
        total = _sums(self.cell_family, weight)
        prior = self.scale[self.family_kind] * family
        share = prior * total / (1 + prior * total)
        self.relative = share * _sums(self.cell_family, weight * left) / total
        self.relative_var = (1 - share) * prior
        base = self.relative_var[self.cell_family] + self.kind_var[kind] + self.device_var[device]
        base = base + scale * cell
        noise = scale / plain.precision
        own = base / (base + noise)
        centre = self.relative[self.cell_family]
        self.cell_mean = self.kind[kind] + self.device[device] + centre + own * (left - centre)
        self.cell_var = own * noise

    def _own(self) -> Floats:
        """Return the variance of a kernel's own error in each class, counting each kernel once.

        `scale` weighs kernels by time, and long kernels have smaller errors than short ones.
        """
        kind, times = self.seen.kind, self.seen.n
        n, square = _sums(kind, times), self.square / (1 + np.exp(2 * self.theta[1]))
        own = self.scale
        for _ in range(_ROUNDS):
            weight = (_FREEDOM + 1) / (_FREEDOM + square / own[kind])
            own = (self.nu * self.scale + _sums(kind, times * weight * square)) / (self.nu + n)
        own = own * CONSISTENCY**2
        if times.sum() >= _FEWEST:
            # For tails heavier than a t's: 90 % of the kernels of the fit must be within the band.
            off = quantile(np.sqrt(square / own[kind]), times, 0.9) / NORMAL_90
            own = own * max(1.0, off) ** 2
        return own

    def result(self) -> Pooled:
        """Return the parameters that a prediction needs."""
        kinds, seen = self.n_kinds, self.seen
        low, high = np.full(kinds, np.inf), np.full(kinds, -np.inf)
        np.minimum.at(low, seen.kind, seen.size)
        np.maximum.at(high, seen.kind, seen.size)
        relative, relative_var = np.full((2, kinds, self.n_families), np.nan)
        relative[self.family_kind, self.family_family] = self.relative
        relative_var[self.family_kind, self.family_family] = self.relative_var
        cell, cell_var = np.full((2, kinds, self.n_devices), np.nan)
        cell[self.cell_kind, self.cell_device] = self.cell_mean
        cell_var[self.cell_kind, self.cell_device] = self.cell_var
        return Pooled(
            mean=np.array([self.mean, self.mean_var, self.between, self.devices]),
            ratios=np.array([self.families, *self._ratios(self.theta)]),
            typical=np.array([self.usual, self.nu]),
            kind=self.kind,
            kind_var=self.kind_var,
            scale=self.scale,
            own=self._own(),
            freedom=self.nu + self.freedom,
            slope=self.slope,
            slope_var=self.slope_var,
            centre=self.centre,
            low=low,
            high=high,
            device=self.device,
            device_var=self.device_var,
            family=self.family,
            family_var=self.family_var,
            relative=relative,
            relative_var=relative_var,
            cell=cell,
            cell_var=cell_var,
            device_family=seen.family,
        )


def pool(seen: Observed) -> Pooled:
    """Fit the model of this module to observations."""
    fit = _Fit(seen)
    for _ in range(_ROUNDS):
        fit.round()
    return fit.result()


def _numbered(*codes: Codes) -> tuple[NDArray[np.int64], Codes]:
    """Return the distinct combinations of codes, and the number of each row's combination."""
    groups, number = np.unique(np.stack(codes), axis=1, return_inverse=True)
    return groups, number.ravel()


#: Range of the logarithms, and the step of differences.
_LOW, _HIGH, _STEP = -9.0, 5.0, 1e-8


def _minimise(loss: Callable[[Floats], float], start: Any) -> Floats:
    """Minimise over logarithms, within the range of a double."""
    from scipy import optimize  # which takes its time to load, and a prediction needs none of it

    def with_slopes(at: Floats) -> tuple[float, Floats]:
        # The forward differences of SciPy, which checks its arguments longer than a loss takes.
        value, slopes = loss(at), np.empty(len(at))
        for i, here in enumerate(at.tolist()):
            there = here + _STEP if here + _STEP <= _HIGH else here - _STEP
            beside = at.copy()
            beside[i] = there
            slopes[i] = (loss(beside) - value) / (there - here)
        return value, slopes

    solution = optimize.minimize(
        with_slopes,
        np.asarray(start),
        jac=True,
        method="L-BFGS-B",
        bounds=[(_LOW, _HIGH)] * len(start),
    )
    return np.asarray(solution.x, dtype=np.float64)
