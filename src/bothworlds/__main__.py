"""Entry point of the command line: `python -m bothworlds`, or `bothworlds` once installed."""

import io
import sys


def start() -> None:
    """Run the command line; Ctrl-C exits with status 130, even during imports."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # escape characters that the terminal's encoding lacks
    try:
        from bothworlds.cli import main

        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    start()
