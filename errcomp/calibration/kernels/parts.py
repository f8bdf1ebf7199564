"""Names of kernels, and a pooled model of the kernels with these names."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from errcomp.calibration.kernels.pooling import Codes, Observed, Pooled, pool
from errcomp.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from errcomp.calibration.design import Floats, Names
    from errcomp.tables import Kernels
    from errcomp.tables.table import Behind


_BETWEEN = "\x1f"
_NAMES = ("kind", "device", "family", "identity")
#: Prior of repeated measurements: half of the error of a kernel is its own. Counts as four kernels.
_REPEATED, _REPEATED_KERNELS = 0.5, 4.0


class KernelNames(NamedTuple):
    """Names of kernels, shape (n,); an identity is "" where kernels are indistinguishable."""

    kind: Names
    device: Names
    family: Names
    identity: Names

    def at(self, index: NDArray[Any]) -> KernelNames:
        """Return the names at these positions, or under this mask."""
        return KernelNames(*(names[index] for names in self))


def names_of(kernels: Kernels, family: str | None, *, phases: bool = True) -> KernelNames:
    """Name each kernel by class, mode and phase, by device, by the device's family, and itself.

    `phases` says whether the class includes the phase, where the table has one.
    """
    blank = np.full(kernels.n, "", dtype=object)
    mode, shape = (_plain(kernels, name) for name in ("mode", "shape"))
    kind = _join(kernels.kernel_class, mode)
    if phases and "phase" in kernels.keys:
        kind = _join(kind, _plain(kernels, "phase"))
    name = kernels.kernel
    # In a table without names the name is class/row, which has no meaning in another table.
    if kernels.n and name[0] == f"{kernels.kernel_class[0]}/{kernels.rows[0]}":
        name = blank
    if "shape" not in kernels.keys:
        # A predictor gives the same time for the same kernel of the same size.
        shape = np.asarray([f"{p:.3g}" for p in kernels.predicted], dtype=object)
        shape = np.where(name == "", "", shape)
    identity = _digests(_join(kernels.device, kind, name, shape))
    identity[(name == "") & (shape == "")] = ""
    family_ = blank if family is None else _plain(kernels, family)
    return KernelNames(kind, kernels.device, family_, identity)


def _plain(kernels: Kernels, name: str) -> Names:
    if name not in kernels.keys:
        return np.full(kernels.n, "", dtype=object)
    values = kernels.column(name)
    texts = np.empty(kernels.n, dtype=object)
    texts[:] = ["" if v is None or v != v else str(v) for v in values.tolist()]
    return texts


def _join(*columns: Names) -> Names:
    joined = np.empty(len(columns[0]), dtype=object)
    joined[:] = [_BETWEEN.join(row) for row in zip(*columns, strict=True)]
    return joined


def _digests(names: Names) -> Names:
    """Shorten names of any length; names of C++ templates fill pages."""
    distinct, at = np.unique(names.astype(str), return_inverse=True)
    short = [blake2b(name.encode(), digest_size=12).hexdigest() for name in distinct.tolist()]
    return np.array(short, dtype=object)[at.ravel()]


class Found(NamedTuple):
    """Logarithms of factor or time with the two parts of their spread, and the level of each."""

    log: Floats
    shared: Floats
    own: Floats
    level: Names


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One pooled model, the names of its groups, and the kernels it was fitted on.

    Attributes
    ----------
    kind, device, family, identity : ndarray of str
        Sorted.
    residual, times : ndarray, shape (identities,)
        Mean log error that class and device do not explain, and its number of measurements.
    repeated : float
        Share of the variance within a class on a device that is the kernel's own, and recurs in
        repeated measurements.
    pooled : Pooled
    """

    kind: NDArray[np.str_]
    device: NDArray[np.str_]
    family: NDArray[np.str_]
    identity: NDArray[np.str_]
    residual: Floats
    times: Floats
    repeated: float
    pooled: Pooled

    @property
    def phases(self) -> bool:
        """Whether the classes are those of one phase each."""
        return any(name.count(_BETWEEN) > 1 for name in self.kind.tolist())

    @classmethod
    def fit(
        cls, y: Floats, size: Floats, weight: Floats, behind: Behind, run: Codes, names: KernelNames
    ) -> Part:
        """Pool the logarithms y of measured kernels."""
        kinds, kind = _codes(names.kind)
        devices, device = _codes(names.device)
        families, family = _codes(names.family)
        of_device = np.zeros(len(devices), dtype=np.int64)
        of_device[device] = family
        n, scatter = behind.n, behind.scatter / behind.n
        pooled = pool(Observed(y, size, weight, n, scatter, run, kind, device, of_device))
        expected = pooled.predict(kind, device, family, size)
        off = y - expected.mean
        named = names.identity != ""
        identities, identity = _codes(names.identity[named])
        n, scatter = n[named], scatter[named]
        times = np.bincount(identity, n, len(identities)).astype(np.float64)
        residual = np.bincount(identity, n * off[named], len(identities)) / np.maximum(times, 1)
        spread = np.sqrt(pooled.own[kind] + pooled.scale[kind] * pooled.ratios[1])[named]
        share = _repeated(off[named] / spread, n, scatter / spread**2, identity, times)
        return cls(kinds, devices, families, identities, residual, times, share, pooled)

    def predict(self, size: Floats, names: KernelNames) -> Found:
        """Predict kernels of these names and log sizes."""
        kind, device = _positions(self.kind, names.kind), _positions(self.device, names.device)
        expected = self.pooled.predict(kind, device, _positions(self.family, names.family), size)
        here = _positions(self.identity, names.identity)
        exact = here >= 0
        n = self.times[here] if len(self.times) else np.zeros(len(here))
        share = np.where(exact, n * self.repeated / (1 + (n - 1) * self.repeated), 0)
        residual = self.residual[here] if len(self.times) else n
        # The remaining uncertainty of the kernel's own error after n measurements.
        left = 1 - share * self.repeated
        shared = (1 - share) ** 2 * expected.base + left * expected.shared
        level = np.select(
            [exact, expected.here, device >= 0], ["exact", "class", "device"], "global"
        ).astype(object)
        log = expected.mean + share * residual
        return Found(log, np.sqrt(shared), np.sqrt(left * expected.own), level)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        arrays: dict[str, NDArray[Any]] = {f"name_{name}": getattr(self, name) for name in _NAMES}
        arrays |= {"residual": self.residual, "times": self.times}
        arrays["repeated"] = np.array([self.repeated])
        return arrays | {f"pooled_{k}": v for k, v in self.pooled.to_arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Part:
        """Restore the part; an InputError names a missing or impossible array."""
        names = {name: _array(arrays.get(f"name_{name}"), name, "U") for name in _NAMES}
        for name, value in names.items():
            _insist(bool((value[1:] > value[:-1]).all()), name)
        n = len(names["identity"])
        _insist(all(len(names[name]) for name in ("kind", "device", "family")), "kind")
        numbers = {}
        for name, rows in (("residual", n), ("times", n), ("repeated", 1)):
            value = _array(arrays.get(name), name, "f")
            _insist(len(value) == rows and bool(np.isfinite(value).all()), name)
            numbers[name] = value.astype(np.float64)
        _insist(bool((numbers["times"] >= 1).all()), "times")
        repeated = float(numbers["repeated"][0])
        _insist(0 <= repeated <= 1, "repeated")
        sizes = {"C": len(names["kind"]), "D": len(names["device"]), "F": len(names["family"])}
        inner = {k[7:]: v for k, v in arrays.items() if k.startswith("pooled_")}
        pooled = Pooled.from_arrays(inner, sizes)
        return cls(
            **names,
            residual=numbers["residual"],
            times=numbers["times"],
            repeated=repeated,
            pooled=pooled,
        )


def _array(value: NDArray[Any] | None, name: str, kind: str) -> NDArray[Any]:
    """Return an array of one dimension and this kind of type."""
    _insist(value is not None and value.dtype.kind == kind and value.ndim == 1, name)
    assert value is not None
    return value


def _insist(fine: bool, name: str) -> None:
    if not fine:
        raise InputError(
            f"array {name!r} of the kernel corrections is missing, has the wrong shape or type, or "
            "holds an impossible value. Fit and write the corrections again."
        )


def _repeated(z: Floats, n: Codes, scatter: Floats, identity: Codes, times: Floats) -> float:
    """Share of the variance that recurs, from the variance between repetitions; shrunken.

    Not from their correlation: with a few kernels far from their class, all would seem exact.
    """
    mean = np.bincount(identity, n * z, len(times)) / np.maximum(times, 1)
    left = (n * np.minimum((z - mean[identity]) ** 2 + scatter, 16)).sum()
    known = (times - 1).sum()
    noise = (left + (1 - _REPEATED) * _REPEATED_KERNELS) / (known + _REPEATED_KERNELS)
    return float(np.clip(1 - noise, 0, 1))


def _codes(names: Names) -> tuple[NDArray[np.str_], Codes]:
    distinct, codes = np.unique(names.astype(str), return_inverse=True)
    return distinct, codes.ravel()


def _positions(known: NDArray[np.str_], names: Names) -> Codes:
    """Return the position of each name among the known ones (sorted), or -1."""
    if not len(known):
        return np.full(len(names), -1)
    texts = names.astype(str)
    at = np.minimum(np.searchsorted(known, texts), len(known) - 1)
    # "" counts as a name only if there are no others.
    nameless = (texts == "") & (known[-1] != "")
    return np.where((known[at] == texts) & ~nameless, at, -1)
