"""Shared code of all figures: style, names and numbers, rows with intervals, hover texts, files."""
