"""Learned cost models, and the measurements that they were made from."""
