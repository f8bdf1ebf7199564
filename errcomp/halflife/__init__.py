"""How long a calibrated model stays valid while the software under it changes."""
