"""Survival of interval-censored units: lifelines."""

import numpy as np
from lifelines import KaplanMeierFitter, WeibullFitter

PACKAGES = ("lifelines", "pandas", "numpy")


def nonparametric(left, right):
    lower, upper = np.array(left), np.array([np.inf if r is None else r for r in right])

    def work():
        found = KaplanMeierFitter().fit_interval_censoring(lower, upper)
        return [float(found.survival_function_.iloc[-1].mean())]

    return work


def weibull(left, right):
    lower, upper = np.array(left), np.array([np.inf if r is None else r for r in right])

    def work():
        return [float(WeibullFitter().fit_interval_censoring(lower, upper).median_survival_time_)]

    return work
