"""Reports and figures of checks of measurements."""
