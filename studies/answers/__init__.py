"""The questions that the studies answer, one module for each kind of question."""
