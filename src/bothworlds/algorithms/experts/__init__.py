"""Linear EXP4 and Logdet-FTRL (Liu, Wei and Zimmert 2023), with a known or an empirical context distribution."""
