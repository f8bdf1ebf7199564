"""Figures from sums over rows that stay in their engine."""
