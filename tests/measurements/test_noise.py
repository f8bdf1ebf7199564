"""The law of variances of repeats, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errcomp.measurements import noise
from errcomp.measurements.noise import Noise


@pytest.mark.parametrize("freedom", [3.0, 10.0, 50.0, np.inf])
def test_the_law_of_variances_is_that_of_scipy(freedom: float) -> None:
    rng = np.random.default_rng(0)
    d = rng.integers(1, 30, 100)
    x = np.r_[rng.gamma(0.5, 2, 96), 1e-12, 1.0, 3.0, 1e5]
    law = stats.chi2(d, scale=1 / d) if np.isinf(freedom) else stats.f(d, freedom)
    assert noise._median(d, freedom) == pytest.approx(law.ppf(0.5))
    assert noise._below(x, d, freedom) == pytest.approx(law.cdf(x))
    assert noise._log_density(x, d, freedom) == pytest.approx(law.logpdf(x))
    assert Noise(4.0, freedom).p(4 * x, d) == pytest.approx(law.sf(x), rel=1e-9, abs=1e-300)
