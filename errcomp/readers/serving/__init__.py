"""Simulators and benchmarks of serving: requests, batches, deployments."""
