"""Reports: one self-contained page, figures for papers, tables for terminals."""

from bothworlds.report.files import write_figures
from bothworlds.report.from_results import summary_from
from bothworlds.report.look import Look
from bothworlds.report.notebook import drawn
from bothworlds.report.page import page, write_report
from bothworlds.report.panels import Summary, summary_of

__all__ = ["Look", "Summary", "drawn", "page", "summary_from", "summary_of", "write_figures", "write_report"]
