"""`python -m bothworlds` is the command `bothworlds`."""

from bothworlds.cli import main

if __name__ == "__main__":  # worker processes of a local cluster import this file too
    main()
