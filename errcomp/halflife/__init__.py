"""How long a calibrated model stays true while the software under it moves."""
