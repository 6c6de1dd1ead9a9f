"""Checks of algorithms and environments against their contracts."""
