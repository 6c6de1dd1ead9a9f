"""Exponential weights on linear estimates, with one covariance for all arms or one for each."""
