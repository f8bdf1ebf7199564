"""Bootstrap intervals of a MAPE: SciPy and arch."""

import numpy as np
from arch.bootstrap import IIDBootstrap
from scipy import stats

PACKAGES = ("scipy", "arch", "numpy")


def _errors(n):
    rng = np.random.default_rng(1)
    measured = np.exp(rng.standard_normal(n))
    return np.abs(measured * np.exp(0.3 * rng.standard_normal(n)) / measured - 1)


def of_scipy(n, method, resamples):
    errors = _errors(n)

    def work():
        found = stats.bootstrap(
            (errors,),
            np.mean,
            n_resamples=resamples,
            method=method,
            vectorized=True,
            # All resamples at once would take 1.6 GB for 20,000 errors.
            batch=max(1, 2_000_000 // n),
            rng=np.random.default_rng(0),
        )
        return list(found.confidence_interval)

    return work


def of_arch(n, method, resamples):
    errors = _errors(n)

    def deviation(x):
        return x.std(ddof=1, keepdims=True) / np.sqrt(len(x))

    def work():
        drawn = IIDBootstrap(errors, seed=0)
        # The standard error of each resample is given: without it each would be resampled again.
        more = {"std_err_func": lambda mean, x: deviation(x)} if method == "studentized" else {}
        found = drawn.conf_int(np.mean, reps=resamples, method=method, **more)
        return np.ravel(found).tolist()

    return work
