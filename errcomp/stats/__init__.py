"""Numerics that several packages need, each once: arrays in, arrays out."""
