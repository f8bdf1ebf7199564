"""Error figures from arrays. Knows no table, no tool and no file.

Errors of each pair: `ape`, `signed_percentage_error`, `log_accuracy_ratio`, `absolute_error`.
Figures of all pairs: those of `FIGURES`, each also a function of its own; `pooled` and `macro` over
groups. With intervals: `errcomp.metrics.intervals`.

All fractions are fractions, not percent. Results are within 1e-12 of the exact value of the
floating-point numbers given, from 1e-300 to 1e300, as long as neither inputs nor result are
subnormal (below 2.2e-308); for figures in which errors cancel (`bias`, `total_error`, `r2`,
`pearson`, `spearman`), relative to what cancels. A result too large for a float raises; none is
infinite.
"""

from __future__ import annotations

from errcomp.metrics._registry import FIGURES, Figure, figure
from errcomp.metrics.aggregate import Macro, macro, pooled
from errcomp.metrics.agreement import kendall, pearson, r2, spearman, top_k_regret
from errcomp.metrics.averages import (
    exact_predictions,
    gm_ratio,
    gmape,
    mae,
    mape,
    smape,
    wape,
)
from errcomp.metrics.pointwise import (
    absolute_error,
    ape,
    log_accuracy_ratio,
    signed_percentage_error,
)
from errcomp.metrics.ranked import (
    ape_quantile,
    approximate_ape_quantile,
    max_ape,
    median_ape,
    share_within,
)
from errcomp.metrics.signed import bias, total_error
from errcomp.metrics.squared import rmse, rmsle, rmspe

__all__ = [
    "FIGURES",
    "Figure",
    "Macro",
    "absolute_error",
    "ape",
    "ape_quantile",
    "approximate_ape_quantile",
    "bias",
    "exact_predictions",
    "figure",
    "gm_ratio",
    "gmape",
    "kendall",
    "log_accuracy_ratio",
    "macro",
    "mae",
    "mape",
    "max_ape",
    "median_ape",
    "pearson",
    "pooled",
    "r2",
    "rmse",
    "rmsle",
    "rmspe",
    "share_within",
    "signed_percentage_error",
    "smape",
    "spearman",
    "top_k_regret",
    "total_error",
    "wape",
]
