"""Ridge regression on the plays: the two steps shared by algorithms with a linear model of the loss.

Every play adds a rank-one matrix to gram = ridge I + sum phi phi^T, and a vector to moment = sum phi loss. An algorithm
starts with ``gram`` at ridge I: ``Machine(..., begin={"gram": ridge * np.eye(d)})``.
"""

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import every, feature
from bothworlds.kernels.contract import Known, Play
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import cholesky, solve
from bothworlds.kernels.status import NOT_POSITIVE, OK


@kernel
def add_to_ridge(known: Known, play: Play, gram: Floats, moment: Floats) -> None:
    """Add a play to a ridge regression: phi phi^T to ``gram`` (d, d), and phi loss to ``moment`` (d,).

    phi is the row of ``known.z`` for the context and the arm of the play.

    >>> import numpy as np
    >>> z = np.array([[[1.0, 0.0], [1.0, 2.0]]])  # one context, two arms, two features
    >>> gram, moment = np.eye(2), np.zeros(2)
    >>> add_to_ridge(Known(z, np.ones(1), np.zeros((1, 2)), np.full((1, 2), 0.5)), Play(0, 1, -0.5), gram, moment)
    >>> gram.tolist(), moment.tolist()
    ([[2.0, 2.0], [2.0, 5.0]], [-0.5, -1.0])
    """
    for i in range(moment.shape[0]):
        z = feature(known.z, play.x, play.a, i)
        moment[i] += play.loss * z
        for j in range(moment.shape[0]):
            gram[i, j] += z * feature(known.z, play.x, play.a, j)


@kernel
def ridge_estimate(gram: Floats, moment: Floats, factor: Floats, theta: Floats) -> int:
    """Solve ``gram`` ``theta`` = ``moment`` (d,), and write the Cholesky factor of ``gram`` to ``factor`` (d, d).

    Returns a status: `OK`, or `NOT_POSITIVE` where ``gram`` is not positive definite; ``theta`` is then not written.

    >>> import numpy as np
    >>> factor, theta = np.zeros((2, 2)), np.zeros(2)
    >>> ridge_estimate(np.array([[2.0, 2.0], [2.0, 5.0]]), np.array([-0.5, -1.0]), factor, theta) == OK
    True
    >>> theta.round(12).tolist()
    [-0.083333333333, -0.166666666667]
    """
    if not every(cholesky(gram, factor)):
        return NOT_POSITIVE
    solve(factor, moment, theta)
    return OK
