"""Reports and figures of half-life: tables, figures, checks."""
