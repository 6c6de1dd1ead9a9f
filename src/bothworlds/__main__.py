"""`python -m bothworlds` is the command `bothworlds`."""

from bothworlds.cli import main

main()
