"""The default rule for open problems: `matched` on a reservoir of recent contexts. Not the paper's.

Every mean over the list of contexts becomes the average over a reservoir of n contexts, the features of their
candidates included. With Theta the sum of estimates, m a ridge regression and r the number of rows until the next plan,
q(x) is the FTRL point of <Theta + mu + r m, phi(a, x)>, pi = (1 - gamma) q + gamma e, e even among the candidates, and

    Sigma = average of sum_a pi phi phi^T + R,      direction = (n + 1)/(n + pi lev) Sigma^-1 phi,

where R = RIDGE d/n diag(average of sum_a e phi phi^T), 1 in place of 0 on the diagonal, is a ridge as large as the
error of a covariance of n contexts in d dimensions, so that directions never seen have an inverse, too. The factor puts
the request into its own covariance (lev = phi^T Sigma^-1 phi): estimates are at most (n + 1)/pi. gamma = 1/(n_t + 1),
n_t the rows since the last restart. mu moves toward n_t m - Theta as far as steps stay covered. Rates and restarts are
those of `Matched`, without prices; but evidence of a change is collected from n_t = d on, because with fewer rows than
dimensions a regression is worse than one that remembers less, whether the world changes or not.

The estimates are biased: E theta_hat - theta = (Sigma_hat^-1 Sigma - I)(theta - m), where Sigma is the mean of the same
matrix over all contexts. No theorem covers the error. `reference_open_tsallis` is the same rule in NumPy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.algorithms.lc_tsallis.change_evidence import WINDOWS
from bothworlds.algorithms.lc_tsallis.matched import SETTLED, Matched
from bothworlds.algorithms.open_rules.functions import Functions, functions_of
from bothworlds.algorithms.open_rules.open_decide import decide_rows
from bothworlds.algorithms.open_rules.open_state import Options, State, Work
from bothworlds.algorithms.open_rules.open_tsallis_kernel import learn_rows
from bothworlds.algorithms.open_rules.pieces import ROW_BY_ROW, ROWS_PER_PIECE, longest_piece
from bothworlds.arrays import Floats, Ints
from bothworlds.errors import NumericalError
from bothworlds.kernels.status import OK, sentence
from bothworlds.open_contexts.rule_contract import Choices, PlanArrays, Rows, no_rows
from bothworlds.policy.health_report import Restarts
from bothworlds.problem.open import OpenProblem

CAPACITY = 200  # contexts of the reservoir
ENTRY = 0.25  # later, this share of contexts enters: the reservoir has those of about the last 800 rows
RIDGE = 0.1  # R is RIDGE d/n times the diagonal of the moment of even play
TYPICAL_CANDIDATES = 10  # of a request, where they have no names


def plan_operations(blocks: int, p: int, n_arms: float, capacity: int) -> float:
    """Return about how many operations a plan takes: products, points, covariance, and four factorizations."""
    return capacity * n_arms * (p * (p / 2 + 5) + 100) + blocks * p**3


def options_for(tuning: Matched, blocks: int, p: int, n_arms: float, capacity: int = CAPACITY) -> Options:
    """Return the options for features of a shape and a typical number of candidates."""
    d = blocks * p
    return Options(
        gain=tuning.gain,
        least=tuning.least,
        caution=tuning.caution * d,
        settled=SETTLED * d,
        price=tuning.price,
        c=tuning.c,
        first=math.sqrt(d) * n_arms**-0.25,
        uncovered=4.0 * d / tuning.c,
        leave_in=1.0,
        ridge=RIDGE * d,
        capacity=float(capacity),
        entry=ENTRY,
        trusted=float(d),
        row_by_row=float(ROW_BY_ROW),
        rows_per_piece=float(ROWS_PER_PIECE),
        longest_piece=longest_piece(plan_operations(blocks, p, n_arms, capacity)),
    )


def empty_state(options: Options, blocks: int, p: int, candidates: int) -> State:
    """Return the state before the first row; the first plan is due."""
    vector, memories, n = (blocks, p), len(WINDOWS) + 1, int(options.capacity)
    rows = 1 if blocks > 1 else candidates
    shapes: dict[str, tuple[int, ...]] = {
        "estimates": (memories, *vector),
        "moments": (memories, *vector),
        "grams": (memories, *vector, p),
        "scales": (memories,),
        "window_rounds": (len(WINDOWS),),
        "evidence": (len(WINDOWS),),
        "inverse": (*vector, p),
        "z": (n, rows, p),
        "offered": (n, candidates),
        "q": (n, candidates),
    }
    for name in ("theta", "drift", "baseline", "step", "weights"):
        shapes[name] = vector
    state = State(**{name: np.zeros(shapes.get(name, (1,))) for name in State._fields})
    state.inverse_rate[0] = options.first
    state.scales[:], state.evidence[:] = 1.0, 1.0
    return state


def work_for(state: State) -> Work:
    """Return scratch space for a state."""
    blocks, p = state.theta.shape
    return Work(
        shift=np.zeros(state.q.shape),
        table=np.zeros(state.q.shape),
        roots=np.zeros(state.q.shape),
        column=np.zeros(state.z.shape[0] * state.z.shape[1]),
        way=np.zeros((blocks, p)),
        even=np.zeros((blocks, p, p)),
        regular=np.zeros((blocks, p)),
        mixed=np.zeros((p, p)),
    )


def widened(state: State, candidates: int) -> State:
    """Return the state with room for more candidates per context."""
    more = candidates - state.q.shape[1]
    if more <= 0:
        return state
    wide = {name: np.pad(getattr(state, name), ((0, 0), (0, more))) for name in ("offered", "q")}
    if state.theta.shape[0] == 1:
        wide["z"] = np.pad(state.z, ((0, 0), (0, more), (0, 0)))
    return state._replace(**wide)


def copied(state: State) -> State:
    """Return a copy of a state."""
    return State(*(part.copy() for part in state))


def restored(state: State, arrays: Mapping[str, Any]) -> State:
    """Return the state in the arrays of a file; raise KeyError or TypeError if they do not fit."""
    for name in State._fields:
        expected, given = getattr(state, name).shape, arrays[name].shape
        if name not in ("z", "offered", "q") and given != expected:
            raise TypeError(f"{name} has shape {given}, not {expected}")
    return State(**{name: np.array(arrays[name], dtype=np.float64) for name in State._fields})


@dataclass(frozen=True)
class OpenTsallis:
    """The rule of `LCTsallisINF` with the tuning `Matched`, on open problems."""

    tuning: Matched
    capacity: int = CAPACITY

    def learner(self, problem: OpenProblem, *, key: int, interpreted: bool = False) -> "TsallisLearner":
        """Return a learner before its first row."""
        blocks, size = problem.shape
        n_arms = TYPICAL_CANDIDATES if problem.arms is None else len(problem.arms)
        options = options_for(self.tuning, blocks, size, n_arms, self.capacity)
        functions = functions_of(learn_rows, decide_rows, interpreted=interpreted)
        return TsallisLearner(options, empty_state(options, blocks, size, n_arms), functions, key)


class TsallisLearner:
    """Learner state of the default rule for open problems."""

    def __init__(self, options: Options, state: State, functions: Functions, key: int) -> None:
        self.options, self.state, self.functions, self.key = options, state, functions, key
        self.work = work_for(state)
        self._run(no_rows(), 0)

    def _run(self, rows: Rows, count: int) -> None:
        """Learn rows in place; raise NumericalError."""
        status = self.functions.learn(self.options, self.state, self.work, rows, 0, count, self.key)
        if status != OK:
            raise NumericalError(
                f"{sentence(status)}, after {int(self.state.rows[0]):,} rows. The update was not applied; more alike "
                "scales of the features avoid this"
            )

    def plan(self) -> PlanArrays:
        """Return the present plan."""
        state = self.state
        numbers = np.array([state.inverse_rate[0], state.exploration_rate[0], state.kept[0], self.options.leave_in])
        return PlanArrays(state.weights.copy(), state.inverse.copy(), numbers, state.baseline.copy())

    def decide(self, plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints) -> Choices:
        """Decide with any plan for requests."""
        return self.functions.choices(plan, z, offered, keys, times)

    def learn(self, rows: Rows) -> bool:
        """Learn rows in order; return whether there is a new plan."""
        count, before = len(rows.arms), self.state
        if rows.offered.shape[1] > before.q.shape[1]:
            self._use(widened(before, rows.offered.shape[1]))
        due = self.state.pending[0] + count >= self.state.piece[0]
        if due:
            before = copied(before)
        try:
            self._run(rows, count)
        except NumericalError:
            self._use(before)
            raise
        return bool(due)

    def _use(self, state: State) -> None:
        self.state, self.work = state, work_for(state)

    def recent(self) -> tuple[Floats, Floats] | None:
        """Return features and offers of the requests in the reservoir; None if it is empty."""
        kept = int(self.state.kept[0])
        return (self.state.z[:kept], self.state.offered[:kept]) if kept else None

    def restarts(self) -> Restarts:
        """Return how often the learner restarted because the world had changed."""
        state = self.state
        return Restarts(int(state.restarts[0]), float(state.rounds[0]), int(state.rows[0]))

    def arrays(self) -> Mapping[str, Floats]:
        """Return the state as arrays, copies."""
        return copied(self.state)._asdict()

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Continue from the arrays of a file."""
        self._use(restored(self.state, arrays))
