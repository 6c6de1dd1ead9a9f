"""The program: `python -m bothworlds`, or `bothworlds` once installed."""

import io
import sys


def start() -> None:
    """Run the command line; Ctrl-C ends with 130 while it is still being imported, too."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # letters that a terminal does not have are spelt
    try:
        from bothworlds.cli import main

        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    start()
