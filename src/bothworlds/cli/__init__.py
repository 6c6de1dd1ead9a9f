"""The command line. Data on stdout, talk on stderr; exit 0 done, 1 failed, 2 usage, 3 bad input, 130 interrupted."""

from bothworlds.cli.group import main

__all__ = ["main"]
