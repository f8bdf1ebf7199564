r"""The error that all alternatives share under a condition: it matters for limits, not for choices.

Of a measured condition c in a group g, r is the logarithm of the time over its prediction, without
what belongs to alternatives:

.. math:: r_c = \mu + \gamma_g + \epsilon_c

with γ normal and ε scaled t. Variances and degrees of freedom are learned like those of
`errcomp.decisions.errors`: a half-Cauchy prior of the standard deviation of γ with the scale of ε.
A condition that nobody measured gets draws of r, with the γ of its group if others of the group
were measured. Each step of the chain uses another draw of the measured r, so that what is uncertain
about them stays so.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from errcomp.decisions.errors import DF
from errcomp.tables.choices import Floats, Ints

#: Fewest measured conditions.
FEWEST = 4
_BURN = 200


def shared_errors(measured: Floats, group: Ints, wanted: Ints, seed: int) -> Floats:
    """Draw the shared error (ln) of conditions that nobody measured.

    Parameters
    ----------
    measured : ndarray, shape (draws, n)
        Draws of r of the measured conditions, n at least `FEWEST`.
    group : ndarray of int, shape (n,)
    wanted : ndarray of int, shape (k,)
        Groups of the conditions to draw for.
    seed : int

    Returns
    -------
    ndarray, shape (draws, k)
    """
    rng = np.random.default_rng(seed)
    names, code = np.unique(group, return_inverse=True)
    n, groups = len(group), len(names)
    place = np.searchsorted(names, wanted).clip(max=groups - 1)
    known = names[place] == wanted
    new, of_new = np.unique(wanted[~known], return_inverse=True)
    start = float(measured[0].var()) + 1e-12
    mean, of_group = float(measured[0].mean()), np.zeros(groups)
    inner, outer, df, mix = start / 2, start / 2, float(DF[-2]), np.ones(n)
    found = np.empty((len(measured), len(wanted)))
    for step in range(-_BURN, len(measured)):
        r = measured[step]
        weight = 1 / (mix * inner)
        total = np.bincount(code, weight, groups)
        pulled = np.bincount(code, weight * (r - mean), groups)
        of_group = (pulled + rng.standard_normal(groups) * np.sqrt(total + 1 / outer)) / (
            total + 1 / outer
        )
        left = r - of_group[code]
        mean = float((weight @ left) / weight.sum() + rng.standard_normal() / np.sqrt(weight.sum()))
        error = left - mean
        inner = max(float((error**2 / mix).sum()) / 2, 1e-12) / rng.gamma(n / 2)
        auxiliary = (1 / outer + 1 / inner) / rng.gamma(1.0)
        outer = (float(of_group @ of_group) / 2 + 1 / auxiliary) / rng.gamma((groups + 1) / 2)
        scaled = error**2 / inner
        mix = (df + scaled) / 2 / rng.gamma((df + 1) / 2, size=n)
        each = -(DF[:, None] + 1) / 2 * np.log1p(scaled / DF[:, None])
        log = n * (gammaln((DF + 1) / 2) - gammaln(DF / 2) - np.log(DF) / 2) + each.sum(axis=1)
        df = float(DF[(log + rng.gumbel(size=len(DF))).argmax()])
        if step >= 0:
            shift = of_group[place]
            shift[~known] = (np.sqrt(outer) * rng.standard_normal(len(new)))[of_new]
            width = np.sqrt(inner * (df / 2) / rng.gamma(df / 2, size=len(wanted)))
            found[step] = mean + shift + width * rng.standard_normal(len(wanted))
    return found
