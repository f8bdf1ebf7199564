"""Bands of a fitted model inside other tools."""
