"""Corrects the sum of a run's kernels to what the run takes, with bands that hold."""
