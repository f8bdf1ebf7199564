"""The log-ratio of runs with effects of devices and models and Student t errors: errcomp."""

from errcomp.calibration.estimators.bayesian.residual import BayesianResidual

PACKAGES = ("errcomp", "pymc", "nutpie")


def hierarchical(x, y, device, model, draws):
    def work():
        # Few draws mix too little to pass all diagnostics, which are not what is timed.
        fit = BayesianResidual(draws=draws, tune=1000, chains=4, n_jobs=2, check="ignore")
        fit.fit(x, y, device=device, model=model)

    return work
