"""The program: `python -m bothworlds`, or `bothworlds` once installed."""

import sys


def start() -> None:
    """Run the command line; Ctrl-C ends with 130 while it is still being imported, too."""
    try:
        from bothworlds.cli import main

        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    start()
