"""MWU-LC (Kuroki et al. 2024): continuous exponential weights on the simplex, alone and in a reduction."""
