"""Algorithms on a ridge regression of the losses, for a stationary world: LinUCB, OFUL, LinTS."""
