"""Collectives and training across devices."""
