"""Reports of propagation: tables, figures, checks."""
