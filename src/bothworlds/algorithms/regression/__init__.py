"""Algorithms on a ridge regression of the losses, for a stationary world or one that changes slowly or seldom."""
