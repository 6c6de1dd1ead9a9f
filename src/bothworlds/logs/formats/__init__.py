"""Formats of logs: those of other libraries, and tables."""
