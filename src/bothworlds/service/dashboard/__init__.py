"""The dashboard: HTML pages for experiments and decisions."""
