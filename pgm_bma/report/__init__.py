"""One HTML file that needs nothing else."""

from pgm_bma.report.page import Report, picture

__all__ = ["Report", "picture"]
