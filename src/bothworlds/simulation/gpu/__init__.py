"""Simulations on a GPU (optional: pip install 'bothworlds[gpu]'); slow to import, so only who asks for it pays."""

from bothworlds.simulation.gpu.replications import WORTH_IT, GpuReplications, is_available, play, require_gpu

__all__ = ["WORTH_IT", "GpuReplications", "is_available", "play", "require_gpu"]
