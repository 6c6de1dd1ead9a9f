"""The paper's formulas as pure functions: designs, schedules, bounds."""
