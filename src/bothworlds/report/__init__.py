"""Reports: one self-contained page, figures for papers, tables for terminals."""

from bothworlds.report.export import write_figures
from bothworlds.report.figure_style import Look
from bothworlds.report.notebook import drawn
from bothworlds.report.study_page import page, write_report
from bothworlds.report.summary import Summary, summary_from, summary_of

__all__ = ["Look", "Summary", "drawn", "page", "summary_from", "summary_of", "write_figures", "write_report"]
