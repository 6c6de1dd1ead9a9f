"""The decision service: one command, one file, nothing lost that was acknowledged, every decision provable."""
