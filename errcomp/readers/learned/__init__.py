"""Learned cost models, and the measurements that they were trained on."""
