"""The black-box reduction to both worlds by Dann, Wei and Zimmert (2023): a master, a candidate and a base."""
