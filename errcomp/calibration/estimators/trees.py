"""The boosted model of the log-ratio as it is stored: predicts with NumPy and SciPy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from errcomp.calibration.design import Floats, Names
from errcomp.calibration.estimators.base import as_features
from errcomp.calibration.estimators.forest import Forest, damaged
from errcomp.calibration.estimators.spread import Spreads
from errcomp.errors import InputError, describe_rows

__all__ = ["TreeModel"]

_MOST_FEATURES = 100_000
#: Of the logarithm of a spread: beyond it nothing is a spread.
_LARGEST_LOG = 100.0


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel:
    r"""Log-ratio of a run from boosted trees, with the spread that belongs to it.

    .. math:: y_r = o_r + f(x_r) + a_{d(r)} + e^{g(x_r)} \, \varepsilon_r

    with the offset o, which is a column of the features, forests f and g, the effect a of the
    device (0 where it was not in the fit), and ε of a Student t, one for known devices and one
    for new ones.

    Attributes
    ----------
    location, log_scale : Forest
        f and g.
    offset : int or None
        Column of o.
    features : int
        Columns of the fit.
    spreads : Spreads

    Examples
    --------
    >>> from errcomp.calibration.estimators.spread import Spread
    >>> spreads = Spreads({"A": 0.1}, known=Spread(0.02, 4.0), new=Spread(0.05, 3.0))
    >>> model = TreeModel(Forest.flat(0.0), Forest.flat(0.0), offset=0, features=1, spreads=spreads)
    >>> x, device = np.array([[-0.2], [-0.2]]), np.array(["A", "B"], dtype=object)
    >>> model.predict_quantiles(x, [0.05, 0.5, 0.95], device=device).round(2).tolist()
    [[-0.14, -0.1, -0.06], [-0.32, -0.2, -0.08]]
    """

    location: Forest
    log_scale: Forest
    offset: int | None
    features: int
    spreads: Spreads

    KIND = "trees"

    def at(self, x: Floats) -> Floats:
        """Return offset and trees of checked rows, shape (n,): the median of a new device."""
        found = self.location.predict(x)
        return found if self.offset is None else found + x[:, self.offset]

    def predict_quantiles(
        self, x: Floats, q: Sequence[float], *, device: Names | None = None
    ) -> Floats:
        """Return quantiles of the log-ratio at ascending probabilities q, shape (n, len(q)).

        Raises
        ------
        InputError
            There are not as many features as in the fit, the offset is not known, a feature is
            too large for 32 bits, or q are no ascending probabilities.
        """
        rows = as_features(x, self.features)
        if self.offset is not None:
            unknown = np.flatnonzero(np.isnan(rows[:, self.offset]))
            if len(unknown):
                raise InputError(
                    f"the offset (column {self.offset}) must be known, got NaN in "
                    f"{describe_rows(unknown.tolist())}. Other features may be unknown."
                )
        large = np.flatnonzero((np.abs(rows) > np.finfo(np.float32).max).any(axis=1))
        if len(large):
            raise InputError(
                f"features must fit into 32 bits (up to 3e38), got a larger one in "
                f"{describe_rows(large.tolist())}. Use another unit."
            )
        scale = np.exp(self.log_scale.predict(rows))
        return self.spreads.around(self.at(rows), q, device, scale)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON can hold, and the arrays, that make the model again."""
        forests = {"location": self.location, "log_scale": self.log_scale}
        meta = {
            "bases": {name: forest.base for name, forest in forests.items()},
            "offset": self.offset,
            "features": self.features,
            "spreads": self.spreads.to_meta(),
        }
        parts = ((n, forest.to_arrays()) for n, forest in forests.items())
        return meta, {f"{name}.{k}": array for name, part in parts for k, array in part.items()}

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make the model again.

        Raises
        ------
        InputError
            Something is missing or cannot be.
        """
        features, offset = meta.get("features"), meta.get("offset")
        bases, spreads = meta.get("bases"), meta.get("spreads")
        if type(features) is not int or not 0 < features <= _MOST_FEATURES:
            raise damaged(f"must have 1 to {_MOST_FEATURES:,} features, got {str(features)[:40]}")
        if offset is not None and (type(offset) is not int or not 0 <= offset < features):
            raise damaged(f"must have an offset among {features} columns, got {str(offset)[:40]}")
        if not isinstance(bases, dict) or not isinstance(spreads, dict):
            raise damaged("must come with bases and spreads")
        forests = {}
        for name in ("location", "log_scale"):
            start = f"{name}."
            own = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
            forests[name] = Forest.from_arrays(bases.get(name), own, features)
        if forests["log_scale"].reach() > _LARGEST_LOG:
            raise damaged(f"must give logarithms of spreads up to {_LARGEST_LOG:g}")
        return cls(**forests, offset=offset, features=features, spreads=Spreads.from_meta(spreads))
