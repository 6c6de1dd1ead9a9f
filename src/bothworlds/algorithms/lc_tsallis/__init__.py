"""LC-Tsallis-INF (Kato & Ito, AISTATS 2025): Algorithm 1 with the paper's rates, and two other tunings."""
