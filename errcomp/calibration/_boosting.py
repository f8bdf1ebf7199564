"""Trees for the absolute error, with as many rounds as serve rows that were left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from errcomp._jobs import map_jobs
from errcomp.calibration.design import Floats
from errcomp.calibration.forest import Forest
from errcomp.calibration.spread import Integers, LeftOut
from errcomp.errors import MissingExtraError

__all__ = ["Boosted", "Booster", "Explained", "import_xgboost"]

#: One thread: sums of floats depend on their number. Columns by node: few features, few rounds.
_FIXED = {
    "objective": "reg:absoluteerror",
    "eval_metric": "mae",
    "tree_method": "hist",
    "colsample_bynode": 0.7,
    "nthread": 1,
    "verbosity": 0,
}


@dataclass(slots=True, eq=False)
class Booster:
    """Boosts trees for the absolute error, as many rounds as serve rows left out."""

    parameters: dict[str, Any]
    most: int
    seed: int
    n_jobs: int | None

    def fit(
        self, x: Floats, y: Floats, splits: Mapping[str, LeftOut], *, centered: bool
    ) -> Boosted:
        """Fit y; it starts at the median if `centered`, else at 0."""
        xgboost = import_xgboost()
        unit = float(1.4826 * np.median(np.abs(y - np.median(y)))) or float(np.std(y)) or 1.0
        rows = np.arange(len(y))
        # Splits may be one and the same: fit it once.
        folds = {id(split): list(split) for split in splits.values()}
        keys = [(key, out[0]) for key, parts in folds.items() for _, out in parts]
        fold = partial(self._fold, x, y, unit, centered)
        trained = map_jobs(fold, (f for parts in folds.values() for f in parts), n_jobs=self.n_jobs)
        lost, fits = np.zeros(self.most + 1), {}
        for key, (begin, fitted, errors) in zip(keys, trained, strict=True):
            lost += errors
            fits[key] = (begin, fitted)
        rounds = int(np.argmin(lost))
        held_out = {}
        for name, split in splits.items():
            found = np.empty(len(y))
            for _, out in folds[id(split)]:
                begin, fitted = fits[id(split), out[0]]
                found[out] = begin + unit * _sum_of_trees(xgboost, fitted, x[out], rounds)
            held_out[name] = found
        begin = float(np.median(y)) if centered else 0.0
        last = self._train(x, (y - begin) / unit, rows, rounds)[0] if rounds else None
        return Boosted(last, rounds, begin, unit, held_out)

    def _fold(
        self, x: Floats, y: Floats, unit: float, centered: bool, rows: tuple[Integers, Integers]
    ) -> tuple[float, Any, Floats]:
        """Return start and booster of the rows of a fit, and the error on the others by round."""
        train, out = rows
        begin = float(np.median(y[train])) if centered else 0.0
        errors = np.full(self.most + 1, np.abs(y[out] - begin).sum() / unit)
        if not x.shape[1] or not np.ptp(y):
            return begin, None, errors
        fitted, curve = self._train(x, (y - begin) / unit, train, self.most, out)
        errors[1:] = curve * len(out)
        return begin, fitted, errors

    def _train(
        self, x: Floats, z: Floats, rows: Integers, rounds: int, out: Integers | None = None
    ) -> tuple[Any, Floats]:
        """Return the booster and its mean absolute error on the rows left out, by round."""
        xgboost = import_xgboost()
        parts = [rows] if out is None else [rows, out]
        data = [xgboost.DMatrix(x[p], z[p], base_margin=np.zeros(len(p))) for p in parts]
        seen: dict[str, dict[str, list[float]]] = {}
        booster = xgboost.train(
            _FIXED | {"seed": self.seed} | self.parameters,
            data[0],
            rounds,
            evals=[(part, "out") for part in data[1:]],
            evals_result=seen,
            verbose_eval=False,
        )
        return booster, np.array(seen["out"]["mae"] if seen else [])


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """Trees of all rows, and what trees of other rows said of each row."""

    booster: Any
    rounds: int
    begin: float
    unit: float
    held_out: dict[str, Floats]

    def shrunken(self, share: float) -> Boosted:
        """Return what says this share of it."""
        held_out = {name: share * found for name, found in self.held_out.items()}
        return replace(
            self,
            booster=self.booster if share else None,
            begin=share * self.begin,
            unit=share * self.unit,
            held_out=held_out,
        )

    def forest(self, columns: Sequence[int]) -> Forest:
        if self.booster is None:
            return Forest.flat(self.begin)
        raw = self.raw("json")
        return Forest.from_booster(raw, columns=columns, base=self.begin, unit=self.unit)

    def raw(self, kind: str) -> bytes:
        return b"" if self.booster is None else bytes(self.booster.save_raw(kind))


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Attributions of the median: the trees by TreeSHAP, the offset beside its mean."""

    location: Boosted
    columns: list[int]
    offset: int | None
    mean_offset: float

    def attributions(self, x: Floats) -> Floats:
        found = np.zeros((len(x), x.shape[1] + 1))
        found[:, -1] = self.location.begin + self.mean_offset
        if self.offset is not None:
            found[:, self.offset] = x[:, self.offset] - self.mean_offset
        if self.location.booster is not None:
            data = import_xgboost().DMatrix(x[:, self.columns], base_margin=np.zeros(len(x)))
            parts = self.location.booster.predict(data, pred_contribs=True).astype(np.float64)
            found[:, self.columns] += self.location.unit * parts[:, :-1]
            found[:, -1] += self.location.unit * parts[:, -1]
        return found


def import_xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError("xgboost", "boost", "the boosted model") from error
    return xgboost


def _sum_of_trees(xgboost: Any, booster: Any, x: Floats, rounds: int) -> NDArray[Any]:
    # An empty range means all trees to xgboost.
    if booster is None or not rounds:
        return np.zeros(len(x))
    data = xgboost.DMatrix(x, base_margin=np.zeros(len(x)))
    found: NDArray[Any] = booster.predict(data, iteration_range=(0, rounds))
    return found.astype(np.float64)
