"""Split conformal bands of residuals: crepes."""

import numpy as np
from crepes import ConformalRegressor

PACKAGES = ("crepes", "numpy")


def split(n, new, level):
    residuals = np.random.default_rng(1).standard_normal(n)
    centre = np.random.default_rng(2).standard_normal(new)

    def work():
        bands = ConformalRegressor().fit(residuals=residuals)
        found = bands.predict_int(centre, confidence=level)
        return found[0].tolist()

    return work
