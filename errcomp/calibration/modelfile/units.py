"""Units of the times that a model takes and gives."""

from __future__ import annotations

import math

from errcomp.errors import InputError
from errcomp.tables.units import SECONDS

__all__ = ["check_unit"]


def check_unit(of_model: str | None, given: str | None) -> float:
    r"""Return the factor by which times in the unit given become times in the unit of the model.

    .. math:: t_\text{model} = f \, t_\text{given}, \qquad
              f = \frac{\text{seconds in one given unit}}{\text{seconds in one unit of the model}}

    Parameters
    ----------
    of_model : str or None
        Unit of the times in the fit; None where it was not stated.
    given : str or None
        Unit of the times to predict from.

    Returns
    -------
    float
        A power of ten; 1 where neither has a unit.

    Raises
    ------
    InputError
        Only one of them is stated, or one is no unit of time.

    Notes
    -----
    Misleads where neither unit is stated: times in ms and times in µs then look alike.

    Examples
    --------
    >>> check_unit("ms", "us"), check_unit("ms", "s")
    (0.001, 1000.0)
    """
    for unit in (of_model, given):
        if unit is not None and unit not in SECONDS:
            raise InputError(
                f"{unit!r} is not a unit of time that is known. Known: {', '.join(SECONDS)}. "
                "Convert the times, or state the unit they have."
            )
    if of_model is None and given is None:
        return 1.0
    if given is None:
        raise InputError(
            f"the model was fitted to times in {of_model}, and the times given have no unit. "
            "State it, for instance --unit ms (in Python unit='ms')."
        )
    if of_model is None:
        raise InputError(
            f"the times given are in {given}, and those that the model was fitted to have no "
            "unit. State the unit when fitting, and fit again."
        )
    # A quotient of rounded seconds is no power of ten: 1e-3 / 1e-6 is above 1000.
    return 10.0 ** round(math.log10(SECONDS[given] / SECONDS[of_model]))
