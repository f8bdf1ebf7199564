"""Bands that hold on groups left out of the fit, and whether new runs are like those of the fit."""
