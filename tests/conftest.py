"""Shared set-up: hypothesis without time limits, for machines that are shared and slow."""

from hypothesis import settings

settings.register_profile("shared", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("shared")
