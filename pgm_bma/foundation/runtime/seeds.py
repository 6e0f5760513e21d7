"""Seeds in any accepted form become one root; starts and chains are spawned from it."""

import numpy as np

from pgm_bma.foundation.faces.validation import brief


def seed_sequence(random_state):
    """The root SeedSequence behind a seed: an int as it is, None fresh, a Generator or RandomState by one 128-bit draw."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence([int(w) for w in random_state.integers(0, 2**32, size=4, dtype=np.uint64)])
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence([int(w) for w in random_state.randint(0, 2**32, size=4, dtype=np.uint64)])
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    raise ValueError(
        f"random_state={brief(random_state)} (seed= in the pgmpy faces): pass a non-negative integer, None, "
        "a numpy Generator or a numpy RandomState"
    )


def random_generator(random_state):
    """One generator from a seed in any accepted form: ``default_rng(seed)`` for an int. Starts and chains spawn from it."""
    return np.random.default_rng(seed_sequence(random_state))


def fresh(rng):
    """A generator with the seed of `rng` and none of its starts spawned yet."""
    seeds = rng.bit_generator.seed_seq
    return np.random.default_rng(np.random.SeedSequence(seeds.entropy, spawn_key=seeds.spawn_key))
