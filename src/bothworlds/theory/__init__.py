"""Formulas of the paper and of our own theorems as pure functions: designs, schedules, bounds, confidence."""
