"""Designs of tabular problems, in which the n offered pairs have linearly independent features z.

Then z(a,x)ᵀ Σ(e)⁻¹ z(a,x) = 1/(g(x) e(a|x)), whatever the features are. Let n_x be the number of arms offered in x.
In every context, the largest of these is at least n_x/g(x), and uniform play attains it in all of them:

1/λ* = max_x n_x/g(x)

Uniform play also maximises det Σ(e), and is G-optimal in each context on its own.
"""

import numpy as np

from bothworlds.arrays import Bools, Floats


def is_tabular(z: Floats, offered: Bools) -> bool:
    """Return whether there are as many offered pairs as dimensions; z must span all dimensions.

    >>> is_tabular(np.eye(2)[None], np.ones((1, 2), dtype=bool))
    True
    """
    return bool(np.count_nonzero(offered) == z.shape[2])


def tabular_coverage(g: Floats, e: Floats, offered: Bools) -> float:
    """Return λ(e) of a tabular problem: the smallest probability g(x) e(a|x) of an offered pair.

    >>> tabular_coverage(np.array([0.5, 0.5]), np.array([[0.5, 0.5], [0.9, 0.1]]), np.ones((2, 2), dtype=bool))
    0.05
    """
    return float((g[:, None] * e)[offered].min())


def tabular_limit(g: Floats, offered: Bools) -> float:
    """Return λ* of a tabular problem: the smallest g(x)/n_x.

    >>> tabular_limit(np.array([0.25, 0.75]), np.array([[True, False], [True, True]]))
    0.25
    """
    return float((g / offered.sum(axis=1)).min())
