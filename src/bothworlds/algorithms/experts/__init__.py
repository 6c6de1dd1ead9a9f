"""Linear EXP4 and Logdet-FTRL (Liu, Wei and Zimmert 2023), with contexts whose law is known or counted."""
