"""Figures of propagated errors: axes in, axes out, and files that are the same every time.

Each function takes a result and, if wanted, the axes to draw on, and returns the axes. None shows
anything, touches pyplot or changes Matplotlib's settings; Matplotlib is imported at first use
(``pip install 'errcomp[figures]'``). The palette follows Okabe and Ito (2008).

`bands` one run under each assumption; `budget` where its error comes from; `growth` the error from
level to level; `calibration` and `pit` whether bands hold; `save` into PNG, SVG or PDF.
"""

from __future__ import annotations

from errcomp.report._bands import bands
from errcomp.report._budget import budget
from errcomp.report._growth import growth
from errcomp.report._saving import save
from errcomp.report._validation import calibration, pit

__all__ = ["bands", "budget", "calibration", "growth", "pit", "save"]
