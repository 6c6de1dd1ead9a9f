"""What a card computes in another order than a processor, because its sums must stay in registers.

Each function here takes the place of one of the same arguments wherever text is compiled for a card (see `on_card`);
interpreted and on a processor nothing changes.
"""

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.compile import kernel, on_card
from bothworlds.kernels.entries import World
from bothworlds.kernels.plan import add_arms, add_context, collect, covariance
from bothworlds.kernels.tiles import SIDE, add_outer, empty_tile, few_of, write_tile

TILED_FROM = 2 * SIDE  # dimension; below, all sums fit into registers at once


@on_card(add_context)
def add_context_later(world: World, x: int, q: Floats, sums: Floats) -> None:
    """Leave large sums to `covariance_by_tiles`."""
    if sums.shape[0] < TILED_FROM:
        add_arms(world, x, q, sums)


@kernel
def sum_tile(world: World, q: Floats, i: int, j: int, sigma: Floats) -> None:
    """Write the tile of Sigma(q_t) = sum_x g(x) sum_a q(a|x) phi phi^T whose first entry is (i, j)."""
    tile = empty_tile()
    for x in range(q.shape[0]):
        for a in range(q.shape[1]):
            z = world.z[x, a]
            tile = add_outer(tile, world.g[x] * q[x, a], few_of(z, i), few_of(z, j))
    write_tile(tile, sigma, i, j)


@on_card(covariance)
def covariance_by_tiles(world: World, q: Floats, sums: Floats, sigma: Floats) -> None:
    """Write Sigma(q_t) into the lower triangle of sigma; each entry is added up in the order of `add_arms`.

    Where d is no multiple of a tile's side the last tiles overlap those before them and write the same once more.
    """
    d = sigma.shape[0]
    if d < TILED_FROM:
        collect(sums, sigma)
    else:
        for i in range(0, d, SIDE):
            for j in range(0, i + 1, SIDE):
                sum_tile(world, q, min(i, d - SIDE), min(j, d - SIDE), sigma)
