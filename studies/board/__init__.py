"""The scoreboard: worlds, players, and the file of results."""
