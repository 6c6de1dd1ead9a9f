"""Costs of exploration, computed for several plays at once."""

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis import exploration_cost, leverage_bounds
from support.matched_plans import Plan
from support.problems import play, random_problem


def test_three_plays_are_found_and_priced_like_one() -> None:
    """Plays of weight zero are skipped; beyond the sum of all weights the last play with a positive weight is drawn."""
    policy = bw.LCTsallisINF().start(random_problem(5, S=6, K=4, d=3, rarity=30.0), rng=3, interpreted=True)
    play(policy, 4)
    known, case = Plan(policy).case()
    bounds = leverage_bounds.bound_rate(known, case, 0.01)
    exploration_cost.write_lengths(known, case)
    total = exploration_cost.write_draw_weights(known, case, bounds, 0.01, False)
    case.draw_weight[1, 0] = 0.0
    for us in ((0.1, 0.5, 0.9), (0.3, 0.3, 0.31), (0.0, 0.999, 1.7)):
        places = exploration_cost.three_plays_at(case, 6, *(u * total for u in us))
        pairs = [(int(places[n]), int(places[n + 1])) for n in (0, 2, 4)]
        assert pairs == [tuple(map(int, exploration_cost.play_at(case, 6, u * total))) for u in us]
        for n, (x, a) in enumerate(pairs):
            exploration_cost.write_direction(known, case, x, a, case.play[2 + n])
        alone = [
            exploration_cost.cost_of_play(known, case, case.play[2 + n], case.rho[pair]) for n, pair in enumerate(pairs)
        ]
        assert list(exploration_cost.costs_of_three(known, case, *(case.rho[pair] for pair in pairs))) == alone
        assert max(alone) > 0.0
