"""Policies: a `Policy` decides and learns, a `Plan` is an immutable copy of its probabilities that only decides.

Public classes are in `policy`, `algorithm` (base class; its checks are in `options`), `plan`, `decision`, `prior` and
`health`. The parts of a policy are

* `spec`: algorithm, problem and machine, immutable;
* `learner_state`: numbers that change with learning, double-buffered;
* `bookkeeping`: checks and counts of decisions, with `feedback_registry`, `counts`, `holdout`, `ids` and
  `problem_history`;
* `feedback` and `batch_feedback`: checks of feedback, and learning from batches;
* `transfer`: the learner state for a changed problem or from a prior, with `feature_map` between coordinates.
"""

from bothworlds.policy.algorithm import Algorithm as Algorithm
from bothworlds.policy.decision import Decision as Decision
from bothworlds.policy.health import health_of as health_of
from bothworlds.policy.health_report import Health as Health
from bothworlds.policy.health_report import OpenHealth as OpenHealth
from bothworlds.policy.plan import Plan as Plan
from bothworlds.policy.policy import FORMAT as FORMAT
from bothworlds.policy.policy import Policy as Policy
from bothworlds.policy.prior import Prior as Prior
