"""Studies: grids of simulations from TOML files, run in processes or on clusters, with results in resumable folders."""

from bothworlds.studies.runner import run_study
from bothworlds.studies.study import Study

__all__ = ["Study", "run_study"]
