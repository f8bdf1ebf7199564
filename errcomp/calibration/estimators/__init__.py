"""Models of the composition gap: baselines, boosted trees, a hierarchical model, their stack."""
