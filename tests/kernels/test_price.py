"""Prices of exploration, computed for several plays at once."""

import bothworlds as bw
from bothworlds.kernels import price, reach
from matched_plans import Plan
from worlds import play, random_problem


def test_three_plays_are_found_and_priced_like_one() -> None:
    """Plays with no chance are passed over; beyond the sum of all chances it is the last one that has some."""
    policy = bw.LCTsallisINF().start(random_problem(5, S=6, K=4, d=3, rarity=30.0), rng=3, interpreted=True)
    play(policy, 4)
    known, case = Plan(policy).case()
    weighed = reach.weigh(known, case, 0.01)
    price.find_lengths(known, case)
    total = price.find_chances(known, case, weighed, 0.01, False)
    case.chance[1, 0] = 0.0
    for us in ((0.1, 0.5, 0.9), (0.3, 0.3, 0.31), (0.0, 0.999, 1.7)):
        places = price.three_at(case, 6, *(u * total for u in us))
        pairs = [(int(places[n]), int(places[n + 1])) for n in (0, 2, 4)]
        assert pairs == [tuple(map(int, price.play_at(case, 6, u * total))) for u in us]
        for n, (x, a) in enumerate(pairs):
            price.write_direction(known, case, x, a, case.play[2 + n])
        alone = [price.cost_of_play(known, case, case.play[2 + n], case.rho[pair]) for n, pair in enumerate(pairs)]
        assert list(price.costs_of_three(known, case, *(case.rho[pair] for pair in pairs))) == alone
        assert max(alone) > 0.0
