"""The command line. Results on stdout, messages on stderr. Exit: 0 done, 1 failed, 2 usage, 3 bad input, 130 Ctrl-C."""

from bothworlds.cli.root import main

__all__ = ["main"]
