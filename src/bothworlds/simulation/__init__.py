"""Playing learners against environments: the engine, its results."""

from bothworlds.simulation.engine import replay, simulate
from bothworlds.simulation.results import Results, load_results

__all__ = ["Results", "load_results", "replay", "simulate"]
