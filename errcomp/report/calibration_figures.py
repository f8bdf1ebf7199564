"""Figures of calibrated models: axes in, axes out, arrays drawn as they are.

`predicted`, `residuals`, `coverage` and `abstention` show runs that were left out of the fit;
`overhead` and `posterior` show a fit. None shows anything, touches pyplot or changes Matplotlib's
settings; Matplotlib is imported at first use (``pip install 'errcomp[figures]'``).
`errcomp.report.figures.save` writes the axes to a file.
"""

from __future__ import annotations

from errcomp.report._calibration_bands import abstention, coverage
from errcomp.report._calibration_errors import predicted, residuals
from errcomp.report._calibration_fit import overhead, posterior

__all__ = ["abstention", "coverage", "overhead", "posterior", "predicted", "residuals"]
