"""GPU versions of kernel functions: matrix factors and sums computed in register tiles."""
