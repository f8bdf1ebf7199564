"""A mixed linear model of the log-ratios of kernels: statsmodels, restricted likelihood."""

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

PACKAGES = ("statsmodels", "pandas", "numpy")


def mixed(y, size, kind, device):
    """Random effects of class, device and both together, a slope on the size, normal errors."""
    frame = pd.DataFrame({"y": y, "size": size, "kind": kind, "device": device})
    frame["size"] -= frame["size"].mean()
    frame["cell"] = frame["kind"].astype(str) + "/" + frame["device"].astype(str)
    effects = {name: f"0 + C({name})" for name in ("kind", "device", "cell")}
    everything = np.ones(len(frame))

    def work():
        smf.mixedlm("y ~ size", frame, groups=everything, vc_formula=effects).fit()

    return work
