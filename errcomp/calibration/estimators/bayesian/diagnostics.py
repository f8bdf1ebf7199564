"""Diagnostics of sampling: whether the draws are reliable, and what to do if not."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from errcomp.calibration.design import Floats
from errcomp.errors import ErrcompError, MissingExtraError, SmallSampleWarning

#: Warnings about these libraries themselves: start of message, category.
_KNOWN: tuple[tuple[str, type[Warning]], ...] = (
    (r"\s*ArviZ is undergoing a major refactor", FutureWarning),
    (r"PyTensor could not link to a BLAS installation", UserWarning),
    (r"The inplace keyword in DataFrame.sort_values is deprecated", DeprecationWarning),
    # Where sampling is interrupted before the first draw.
    (r"More chains \(\d+\) than draws \(0\)", UserWarning),
)
_PURPOSE = "the Bayesian residual model"


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings of `_KNOWN` and no others."""
    with warnings.catch_warnings():
        for message, category in _KNOWN:
            warnings.filterwarnings("ignore", message=message, category=category)
        yield


def import_arviz() -> Any:
    """Return ArviZ.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    with quiet():
        try:
            import arviz
        except ImportError as error:
            raise MissingExtraError("arviz", "bayes", _PURPOSE) from error
    return arviz


def import_pymc() -> tuple[Any, Any]:
    """Return PyMC and nutpie.

    Raises
    ------
    MissingExtraError
        One of them is not installed.
    """
    with quiet():
        try:
            import nutpie  # type: ignore[import-untyped]
            import pymc  # type: ignore[import-untyped]
        except ImportError as error:
            missing = (error.name or "pymc").partition(".")[0]
            raise MissingExtraError(missing, "bayes", _PURPOSE) from error
    return pymc, nutpie


Check = Literal["raise", "warn", "ignore"]

_MOST_RHAT, _LEAST_ESS, _LEAST_BFMI = 1.01, 400.0, 0.3
#: With fewer draws in all, the limits of R-hat and ESS are lower.
_FEWEST_IN_FULL = 2000
_MOST_RHAT_SHORT, _LEAST_ESS_SHARE = 1.05, 0.1
_NAMED = 3


class SamplingError(ErrcompError, RuntimeError):
    """The draws are not reliable. The posterior is kept for inspection; nothing predicts."""


class SamplingWarning(UserWarning):
    """The draws are not reliable, or fewer than requested."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How well the posterior was sampled.

    Attributes
    ----------
    max_rhat : float
        Largest rank-normalised split R-hat of all parameters; at most 1.01.
    min_ess_bulk, min_ess_tail : float
        Smallest effective sample sizes of all parameters; above 400.
    divergences : int
        Divergent transitions after tuning; must be 0.
    min_bfmi : float
        Smallest Bayesian fraction of missing information of the chains; above 0.3.
    chains, draws : int
        Finished chains, and draws of each.
    seconds : float
        Time of sampling, without compiling.
    interrupted : bool
        Chains are missing because sampling was interrupted.
    problems : tuple of str
        Failed checks, with the worst parameters; empty if all passed.

    Examples
    --------
    >>> sampled = Diagnostics(
    ...     max_rhat=1.002, min_ess_bulk=2100.0, min_ess_tail=1900.0, divergences=0, min_bfmi=0.8,
    ...     chains=4, draws=1000, seconds=12.0, interrupted=False, problems=())
    >>> sampled.ok
    True

    Notes
    -----
    With fewer than 2000 draws in all (short fits inside a cross-validation) R-hat may be up to 1.05
    and ESS must be above a tenth of the draws.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-Normalization, Folding, and
    Localization: An Improved R-hat", Bayesian Analysis 16(2), doi:10.1214/20-BA1221. Betancourt
    (2016), "Diagnosing Suboptimal Cotangent Disintegrations in Hamiltonian Monte Carlo",
    arXiv:1604.00695.
    """

    max_rhat: float
    min_ess_bulk: float
    min_ess_tail: float
    divergences: int
    min_bfmi: float
    chains: int
    draws: int
    seconds: float
    interrupted: bool
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return not self.problems


def diagnose(
    posterior: Mapping[str, Floats],
    labels: Mapping[str, Sequence[Sequence[str]]],
    *,
    divergent: Any,
    energy: Floats,
    seconds: float,
    interrupted: bool,
) -> Diagnostics:
    """Check the draws.

    Parameters
    ----------
    posterior : mapping of str to ndarray, shape (chains, draws, ...)
    labels : mapping of str to sequence of sequences of str
        Names along each further axis, of those that have names.
    divergent : ndarray of bool, shape (chains, draws)
    energy : ndarray, shape (chains, draws)
    seconds : float
    interrupted : bool
    """
    az = import_arviz()
    chains, draws = energy.shape
    # One chain is compared by its halves: that shows whether it settled, not whether others agree.
    judged = {name: _halved(v) if chains == 1 else v for name, v in posterior.items()}
    data = az.convert_to_dataset(judged)
    # Constant parameters have no R-hat: NaN, which is a problem below.
    with np.errstate(invalid="ignore", divide="ignore"):
        figures = {
            "R-hat": _by_parameter(az.rhat(data), labels),
            "bulk ESS": _by_parameter(az.ess(data, method="bulk"), labels),
            "tail ESS": _by_parameter(az.ess(data, method="tail"), labels),
        }
    full = chains * draws >= _FEWEST_IN_FULL
    rhat = _MOST_RHAT if full else _MOST_RHAT_SHORT
    ess = _LEAST_ESS if full else min(_LEAST_ESS, _LEAST_ESS_SHARE * chains * draws)
    bfmi = float(np.min(az.bfmi(energy)))
    divergences = int(np.sum(divergent))
    problems = [
        *_worst("R-hat", figures["R-hat"], above=rhat),
        *_worst("bulk ESS", figures["bulk ESS"], below=ess),
        *_worst("tail ESS", figures["tail ESS"], below=ess),
    ]
    if divergences:
        problems.append(f"{divergences} of {chains * draws} draws diverged")
    if not bfmi > _LEAST_BFMI:
        problems.append(f"BFMI {bfmi:.2f} in a chain (should be above {_LEAST_BFMI})")
    return Diagnostics(
        max_rhat=max(figures["R-hat"].values()),
        min_ess_bulk=min(figures["bulk ESS"].values()),
        min_ess_tail=min(figures["tail ESS"].values()),
        divergences=divergences,
        min_bfmi=bfmi,
        chains=chains,
        draws=draws,
        seconds=seconds,
        interrupted=interrupted,
        problems=tuple(problems),
    )


def warn_of(caveats: Sequence[str], diagnostics: Diagnostics, chains: int, check: Check) -> None:
    """Warn about caveats of the data, and about missing chains."""
    if check != "ignore":
        for caveat in caveats:
            warnings.warn(caveat, SmallSampleWarning, stacklevel=3)
    if diagnostics.interrupted:
        warnings.warn(
            f"sampling was interrupted: {diagnostics.chains} of {chains} chains were finished and "
            "are kept; the others are lost.",
            SamplingWarning,
            stacklevel=3,
        )


def enforce(diagnostics: Diagnostics, check: Check) -> None:
    """Refuse bad draws, or warn about them.

    Raises
    ------
    SamplingError
        A check failed and `check` is ``"raise"``.
    """
    if diagnostics.ok or check == "ignore":
        return
    message = (
        f"the posterior was not sampled well: {'; '.join(diagnostics.problems)}. Increase "
        f"draws and tune (now {diagnostics.chains} chains of {diagnostics.draws} draws), then "
        'target_accept. If that does not help, drop redundant features. With check="warn" or '
        '"ignore", the draws are used as they are.'
    )
    if check == "raise":
        raise SamplingError(message)
    warnings.warn(message, SamplingWarning, stacklevel=3)


def _halved(values: Floats) -> Floats:
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, half : 2 * half]])


def _by_parameter(data: Any, labels: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, float]:
    """Return the value of every scalar parameter by name, e.g. device_shift[H100]."""
    by_label: dict[str, float] = {}
    for name, values in data.data_vars.items():
        each = [f"[{', '.join(at)}]" if at else "" for at in product(*labels.get(name, ()))]
        of = [f"{name}{at}" for at in each]
        by_label.update(zip(of, np.ravel(values.values).tolist(), strict=True))
    return by_label


def _worst(
    word: str, values: Mapping[str, float], *, above: float = math.inf, below: float = -math.inf
) -> list[str]:
    """Name the parameters furthest beyond the limit; NaN (a constant) is beyond it, too."""
    bad = {name: v for name, v in values.items() if not below < v <= above}
    if not bad:
        return []
    sign = 1 if below > -math.inf else -1
    order = sorted(bad, key=lambda name: (not math.isnan(bad[name]), sign * bad[name]))
    named = ", ".join(f"{name} {bad[name]:.5g}" for name in order[:_NAMED])
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    limit = f"at most {above:g}" if above < math.inf else f"above {below:g}"
    return [f"{word} of {named}{more} (should be {limit})"]
