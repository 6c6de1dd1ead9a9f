"""Kernel text: small pure functions that run interpreted, compiled and on a GPU from one source."""
