"""The Bayesian model of the log-ratio: its graph, its diagnostics, and the estimator."""
