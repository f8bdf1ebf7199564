"""Simulators and analytical models of chips and networks of chips."""
