"""Algorithms: hyper-parameters and kernel functions."""
