"""Change points of many series: ruptures and Apache Otava, at several thresholds.

    python peers/steps.py SERIES.npy FOUND.json

Series are rows, in standard deviations of their noise. For each method and threshold the result has
the positions of the change points of each series.
"""

import json
import sys
from pathlib import Path

import numpy as np
import ruptures
from otava.analysis import compute_change_points

PACKAGES = ("ruptures", "apache-otava")
PENALTIES = np.geomspace(3, 600, 40).round(2).tolist()
P_VALUES = [0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001, 3e-4, 1e-4, 1e-5, 1e-6]


def of_ruptures(x):
    # PELT with the squared error, in C.
    fitted = ruptures.KernelCPD(kernel="linear", min_size=2).fit(x)
    return [fitted.predict(pen=penalty)[:-1] for penalty in PENALTIES]


def of_otava(x):
    # Otava asks for positive values, as times are.
    values = (np.exp(0.02 * x)).tolist()
    return [
        [one.index for one in compute_change_points(values, max_pvalue=p, min_magnitude=0.0)[0]]
        for p in P_VALUES
    ]


def main(series, found):
    rows = np.load(series)
    result = {}
    for name, work, given in (
        ("ruptures", of_ruptures, PENALTIES),
        ("otava", of_otava, P_VALUES),
    ):
        each = [work(x) for x in rows]
        result[name] = [
            {"threshold": value, "found": [[int(k) for k in one[i]] for one in each]}
            for i, value in enumerate(given)
        ]
    Path(found).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
