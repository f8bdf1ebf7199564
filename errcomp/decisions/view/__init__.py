"""Reports and figures of comparisons and choices."""
