"""The log-ratio of runs with effects of devices and models and Student t errors: Bambi."""

import bambi as bmb
import pandas as pd

PACKAGES = ("bambi", "pymc", "nutpie")


def hierarchical(x, y, device, model, draws, sampler):
    columns = {f"x{i}": column for i, column in enumerate(zip(*x, strict=True))}
    frame = pd.DataFrame({"y": y, "device": device, "model": model, **columns})
    formula = f"y ~ {' + '.join(columns)} + (1|device) + (1|model)"

    def work():
        bmb.Model(formula, frame, family="t").fit(
            draws=draws,
            tune=1000,
            chains=4,
            cores=2,
            random_seed=1,
            inference_method=sampler,
            progressbar=False,
        )

    return work
