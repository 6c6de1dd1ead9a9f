"""An algorithm in progress: `Policy` decides and learns, a `Plan` is what it would do now.

What a user holds: `core` (the policy), `algorithm` (what makes one), `plan`, `decision`, `prior`, `health`.
What a policy is made of: `footing` (what it stands on and never changes), `mind` (what is learnt, in two memories),
`books` (which decisions may still be answered, and how many there were), with `ledger`, `rounds`, `tally`, `holdout`
and `identity` below them. How feedback gets in: `feeding`. How a problem changes: `changing`, with `mapping` (from
coordinates to coordinates), `carrying` (what a mind begins with) and `epochs` (what is kept of problems before).
"""

from bothworlds.policy.algorithm import Algorithm as Algorithm
from bothworlds.policy.core import FORMAT as FORMAT
from bothworlds.policy.core import Policy as Policy
from bothworlds.policy.decision import Decision as Decision
from bothworlds.policy.health import Health as Health
from bothworlds.policy.health import health_of as health_of
from bothworlds.policy.plan import Plan as Plan
from bothworlds.policy.prior import Prior as Prior
