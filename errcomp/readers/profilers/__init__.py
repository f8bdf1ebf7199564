"""Traces and tables of profilers."""
