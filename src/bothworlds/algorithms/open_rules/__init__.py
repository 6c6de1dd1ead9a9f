"""Algorithms for open problems: contexts that are not listed, and candidates that come with each request."""
