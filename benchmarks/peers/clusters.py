"""Inference on a MAPE with clusters: the wild bootstrap of wildboottest, which tests one value."""

import numpy as np
from wildboottest.wildboottest import WildboottestCL

PACKAGES = ("wildboottest", "numpy")


def wild(errors, clusters, draws):
    y, codes = np.array(errors), np.array(clusters)

    def work():
        test = WildboottestCL(
            X=np.ones((len(y), 1)),
            Y=y - y.mean(),
            cluster=codes,
            R=np.array([1.0]),
            B=draws,
            seed=0,
        )
        test.get_scores(bootstrap_type="11", impose_null=True)
        test.get_weights(weights_type="rademacher")
        test.get_numer()
        test.get_denom()
        test.get_tboot()
        test.get_vcov()
        test.get_tstat()
        test.get_pvalue(pval_type="two-tailed")

    return work
