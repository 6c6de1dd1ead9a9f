"""Reports: one self-contained page, figures for papers, tables for terminals."""

from bothworlds.report.files import write_figures
from bothworlds.report.page import page, write_report
from bothworlds.report.panels import Summary, summary_of

__all__ = ["Summary", "page", "summary_of", "write_figures", "write_report"]
