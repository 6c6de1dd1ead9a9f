"""Simulations on a GPU (optional: pip install '.[gpu]'); imported on demand, because the import is slow."""

from bothworlds.simulation.gpu.launcher import MIN_ROUNDS, GpuReplications, is_available, play, require_gpu

__all__ = ["MIN_ROUNDS", "GpuReplications", "is_available", "play", "require_gpu"]
