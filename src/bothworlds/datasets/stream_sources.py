"""`read_stream`: a data set by its name, as a stream of any length."""

import zlib

import numpy as np

from bothworlds.arrays import Ints
from bothworlds.datasets.generated import GENERATORS, generated
from bothworlds.datasets.streams import Stream, StreamOrder, in_order
from bothworlds.datasets.tables import FILES, table
from bothworlds.kernels.random import Seed, key_from
from bothworlds.problem.checks import check_known, whole

STREAMS = (*FILES, *GENERATORS)


def read_stream(name: str, *, rounds: int = 4000, order: StreamOrder = "shuffled", rng: Seed = 0) -> Stream:
    """Return a data set of the installed packages scikit-learn or river as a stream (``pip install '.[streams]'``).

    Rows of a table are played in passes: all rows in random order, then all rows in another random order, and so on, so
    that a table may be shorter than the stream. Rows of a generator come in the order in which it makes them: a stream
    that changes by itself (``rbf_drift``, ``hyperplane``, ``concept_drift``) does so in every order. The seed and the
    name determine the rows, so that the orders differ in labels and rewards alone.

    Parameters
    ----------
    name
        iris, wine, breast_cancer or digits (scikit-learn); phishing, segments, bananas, or the generators sea, agrawal,
        rbf, rbf_drift, led_drift, hyperplane, concept_drift (river).
    rounds
        Length T.
    order
        "shuffled", "drift", "corrupted" or "alternating": see `in_order`.
    rng
        Seed.

    >>> read_stream("iris", rounds=1000, order="drift")  # doctest: +SKIP
    Stream(iris: 1,000 rounds, 3 arms, 4 features)
    """
    check_known([name], STREAMS, "data set")
    rounds = whole(rounds, 1, "rounds")
    sequence = np.random.SeedSequence([key_from(rng), zlib.crc32(name.encode())])
    if name in GENERATORS:
        made = generated(name, rounds=rounds, seed=int(sequence.generate_state(1)[0] >> np.uint32(2)))
        chosen = np.arange(rounds)
    else:
        made = table(name)
        chosen = passes(len(made.labels), rounds, np.random.default_rng(sequence))
    rows = Stream.labelled(name, contexts=made.rows[chosen], labels=made.labels[chosen], arms=made.classes)
    return in_order(rows, order)


def passes(count: int, rounds: int, rng: np.random.Generator) -> Ints:
    """Return ``rounds`` numbers below ``count``: one random order of all of them after another.

    >>> sorted(passes(3, 5, np.random.default_rng(1)).tolist()[:3])
    [0, 1, 2]
    """
    return np.concatenate([rng.permutation(count) for _ in range(-(-rounds // count))])[:rounds]
