"""Reports of calibrated models: tables, figures, checks."""
